"""Scores: sacreBLEU's own, on lines that are kept as they are."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.corpus.files import open_output
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.experiment.configuration import Primary, load_config, parse_config
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.moses import Tokeniser
from mt_scaffold.experiment.data.tokenise import detokenise
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.comparison_files import as_text
from mt_scaffold.experiment.evaluation.external import computed, read_segments
from mt_scaffold.experiment.evaluation.metrics import METRICS, split_compounds
from mt_scaffold.experiment.evaluation.score import Origin, Scores, Scoring, Texts, score
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.manifest import raw_digest

REFERENCE = [
    "Ein Mann schläft auf der Couch.",
    "Zwei Kinder spielen im well-known Park, lachend.",
    "Eine Frau liest das Buch am Fenster.",
    "Der Hund läuft über die Wiese.",
]
HYPOTHESIS = [
    "Ein Mann schläft auf dem Sofa.",
    "Zwei Kinder spielen im well-known Garten.",
    "Eine Frau liest ein Buch am Fenster.",
    "Der Hund rennt über die Wiese.",
]

# A minimal configuration.
PLAIN: dict[str, Any] = {
    "name": "x",
    "languages": {"source": "en", "target": "de"},
    "data": {"synthetic": {"pairs": 9, "valid": 1, "test": 1}},
    "codes": {"symbols": 9},
    "systems": {"bpe": {"algorithm": "bpe"}},
    "baseline": "bpe",
    "train": {"options": {"arch": "transformer"}},
}


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def test_scores_and_signatures_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    """Anyone can check them with sacreBLEU alone."""
    hypothesis, reference = write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE)
    others = write(tmp_path / "other-ref", REFERENCE[::-1])
    for given in ([reference], [reference, others]):
        found = score(
            Texts(hypothesis, given), tmp_path / "scores.json", Scoring(metrics=["bleu", "chrf", "ter", "chrf++"])
        ).metrics
        command = [sys.executable, "-m", "sacrebleu", *map(str, given), "-i", str(hypothesis), "-w", "6", "-m"]
        runs = [[*command, "bleu", "chrf", "ter"], [*command, "chrf", "--chrf-word-order", "2"]]
        printed = []
        for run in runs:
            shown = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
            printed += shown if isinstance(shown, list) else [shown]
        for ours, theirs in zip(("bleu", "chrf", "ter", "chrf++"), printed, strict=True):
            assert found[ours].score == pytest.approx(theirs["score"], abs=1e-5) and theirs["score"] > 10
            assert set(found[ours].signature.split("|")) == set(theirs["signature"].split("|"))
            assert f"nrefs:{len(given)}" in found[ours].signature


def test_tokenised_bleu_is_marked_as_not_comparable(tmp_path: Path) -> None:
    """It depends on the tokeniser, so it must not be quoted as BLEU."""
    words = [line.replace(".", " .").replace(",", " ,") for line in (*HYPOTHESIS, *REFERENCE)]
    files = [write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE), tmp_path / "scores.json"]
    tokenised = [write(tmp_path / "hyp.words", words[:4]), write(tmp_path / "ref.words", words[4:])]
    result = score(
        Texts(files[0], [files[1]], tokenised[0], [tokenised[1]]), files[2], origin=Origin(system="bpe", seed=3)
    )
    metrics = result.metrics
    assert [name for name, metric in metrics.items() if metric.comparable] == ["bleu", "chrf", "chrf++"]
    # One word that both sides share becomes three: the precisions rise.
    assert metrics["tokenised_bleu_split"].score > metrics["tokenised_bleu"].score > 10
    assert "tok:none" in metrics["tokenised_bleu"].signature
    written = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert (
        read_result(Scores, tmp_path / "scores.json") == result
        and written["seed"] == 3
        and written["versions"]["sacrebleu"]
    )
    assert written["files"]["hypothesis_words"]["path"] == "hyp.words"


HYPHENS = [
    "Die deutsch-französische Rüstungs-Kooperation – ein 20-Jahre-Plan – wird „neu“ verhandelt.",
    "Er sagte: \"Das US-Magazin 'Time' kostet 3,50 €\", nicht 3.500 €.",
    "Links-rechts-Kombinationen & Software-/Hardware-Fragen [siehe S. 12-14] | Ende…",
    "Geht’s noch? Das E-Mail-Konto von Max’ Schwester-Firma ist z. B. weg-",
    "Ein ganz gewöhnlicher Satz ohne Striche, aber mit Zahlen wie 1.000-mal und 5-6 Prozent.",
    "Die rot-grüne Regierung - so hieß es - plant ein Anti-Terror-Gesetz.",
]


def published_bleu(hypotheses: list[str], references: list[str], lowercase: bool = False) -> float:
    """BLEU by the published pipeline, without our code: plain Moses words, perl's expression, untokenised BLEU."""
    from sacrebleu.metrics import BLEU
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang="de")
    sides = []
    for lines in (hypotheses, references):
        words = [moses.tokenize(line, aggressive_dash_splits=False, escape=True, return_str=True) for line in lines]
        if not lowercase:
            words = [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line) for line in words]
        sides.append([line.lower() if lowercase else line for line in words])
    found: float = BLEU(tokenize="none", force=True).corpus_score(sides[0], [sides[1]]).score
    return found


@pytest.mark.parametrize("normalise", [False, True], ids=["as-it-is", "normalised"])
@pytest.mark.parametrize("dashes", [False, True], ids=["plain", "with -a"])
def test_compounds_are_split_in_plain_moses_words_whatever_the_experiment_does(
    tmp_path: Path, dashes: bool, normalise: bool
) -> None:
    """After ``-a`` the split would match inside ``@-@``: about 1 BLEU more on newstest2021, twice the paper's gain."""
    references = HYPHENS * 3
    draw = random.Random(5)
    outputs = [
        " ".join(word for word in line.split(" ") if draw.random() < 0.85).replace("Anti-", "Anti ")
        for line in references
    ]
    tokenise = Tokeniser("de", Tokenise(normalise, normalise, dashes))
    words = [[tokenise(line) for line in side] for side in (outputs, references)]
    assert any(" @-@ " in line for line in words[0]) == dashes
    # A model writes words; its text comes from detokenising them.
    detokenised = detokenise(words[0], "de")
    for name, text in (("text", outputs), ("detokenised", detokenised)):
        lines = {"hyp": text, "ref": references, "hyp.words": words[0], "ref.words": words[1]}
        files = {key: write(tmp_path / f"{name}.{key}", side) for key, side in lines.items()}
        paths = (files["hyp"], files["ref"], tmp_path / "scores.json")
        chosen = ["tokenised_bleu", "tokenised_bleu_split", "tokenised_bleu_lc"]
        given = (files["hyp.words"], files["ref.words"])
        found = score(
            Texts(paths[0], [paths[1]], given[0], [given[1]]), paths[2], Scoring(language="de", metrics=chosen)
        ).metrics
        assert found["tokenised_bleu_split"].score == pytest.approx(published_bleu(text, references), abs=1e-9)
        assert found["tokenised_bleu_lc"].score == pytest.approx(published_bleu(text, references, True), abs=1e-9)
        assert "words:moses.de|compounds:split" in found["tokenised_bleu_split"].signature
        assert "case:lc" in found["tokenised_bleu_lc"].signature
        assert 10 < found["tokenised_bleu_split"].score < 90
        # The split in the experiment's own words gives a different figure.
        wrong = [list(map(split_compounds, side)) for side in words]
        split = (write(tmp_path / "a", wrong[0]), write(tmp_path / "b", wrong[1]))
        own = (
            score(Texts(paths[0], [paths[1]], split[0], [split[1]]), paths[2], Scoring(metrics=["tokenised_bleu"]))
            .metrics["tokenised_bleu"]
            .score
        )
        assert not dashes or own > found["tokenised_bleu_split"].score + 1


def test_without_a_language_what_dashes_split_is_joined_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The split figure is then based on the given words, and its signature and a warning say so."""
    tokenise = Tokeniser("de", Tokenise(False, False, True))
    outputs = [line.replace("Plan", "Ziel").replace("US-Magazin", "Magazin") for line in HYPHENS]
    lines = {"hyp": outputs, "ref": HYPHENS}
    lines |= {f"{name}.words": [tokenise(line) for line in side] for name, side in lines.items()}
    files = [write(tmp_path / name, side) for name, side in lines.items()]
    found = score(Texts(files[0], [files[1]], files[2], [files[3]]), tmp_path / "scores.json").metrics[
        "tokenised_bleu_split"
    ]
    assert found.score == pytest.approx(published_bleu(outputs, HYPHENS), abs=1e-9)
    assert "words:joined" in found.signature
    assert "The target language is not known" in capsys.readouterr().err
    # The language may also be the suffix of the reference's name.
    german = files[1].rename(tmp_path / "ref.de")
    found = score(Texts(files[0], [german]), tmp_path / "scores.json").metrics["tokenised_bleu_split"]
    assert found.score == pytest.approx(published_bleu(outputs, HYPHENS), abs=1e-9)
    assert "words:moses.de" in found.signature and capsys.readouterr().err == ""


def test_score_needs_no_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It scores any translation of any test set, with the metrics given or those of a configuration."""
    hypothesis, reference = write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE)
    output = tmp_path / "scores.json"
    command = ["score", "--hypothesis", str(hypothesis), "--reference", str(reference), "-o", str(output)]
    assert main([*command, "--metrics", "ter", "bleu", "tokenised_bleu_split", "--language", "de"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in shown] == ["BLEU", "TER ↓", "tokenised BLEU, compounds split"]
    assert list(read_result(Scores, output).metrics) == ["bleu", "ter", "tokenised_bleu_split"]
    config = parse_config({**PLAIN, "score": {"metrics": ["chrf++", "tokenised_bleu_lc"]}})
    found = score(Texts(hypothesis, [reference]), output, config=config)
    assert list(found.metrics) == ["chrf++", "tokenised_bleu_lc"]
    assert "moses.de" in found.metrics["tokenised_bleu_lc"].signature
    assert set(parse_config(PLAIN).score.metrics) < set(METRICS)
    with pytest.raises(UsageError, match=r"score\.metrics\[0\]: must be bleu or chrf"):
        parse_config({**PLAIN, "score": {"metrics": ["rouge"]}})


def test_a_metric_that_cannot_be_computed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never skipped silently: a table without the metric would pass for complete."""
    files = (write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE), tmp_path / "scores.json")
    with pytest.raises(UsageError, match=r"unknown metric rouge \(known: bleu, chrf"):
        score(Texts(files[0], [files[1]]), files[2], Scoring(metrics=["rouge"]))
    with pytest.raises(UsageError, match="tokenised_bleu needs --hypothesis-words and --reference-words"):
        score(Texts(files[0], [files[1]]), files[2], Scoring(metrics=["tokenised_bleu"]))
    with pytest.raises(UsageError, match="tokenised_bleu_split needs --language, or --hypothesis-words"):
        score(Texts(files[0], [files[1]]), files[2], Scoring(metrics=["tokenised_bleu_split"]))
    with pytest.raises(UsageError, match="give as many --metric and --signature"):
        score(Texts(files[0], [files[1]]), files[2], Scoring(segments=[files[1]], metric=["x"]))
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MTScaffoldError, match=r"^spbleu: sacreBLEU cannot load its flores200 tokeniser \(.*") as error:
        score(Texts(files[0], [files[1]]), files[2], Scoring(metrics=["bleu", "spbleu"]))
    assert error.value.exit_status == 1 and "\n" not in str(error.value)
    assert not files[2].exists()


def test_spbleu_is_sacrebleus(tmp_path: Path) -> None:
    """It needs the package sentencepiece and a model that sacreBLEU downloads."""
    pytest.importorskip("sentencepiece", reason="needs the extra 'spbleu'")
    files = (write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE), tmp_path / "scores.json")
    try:
        found = score(Texts(files[0], [files[1]]), files[2], Scoring(metrics=["spbleu"])).metrics["spbleu"]
    except MTScaffoldError as error:
        pytest.skip(f"no model here: {error}")
    assert "tok:flores200" in found.signature and found.score > 10


FEWER = [line.replace("Plan", "Projekt").replace("Konto", "Fach") for line in HYPHENS]
COMET = [0.5, 0.625, 0.75, 0.875, 0.5, 0.25]
FORMS = {
    "lines": "".join(f"{score}\n" for score in COMET),
    # comet-score --to_json, and MetricX.
    "comet": json.dumps(
        {"hyp": [{"mt": mt, "COMET": score} for mt, score in zip(FEWER, COMET, strict=True)]}, indent=4
    ),
    "metricx": "".join(
        f"{json.dumps({'hypothesis': mt, 'prediction': score})}\n" for mt, score in zip(FEWER, COMET, strict=True)
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_scores_of_another_program_are_a_metric_as_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """COMET and its like need environments of their own; differences are tested, and must be computed alike."""
    (tmp_path / "comet").write_text(FORMS[form], encoding="utf-8")
    write(tmp_path / "flat", ["0.5"] * 6)
    hypothesis, reference = write(tmp_path / "hyp", FEWER), write(tmp_path / "ref", HYPHENS)
    other = write(tmp_path / "other", HYPHENS)
    command = [
        "score",
        "--reference",
        str(reference),
        "--source",
        str(reference),
        "--test-set",
        "t",
        "--metrics",
        "bleu",
    ]
    paths = []
    for system, text, segments in (("a", other, "flat"), ("b", hypothesis, "comet"), ("c", hypothesis, "comet")):
        paths.append(tmp_path / f"{system}.json")
        given = [
            "--segments",
            str(tmp_path / segments),
            "--metric",
            "comet-22",
            "--system",
            system,
            "-o",
            str(paths[-1]),
        ]
        signature = "Comet2.2|r1" if system != "c" else "Comet2.3|r1"
        assert main([*command, "--hypothesis", str(text), *given, "--signature", signature]) == 0
    found = read_result(Scores, paths[1]).metrics["higher:comet-22"]
    assert found.score == pytest.approx(sum(COMET) / 6) and found.segments == [f"{score:g} 1" for score in COMET]
    assert "comet-22: 0.5833  Comet2.2|r1" in capsys.readouterr().out
    compared = compare(paths[:2], "a", samples=50, primary=Primary("comet-22"))
    test = compared.rows[1].tests["higher:comet-22"]
    assert test.difference == pytest.approx(sum(COMET) / 6 - 0.5) and compared.main_metric == "higher:comet-22"
    assert re.split("  +", as_text(compared).splitlines()[2])[2] == "comet-22"
    with pytest.raises(MTScaffoldError, match=r"comet-22 was computed differently \(Comet2\.2\|r1 and Comet2\.3"):
        compare([paths[0], paths[2]], "a", samples=50)
    # Lower is better; and what cannot be read is refused, with its line.
    given = ["--hypothesis", str(hypothesis), "--metric", "mx", "--signature", "s", "-o", str(tmp_path / "d")]
    assert main([*command, *given, "--segments", str(tmp_path / "comet"), "--higher-is-better", "no"]) == 0
    assert "mx ↓: 0.5833" in capsys.readouterr().out
    for content, says in (
        (FORMS["lines"] + "1\n", "7 scores for 6 translations"),
        (FORMS["lines"][:-5], "5 scores for 6 translations"),
        (FORMS["lines"].replace("0.75", "nan"), "line 3: not the score of a segment: 'nan'"),
        (FORMS["comet"].replace("Projekt", "Ziel"), "segment 1 is of another translation"),
        (FORMS["metricx"].replace("prediction", "score"), "line 1: not the score of a segment"),
    ):
        (tmp_path / "bad").write_text(content, encoding="utf-8")
        assert main([*command, *given, "--segments", str(tmp_path / "bad")]) == 1
        assert says in capsys.readouterr().err
    for name, says in (("bleu", "the name of another metric"), ("a:b", "choose another")):
        assert main([*command, *given, "--segments", str(tmp_path / "flat"), "--metric", name]) == 2
        assert says in capsys.readouterr().err


PROGRAM = """\
import sys
source, hypothesis, output, *references = sys.argv[1:]
lines = open(hypothesis, encoding="utf-8").read().splitlines()
print("loading", file=sys.stderr)
if "fail" in lines[0]:
    sys.exit("out of memory")
with open(output, "w") as stream:
    stream.writelines(f"{len(line) / len(references)}\\n" for line in lines)
with open("calls", "a") as stream:
    stream.write("called\\n")
"""


def test_a_program_of_a_metric_is_run_once_for_the_same_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments are those of the configuration, without a shell; its errors have its own last line."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "two words; rm.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), "{reference}", "{hypothesis}", "{output}", "{references}"]
    length = {"command": command, "signature": "v1"}
    settings = {"external": {"length": length}, "primary": {"metric": "length"}}
    config = parse_config({**PLAIN, "score": settings})
    assert parse_config(config.to_dict()) == config
    metric = config.score.external["length"]
    hypothesis, reference = write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE)
    files = {"source": reference, "hypothesis": hypothesis}
    first = computed("length", metric, files, [reference, reference], tmp_path / "kept")
    assert read_segments(first, HYPOTHESIS) == [len(line) / 2 for line in HYPOTHESIS]
    assert computed("length", metric, files, [reference, reference], tmp_path / "kept") == first
    assert (tmp_path / "calls").read_text() == "called\n"
    write(tmp_path / "hyp", HYPOTHESIS[::-1])
    assert computed("length", metric, files, [reference], tmp_path / "kept") != first
    write(tmp_path / "hyp", ["fail"])
    with pytest.raises(MTScaffoldError, match=r"^score\.external\.length: .* ended with status 1: out of memory$"):
        computed("length", metric, files, [reference], tmp_path / "kept")
    for wrong, says in (
        ([sys.executable, "-c", "print('hi')"], r"wrote nothing to \{output\}: hi$"),
        ([str(tmp_path / "none")], "none: No such file or directory; correct the command"),
    ):
        with pytest.raises(MTScaffoldError, match=says):
            computed("length", replace(metric, command=wrong), files, [reference], tmp_path / "kept")
    for given, says in (
        ({"a": {"command": ["x", "{hypothesis}"], "signature": "s"}}, r"a\.command: has no \{output\}; add it"),
        ({"a": {"command": ["{hyp}"], "signature": "s"}}, r"a\.command\[0\]: no \{hyp\} is filled in"),
        ({"bleu": length}, r"bleu: a metric that score computes; choose another name"),
        ({"a": {"command": command}}, r"a\.signature: missing"),
    ):
        with pytest.raises(UsageError, match=rf"score\.external\.{says}"):
            parse_config({**PLAIN, "score": {"external": given}})


def test_a_pipe_is_scored_and_noted_as_it_was_read(tmp_path: Path) -> None:
    """Its digest was once that of nothing, so that scores against different references passed for comparable."""
    paths = []
    for system, reference in (("a", REFERENCE), ("b", REFERENCE[::-1])):
        read, write_end = os.pipe()
        with open(write_end, "w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in reference)
        paths.append(tmp_path / f"{system}.json")
        texts = Texts(write(tmp_path / system, HYPOTHESIS), [f"/dev/fd/{read}"])
        found = score(texts, paths[-1], Scoring(language="de"), Origin(system=system, test_set="t"))
        os.close(read)
        assert found.files["reference"].sha256 == raw_digest(write(tmp_path / "ref", reference))
    with pytest.raises(MTScaffoldError, match="were scored against different references"):
        compare(paths, "a", samples=20)
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UsageError, match=r"config\.yaml: a pipe, which the steps .* could not read again; give a file"):
        load_config(tmp_path / "config.yaml")


def test_a_line_ends_at_lf_only(tmp_path: Path) -> None:
    """Split at U+2028 or U+0085, the following lines would be scored against the wrong references."""
    lines = ["a\u2028b", "c\x85d", "e\x0cf", "", "g"]
    assert read_lines(write(tmp_path / "text", lines)) == lines
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    assert read_lines(tmp_path / "crlf") == ["a", "b"]


@pytest.mark.parametrize("ending", ["zh", "zh.gz", "zh.zst"])
def test_the_language_is_that_of_a_compressed_reference(tmp_path: Path, ending: str) -> None:
    """BLEU of Chinese has its own tokeniser; the suffix of zstd once hid the language."""
    if ending.endswith(".zst") and sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd", reason="needs the extra 'documents'")
    plain = write(tmp_path / "plain", ["今天天气很好"])
    path = tmp_path / f"ref.{ending}"
    with open_output(path) as stream:
        stream.write(plain.read_bytes())
    found = score(Texts(plain, [path]), tmp_path / "scores.json", Scoring(metrics=["bleu"]))
    assert "tok:zh" in found.metrics["bleu"].signature


def test_no_input_is_overwritten(tmp_path: Path) -> None:
    """The --output prefix of compare is easily that of one of the score files."""
    hypothesis, reference = write(tmp_path / "h.de", HYPOTHESIS), write(tmp_path / "r.de", REFERENCE)
    for path in (hypothesis, reference):
        with pytest.raises(UsageError, match=f"{path.name}: is an input already and cannot be an output too"):
            score(Texts(hypothesis, [reference]), path)
    for system in ("a", "b"):
        score(Texts(hypothesis, [reference]), tmp_path / f"{system}.json", origin=Origin(system=system))
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    before = [path.read_bytes() for path in files]
    with pytest.raises(UsageError, match=r"b\.json: is an input already"):
        compare(files, "a", output=tmp_path / "b")
    assert [path.read_bytes() for path in files] == before and hypothesis.read_text().splitlines() == HYPOTHESIS
    for arguments in (
        ["tokenise", "-l", "de", "-i", hypothesis, "-o", tmp_path / "out", "--report", hypothesis],
        ["tokenise", "-l", "de", "-i", hypothesis, "-o", tmp_path / "out", "--report", tmp_path / "out"],
        ["clean", "-s", hypothesis, "-t", reference, "--output-source", tmp_path / "out", "--output-target",
         tmp_path / "out2", "--report", reference],
    ):  # fmt: skip
        assert main(list(map(str, arguments))) == 2
    assert reference.read_text().splitlines() == REFERENCE and not (tmp_path / "out").exists()


def test_a_test_set_is_called_as_in_the_configuration(tmp_path: Path) -> None:
    """Its own setting decides whether the reference is raw text."""
    archive = {"url": "https://example.org/x.tgz", "sha256": "0" * 64}
    pairs = [{"archive": archive, "source": "a", "target": "b"}]
    tests = {"t1": {"pairs": pairs, "tokenise": "none"}, "t2": {"pairs": pairs}}
    archives = {"train": pairs, "valid": pairs, "tests": tests}
    config = parse_config({**PLAIN, "data": {"archives": archives}})
    hypothesis = write(tmp_path / "h.de", HYPOTHESIS)
    for name, detokenised in (("t1", True), ("t2", False)):
        found = score(
            Texts(hypothesis, [write(tmp_path / f"{name}.de", REFERENCE)]),
            tmp_path / "s.json",
            Scoring(metrics=["bleu"]),
            config=config,
        )
        assert found.test_set == name
        assert ("reference:detokenised" in found.metrics["bleu"].signature) == detokenised
    with pytest.raises(UsageError, match=r"other\.de: which test set is it\? give --test-set t1\|t2"):
        score(Texts(hypothesis, [write(tmp_path / "other.de", REFERENCE)]), tmp_path / "s.json", config=config)


def test_words_that_sacremoses_makes_otherwise_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Finnish "EU:ssa" is one word for Moses."""
    hypothesis = write(tmp_path / "h", HYPOTHESIS)
    for language, words in (("fi", "words:sacremoses.fi"), ("de", "words:moses.de")):
        settings = Scoring(language=language, metrics=["tokenised_bleu_lc"])
        found = score(Texts(hypothesis, [write(tmp_path / "r", REFERENCE)]), tmp_path / "s.json", settings)
        assert words in found.metrics["tokenised_bleu_lc"].signature
        assert ("sacremoses lacks rules" in capsys.readouterr().err) == (language == "fi")


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    """Unequal, empty or undecodable files give an error and no scores."""
    three, four = write(tmp_path / "three", HYPOTHESIS[:3]), write(tmp_path / "four", REFERENCE)
    with pytest.raises(MTScaffoldError, match=r"three has 3 lines and .*four has 4"):
        score(Texts(three, [four]), tmp_path / "scores.json")
    with pytest.raises(MTScaffoldError, match="empty, nothing to score"):
        score(Texts(write(tmp_path / "a", []), [write(tmp_path / "b", [])]), tmp_path / "scores.json")
    (tmp_path / "latin1").write_bytes(b"gut\nsch\xf6n\n")
    with pytest.raises(MTScaffoldError, match=r"latin1: line 2, byte offset \d+: 0x.. is not UTF-8"):
        score(Texts(tmp_path / "latin1", [four]), tmp_path / "scores.json")
    assert not (tmp_path / "scores.json").exists()


def test_the_compound_split_is_that_of_perl_and_the_score_that_of_fairseq(tmp_path: Path) -> None:
    """The published figures come from perl's s/// with the same pattern and from fairseq-score; hyphens can touch."""
    hard = [
        "a-b-c d - e",
        "x--y -z w- -",
        "1-2 a-b-",
        "rich-text-format - \u00fcber-gro\u00df",
        "no hyphen here at all",
    ]
    if perl := shutil.which("perl"):
        script = "s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g"
        text = "".join(f"{line}\n" for line in hard)
        done = subprocess.run([perl, "-CSD", "-ple", script], input=text, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [split_compounds(line) for line in hard]
    scorer_of = pytest.importorskip("fairseq.scoring.bleu", reason="needs the extra 'fairseq'")
    from fairseq.data import Dictionary

    draw = random.Random(3)
    words = "der die das Hund Tier-Heim gross-e im Haus und schnell-er".split()
    references = [" ".join(draw.choices(words, k=14)) for _ in range(50)]
    outputs = [
        " ".join(word if draw.random() < 0.8 else draw.choice(words) for word in line.split()) for line in references
    ]
    for name, lines in {"hyp": outputs, "ref": references}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [tmp_path / name for name in ("hyp", "ref", "scores", "hyp", "ref")]
    ours = score(Texts(files[0], [files[1]], files[3], [files[4]]), files[2]).metrics["tokenised_bleu_split"].score
    dictionary = Dictionary()
    scorer = scorer_of.Scorer(scorer_of.BleuConfig(pad=dictionary.pad(), eos=dictionary.eos(), unk=dictionary.unk()))
    for reference, output in zip(references, outputs, strict=True):
        encoded = [dictionary.encode_line(split_compounds(line), add_if_not_exist=True) for line in (reference, output)]
        scorer.add(*(tokens.int() for tokens in encoded))
    assert ours == pytest.approx(scorer.score(), abs=0.005)
