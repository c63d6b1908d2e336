"""Scores: sacreBLEU's own, on lines that are kept as they are."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError

pytest.importorskip("sacrebleu", reason="needs the extra 'workflow'")

from mt_scaffold.experiment.results import read_result
from mt_scaffold.experiment.score import Scores, score, split_compounds
from mt_scaffold.text import read_lines

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


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def test_scores_and_signatures_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    """Anyone can check them with sacreBLEU alone."""
    hypothesis, reference = write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE)
    metrics = score(hypothesis, reference, tmp_path / "scores.json").metrics
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(reference),
        "-i",
        str(hypothesis),
        "-m",
        "bleu",
        "chrf",
        "-w",
        "6",
    ]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for ours, theirs in zip(("bleu", "chrf"), printed, strict=True):
        assert metrics[ours].score == pytest.approx(theirs["score"], abs=1e-5) and theirs["score"] > 10
        assert metrics[ours].signature == theirs["signature"] or set(metrics[ours].signature.split("|")) == set(
            theirs["signature"].split("|")
        )


def test_tokenised_bleu_is_marked_as_not_comparable(tmp_path: Path) -> None:
    """It depends on the tokeniser, so it must not be quoted as BLEU."""
    words = [line.replace(".", " .").replace(",", " ,") for line in (*HYPOTHESIS, *REFERENCE)]
    files = [write(tmp_path / "hyp", HYPOTHESIS), write(tmp_path / "ref", REFERENCE), tmp_path / "scores.json"]
    tokenised = [write(tmp_path / "hyp.words", words[:4]), write(tmp_path / "ref.words", words[4:])]
    result = score(*files, *tokenised, system="bpe", seed=3)
    metrics = result.metrics
    assert [name for name, metric in metrics.items() if metric.comparable] == ["bleu", "chrf"]
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


def test_the_compound_split_is_that_of_the_published_scores() -> None:
    """Hyphens inside a word are split as in the scripts that the papers used."""
    assert split_compounds("rich-text - format -x") == "rich ##AT##-##AT## text - format -x"
    assert split_compounds("a @-@ b") == "a @ ##AT##-##AT## @ b"


def test_a_line_ends_at_lf_only(tmp_path: Path) -> None:
    """Split at U+2028 or U+0085, the following lines would be scored against the wrong references."""
    lines = ["a\u2028b", "c\x85d", "e\x0cf", "", "g"]
    assert read_lines(write(tmp_path / "text", lines)) == lines
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    assert read_lines(tmp_path / "crlf") == ["a", "b"]


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    """Unequal, empty or undecodable files give an error and no scores."""
    three, four = write(tmp_path / "three", HYPOTHESIS[:3]), write(tmp_path / "four", REFERENCE)
    with pytest.raises(MTScaffoldError, match=r"three has 3 lines and .*four has 4"):
        score(three, four, tmp_path / "scores.json")
    with pytest.raises(MTScaffoldError, match="empty, nothing to score"):
        score(write(tmp_path / "a", []), write(tmp_path / "b", []), tmp_path / "scores.json")
    (tmp_path / "latin1").write_bytes(b"gut\nsch\xf6n\n")
    with pytest.raises(MTScaffoldError, match=r"latin1: line 2, byte offset \d+: 0x.. is not UTF-8"):
        score(tmp_path / "latin1", four, tmp_path / "scores.json")
    assert not (tmp_path / "scores.json").exists()


def test_the_compound_split_is_that_of_perl_and_the_score_that_of_fairseq(tmp_path: Path) -> None:
    """The published figures come from perl's s/// with the same pattern and from fairseq-score; hyphens can touch."""
    hard = [
        "a-b-c d @-@ e",
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
    ours = score(*files).metrics["tokenised_bleu_split"].score
    dictionary = Dictionary()
    scorer = scorer_of.Scorer(scorer_of.BleuConfig(pad=dictionary.pad(), eos=dictionary.eos(), unk=dictionary.unk()))
    for reference, output in zip(references, outputs, strict=True):
        encoded = [dictionary.encode_line(split_compounds(line), add_if_not_exist=True) for line in (reference, output)]
        scorer.add(*(tokens.int() for tokens in encoded))
    assert ours == pytest.approx(scorer.score(), abs=0.005)
