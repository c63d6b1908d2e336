"""The page of an experiment: complete and self-contained."""

from __future__ import annotations

import dataclasses
import html
import html.parser
import json
import re
import shutil
from pathlib import Path

import pytest
from segmenting import ALPHABET
from split_losses import write_split

from mt_scaffold import BPE, MTScaffoldError, learn_bpe
from mt_scaffold.cli import main

for needed in ("jinja2", "matplotlib", "sacrebleu", "sacremoses", "torch", "yaml"):
    pytest.importorskip(needed)

from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout  # noqa: E402
from mt_scaffold.experiment.data.clean import CleanRecord  # noqa: E402
from mt_scaffold.experiment.data.parallel import RawCorpus, RawRecord  # noqa: E402
from mt_scaffold.experiment.data.record import DataRecord  # noqa: E402
from mt_scaffold.experiment.data.tokenise import TokeniseRecord  # noqa: E402
from mt_scaffold.experiment.evaluation.compare import compare  # noqa: E402
from mt_scaffold.experiment.evaluation.comparison import Comparison  # noqa: E402
from mt_scaffold.experiment.evaluation.score import Origin, Texts, score  # noqa: E402
from mt_scaffold.experiment.report.html import (  # noqa: E402
    _examples,
    html_report,
    parts,
)
from mt_scaffold.experiment.report.statistics import _by_size, statistics  # noqa: E402
from mt_scaffold.experiment.runtime.result_warnings import KINDS, ResultWarning  # noqa: E402
from mt_scaffold.experiment.runtime.results import read_result, write_result  # noqa: E402
from mt_scaffold.experiment.training.train import TrainingRecord  # noqa: E402
from mt_scaffold.methods import Unigram  # noqa: E402
from mt_scaffold.methods.learn import learn  # noqa: E402

CONFIG = """\
name: small
description: <b>not bold</b> & "quoted"
languages: {source: en, target: de}
data:
  files:
    train: [{source: {path: train.en}, target: {path: train.de}}]
    valid: [{source: {path: valid.en}, target: {path: valid.de}}]
    tests: {test: [{source: {path: test.en}, target: {path: test.de}}]}
codes: {symbols: 60}
systems: {bpe: {algorithm: bpe}, scaffold: {algorithm: scaffold}, scaffold+dropout: {algorithm: scaffold, dropout: 0.1}}
baseline: bpe
seeds: [1, 2]
train: {options: {arch: transformer}}
score: {bootstrap_samples: 20}
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished experiment as the workflow leaves it, with invented translations and untrained models."""
    import torch

    from mt_scaffold.experiment.data.synthetic import sentence_pairs

    folder = tmp_path_factory.mktemp("experiments") / "small"
    pairs = sentence_pairs(1)
    for part, number in {"train": 300, "valid": 4, "test": 6}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, code in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            write(folder / "raw" / f"{part}.{code}", text)
            write(folder / "words" / f"{part}.{code}", text)
    write(folder / "config.yaml", CONFIG)
    layout = TranslationLayout.read(folder)
    trained_on = [folder / "words" / f"train.{code}" for code in ("en", "de")]
    for algorithm in ("bpe", "scaffold"):
        (folder / "codes").mkdir(exist_ok=True)
        learn_bpe(None, layout.codes_of(algorithm)[0], 60, algorithm=algorithm, paths=trained_on)
    parts = ("train", "valid", "test")
    report = DataRecord(
        RawRecord("small", True, {part: RawCorpus(4, {"en": 20, "de": 18}) for part in parts}),
        {f"{part}.{code}": TokeniseRecord(code, 4, 21, "0") for part in parts for code in ("en", "de")},
        {part: CleanRecord(4, 3, {"too long": 1, "ratio": 0}, (20, 18), (15, 14)) for part in parts[:2]},
    )
    write_result(folder / "data-report.json", report)
    references = (folder / "raw" / "test.de").read_text(encoding="utf-8").splitlines()
    scores = []
    for number, system in enumerate(("bpe", "scaffold", "scaffold+dropout")):
        bpe = BPE(layout.codes_of(system)[0])
        forms = sorted(bpe.surface_forms())
        for language in ("en", "de"):
            dictionary = layout.dictionary(layout.data_of(system), language)
            write(dictionary, "".join(f"{form} 1\n" for form in forms))
        for seed in (1, 2):
            run = folder / system / f"seed-{seed}"
            translated = [line if index != number else f"{line} <i> & so" for index, line in enumerate(references)]
            write(run / "translations" / "test.de", "".join(f"{line}\n" for line in translated))
            write(run / "translations" / "test.de.words", "".join(f"{line}\n" for line in translated))
            write(run / "translations" / "test.de.subwords", "".join(f"{bpe.segment(line)}\n" for line in translated))
            curves = {"train": [(30.0, 7.0)], "valid": [(30.0, 6.3)]}
            command = f"fairseq-train --seed {seed}\n"
            training = TrainingRecord(seed, 30, 1, 7.1, None, 9, 60.0, {}, command, curves)
            write_result(run / "training.json", training)
            weights = torch.randn(len(forms) + 4, 8, generator=torch.Generator().manual_seed(seed))
            torch.save({"model": {"encoder.embed_tokens.weight": weights}}, run / "averaged.pt")
            scores.append(run / "scores" / "test.json")
            scores[-1].parent.mkdir()
            write_split(run / "scores" / "test.losses.json", system, seed, [20.0, 21.0], [9.0 - number, 8.0 - number])
            files = (run / "translations" / "test.de", folder / "raw" / "test.de", scores[-1])
            score(Texts(files[0], [files[1]]), files[2], origin=Origin(system=system, test_set="test", seed=seed))
        step = ["experiment", "tokens", "--config", str(folder / "config.yaml"), "--system", system, "--seed", "1"]
        assert main(step) == 0
    compare(scores, "bpe", folder / "comparison", samples=20, allow_equal=True)
    return folder


def test_systems_that_differ_in_more_than_n_are_separate_series(tmp_path: Path) -> None:
    """Systems of one algorithm are not joined by a line if they trim, refill or segment differently."""
    own = "".join(
        f", {kind}-{size}: {{symbols: {size}, {options}}}"
        for size in (60, 90)
        for kind, options in (
            ("sampled", "algorithm: bpe, dropout: 0.1"),
            ("trimmed", "algorithm: trimmed, below: 3"),
            ("refilled", "algorithm: trimmed, below: 3, refill: true"),
        )
    )
    systems = "bpe: {algorithm: bpe}, bpe-90: {algorithm: bpe, symbols: 90}"
    write(tmp_path / "config.yaml", CONFIG.replace("bpe: {algorithm: bpe}", systems + own))
    layout = TranslationLayout.read(tmp_path)
    series = _by_size(layout, {name: float(len(name)) for name in layout.config.systems})
    assert series == {
        "bpe": [(60, 3.0), (90, 6.0)],
        "bpe+dropout": [(60, 10.0), (90, 10.0)],
        "trimmed": [(60, 10.0), (90, 10.0)],
        "trimmed+refill": [(60, 11.0), (90, 11.0)],
    }


@pytest.fixture(scope="module")
def page(experiment: Path) -> Path:
    assert main(["experiment", "statistics", "--config", str(experiment / "config.yaml")]) == 0
    assert main(["report", str(experiment)]) == 0
    return experiment / "report.html"


class Reader(html.parser.HTMLParser):
    """Collects the addresses and ids of a page, and checks that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.addresses += [value or "" for key, value in values.items() if key in ("src", "href", "xlink:href")]
        self.ids += [value or "" for key, value in values.items() if key == "id"]
        if tag not in ("meta", "br", "img", "link", "input", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_needs_nothing_but_itself(page: Path) -> None:
    """Every address is inside the page or inline data; no import in its style; well-formed, every id unique."""
    text = page.read_text(encoding="utf-8")
    reader = Reader(text)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    for address in reader.addresses:
        assert address.startswith("data:") or (address.startswith("#") and address[1:] in reader.ids), address
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", text)


def test_page_shows_what_the_experiment_found(page: Path, experiment: Path) -> None:
    """Scores, signatures, statistics, commands and examples are those of the files; synthetic text is labelled."""
    text = page.read_text(encoding="utf-8")
    comparison = json.loads((experiment / "comparison.json").read_text())
    for row in comparison["rows"]:
        for spread in row["scores"].values():
            assert f"{spread['mean']:.2f} ± {spread['sd']:.2f}" in text
        if row["tests"]:
            test = row["tests"]["bleu"]
            shown = [row["baseline"], f"{test['difference']:+.2f}", f"{test['low']:+.2f} to {test['high']:+.2f}"]
            # With two seeds there is no p.
            assert test["p"] is None and re.search("</td><td[^>]*>".join(map(re.escape, shown)) + "</td></tr>", text)
            assert text.index("Nothing may be concluded: a test takes 3 trainings of each") < text.index(shown[1])
    for signature in comparison["signatures"].values():
        assert signature in text
    assert "SYNTHETIC" not in text and "In the paper" not in text and "THEIRS" not in text
    assert "&lt;b&gt;not bold&lt;/b&gt;" in text and "<b>not" not in text
    assert ">&lt;i&gt;<" in text and ">&amp;<" in text and "<i>" not in text
    assert "fairseq-train --seed 2" in text
    # Of the six sentences, only three have translations that differ.
    assert re.findall(r"<dt>source (\d)", text) == ["1", "2", "3"]
    # Text from right to left is shown as such.
    assert not re.search('<dd(?! dir="auto")', text)
    statistics = json.loads((experiment / "statistics.json").read_text())
    assert f"{statistics['stats'][1]['entropy_bits']:.4f}" in text
    assert not statistics["synthetic"] and statistics["stats"][0]["codes"] == "bpe-60"
    assert [row["symbols"] for row in statistics["sizes"]][:3] == [15, 30, 60]
    spread = {(row["system"], row["tokens"]): row for row in statistics["embeddings"]}
    assert {"all tokens", "tokens Scaffold-BPE removes"} == {tokens for system, tokens in spread if system == "bpe"}
    assert spread["scaffold", "new tokens"]["count"] > 1
    for row in statistics["embeddings"]:
        assert f"<td>{row['uniformity']:.3f}</td>\n<td>{row['mean_cosine']:.3f}</td>" in text
    names = {"training", "token-frequencies", "replaced-tokens", "embeddings-bpe", "embeddings-scaffold"}
    assert names <= {path.stem for path in (experiment / "figures").glob("*.svg")}
    assert text.count("<svg ") == len(list((experiment / "figures").glob("*.svg")))


def test_the_first_screen_is_answer_what_was_compared_limits_and_table(
    page: Path, experiment: Path, tmp_path: Path
) -> None:
    """The limits are one folded line, open if one is grave."""
    text = html.unescape(page.read_text(encoding="utf-8"))
    comparison = read_result(Comparison, experiment / "comparison.json")
    limits = comparison.shown_warnings
    assert any(line.startswith(KINDS["few-seeds"]) for line in limits)
    figure = "BLEU: difference from the baseline with its 95 % interval"
    fold = '<details class="limits"><summary>2 things limit this result</summary>'
    assert not comparison.grave
    # What was found, by how much and over how many trainings; what was compared; what limits it.
    (effect,) = [line for line in comparison.effects if line.startswith("scaffold against")]
    assert re.search(r": [+-]\d+\.\d\d BLEU, 95 % interval [+-][\d.]+ to [+-][\d.]+, over 2 and 2 trainings\.$", effect)
    parts = ["<h1>small</h1>", comparison.answer, effect, "en → de: bpe, scaffold", fold, *limits, "<table>", figure]
    parts += ["<summary>How to read this table"]
    parts += ["<summary>Other metrics", "<summary>Signatures", "<summary>The systems", 'id="data"']
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    for note in (note for notes in comparison.notes_by_table.values() for note in notes):
        assert f"<li>{note}</li>" in text
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    grave = dataclasses.replace(comparison, warnings=[*comparison.warnings, ResultWarning("length", "bpe, seed 1")])
    write_result(copy / "comparison.json", grave)
    assert '<details class="limits warning" open>' in html_report(copy).read_text(encoding="utf-8")


def test_synthetic_text_has_neither_tests_nor_embeddings(page: Path, experiment: Path, tmp_path: Path) -> None:
    """It is labelled as synthetic once, clearly; JSON keeps the values that the tables and the page leave out."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    shutil.rmtree(copy / "figures")
    kept = CONFIG.partition("data:")[0] + "data: {synthetic: {pairs: 40, valid: 4, test: 6}}\ncodes"
    write(copy / "config.yaml", kept + CONFIG.partition("codes")[2])
    comparison = json.loads((copy / "comparison.json").read_text(encoding="utf-8")) | {"synthetic": True}
    write(copy / "comparison.json", json.dumps(comparison))
    found = statistics(TranslationLayout.read(copy))
    assert found.embeddings
    text = html_report(copy).read_text(encoding="utf-8")
    assert text.count("SYNTHETIC") == 1 and '<p class="answer warning">SYNTHETIC DATA' in text
    assert not re.search(r'id="embeddings"|95 % interval</th>|Holm|[Ss]ignifican|Wang and Isola|updates would', text)
    drawn = {path.stem for path in (copy / "figures").glob("*.svg")}
    assert "training" in drawn and not [name for name in drawn if re.match("embeddings|differences", name)]
    assert all("SYNTHETIC" in path.read_text(encoding="utf-8") for path in (copy / "figures").glob("*.svg"))
    assert re.findall('<a href="#(.*?)">', text.partition("</nav>")[0]) == re.findall('<section id="(.*?)"', text)


@pytest.mark.parametrize("lost", ["bpe/seed-1", "comparison.json", "bpe/seed-1/translations", "raw"])
def test_a_lost_part_is_reported(experiment: Path, tmp_path: Path, lost: str) -> None:
    """One line says what is missing and what to do; ``run`` mended a deleted seed, and ``report`` did not say so."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    (copy / lost).rename(copy / "elsewhere")
    with pytest.raises(
        MTScaffoldError, match=rf"{lost}\b.*: No such file or directory; run the experiment in .* again"
    ):
        html_report(copy, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_training_without_logged_epochs_has_no_curve(experiment: Path, tmp_path: Path) -> None:
    """The page shows everything else."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    for path in copy.glob("*/seed-*/training.json"):
        training = json.loads(path.read_text()) | {"curves": {"train": [], "valid": []}}
        path.write_text(json.dumps(training))
    drawn = statistics(TranslationLayout.read(copy)).figures
    assert drawn and not [figure for figure in drawn if figure.section == "training"]
    assert "training.svg" not in html_report(copy).read_text(encoding="utf-8")


def test_examples_are_segmented_with_glossaries_and_threshold(experiment: Path, tmp_path: Path) -> None:
    """As the model saw the source, not as the codes alone would segment it."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    systems = "bpe: {algorithm: bpe, glossaries: ['\\w+']}, scaffold: {algorithm: scaffold, vocabulary_threshold: 9}"
    text = CONFIG.replace("bpe: {algorithm: bpe}, scaffold: {algorithm: scaffold}", systems)
    write(copy / "config.yaml", text)
    layout = TranslationLayout.read(copy)
    characters = "".join(f"{each}@@ 9\n{each} 9\n" for each in ALPHABET)
    for language in ("en", "de"):
        write(layout.vocabulary(layout.segmentation_of("scaffold"), language), characters)
    shown = {each["name"]: each["source_subwords"] for each in _examples(layout, 1)[0]["systems"]}
    line = layout.words("test", "en").read_text(encoding="utf-8").splitlines()[0]
    assert re.findall(r"\w\w+", line) == re.findall(r"\w\w+", shown["bpe"])
    assert re.findall(r"\w\w+", shown["scaffold"]) == [] != re.findall(r"\w\w+", shown["scaffold+dropout"])


@pytest.mark.parametrize(
    ("system", "shown"),
    [
        ("{algorithm: scaffold, dropout: 0.2}", "BPE-dropout 0.2 and 0.2"),
        ("{algorithm: unigram, sampling_alpha: 0.2}", "sampling with alpha 0.2"),
    ],
)
def test_the_page_says_what_is_sampled(page: Path, experiment: Path, tmp_path: Path, system: str, shown: str) -> None:
    """Otherwise a system with sampling would look like one without."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    write(copy / "config.yaml", CONFIG.replace("{algorithm: scaffold, dropout: 0.1}", system))
    if "unigram" in system:
        pytest.importorskip("sentencepiece", reason="sentencepiece comes with the extra 'unigram'")
        layout = TranslationLayout.read(copy)
        inputs = [layout.words("train", language) for language in ("en", "de")]
        learn(method=Unigram(60), outfile=copy / "codes" / "unigram-60.model", paths=inputs)
    html_report(copy, examples=0)
    text = (copy / "report.html").read_text(encoding="utf-8")
    assert f">{shown}</td>" in text
    assert "Dropout and sampling are not applied here; systems that train with them see other frequencies." in text


def test_a_test_set_that_the_data_report_lacks_is_reported(page: Path, experiment: Path, tmp_path: Path) -> None:
    """For example after a test set was added and the new run was stopped: one line, without a traceback."""
    copy = tmp_path / "copy"
    shutil.copytree(experiment, copy)
    for group, name in (("get-data", "corpora"), ("tokenise", "")):
        report = json.loads((experiment / "data-report.json").read_text())
        entries = report[group][name] if name else report[group]
        for key in [key for key in entries if key.startswith("test")]:
            del entries[key]
        (copy / "data-report.json").write_text(json.dumps(report))
        with pytest.raises(MTScaffoldError, match=r"data-report\.json: no test"):
            html_report(copy)


@pytest.mark.parametrize("inside", ["<script>alert(1)</script>", '<g onload="a()"/>', "<foreignObject/>"])
def test_a_figure_that_runs_something_is_not_taken_into_the_page(tmp_path: Path, inside: str) -> None:
    """An experiment can come from elsewhere, and its figures become part of the page."""
    (tmp_path / "a.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>', encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"a\.svg: holds a script"):
        parts.inline(tmp_path / "a.svg")
