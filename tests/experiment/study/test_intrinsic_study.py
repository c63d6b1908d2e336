"""The intrinsic study: its measures are those of ``stats``, its parts add up, and it resumes."""

from __future__ import annotations

import csv
import functools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="comes with the extra 'workflow'")

from mt_scaffold import BPE, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.experiment.report.figures import Panel
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.study import drawing, running, study, texts
from mt_scaffold.experiment.study.cells import Cell
from mt_scaffold.experiment.study.configuration import HeldOut, StudiedMethod, Text, load_study
from mt_scaffold.experiment.study.generalisation import (
    GeneralisationCell,
    class_of,
    compare,
    entropy_by_class,
    measure_generalisation,
    parts_of,
)
from mt_scaffold.experiment.study.held_out import (
    ORACLE,
    SAME_KIND,
    Criterion,
    first_normal,
    measure_held_out,
)
from mt_scaffold.experiment.study.measures import Stability, measure, stability
from mt_scaffold.experiment.study.methods import INSIDE, applies, learn_vocabulary, of_codes
from mt_scaffold.experiment.study.texts import (
    TRAIN,
    UNSEEN,
    CountedText,
    Words,
    count_text,
    fraction_name,
)


def of(algorithm: str, **keys: object) -> StudiedMethod:
    """Return a method from its keys in a study's YAML file."""
    return StudiedMethod.from_keys({"algorithm": algorithm, **keys})


METHODS = {
    "bpe": of("bpe"),
    "scaffold": of("scaffold"),
    "picky": of("picky", threshold=0.7),
    "trimmed": of("trimmed", below=0.3),
    "refilled": of("trimmed", below=0.3, refill=True),
    "greedy": of("bpe", inference="greedy"),
}
YAML = """\
name: tiny
sizes: [20, 60]
texts:
  small: {files: {en: a.en, de: a.de}, held_out: {every: 5, lines: 2}, other: [strange]}
  strange: {files: {en: b.en}}
methods:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
  greedy: {algorithm: bpe, inference: greedy}
baseline: bpe
generalisation: {min_frequencies: [3], fractions: [2], sizes: [20]}
"""


def write_text(path: Path, seed: int, lines: int) -> None:
    """Write a text of words with common stems and endings, so that some merged tokens end up inside longer ones."""
    draw = random.Random(seed)
    stems, ends = ["would", "could", "mould", "fountain", "mountain", "zona", "l"], ["", "s", "ing", "er", "erö"]
    words = [[draw.choice(stems) + draw.choice(ends) for _ in range(draw.randint(1, 9))] for _ in range(lines)]
    path.write_text("".join(" ".join(line) + "\n" for line in words), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three texts and the YAML of a study of them."""
    folder = tmp_path_factory.mktemp("texts")
    for seed, (name, lines) in enumerate({"a.en": 60, "a.de": 50, "b.en": 8}.items()):
        write_text(folder / name, seed, lines)
    (folder / "study.yaml").write_text(YAML)
    return folder


@pytest.fixture(scope="module")
def text(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CountedText:
    """``a.en``, counted."""
    counted = tmp_path_factory.mktemp("counted")
    return count_text(Text({"en": "a.en"}, HeldOut(5, 2)), {"en": folder / "a.en"}, counted, [2])


def test_a_text_is_divided_by_lines(tmp_path: Path) -> None:
    """Blocks are held out, nothing is in two parts, halves are even and odd lines of what remains."""
    (tmp_path / "text").write_text("".join(f"w{number}\n" for number in range(12)))
    counted = count_text(Text({"en": "text"}, HeldOut(3, 2)), {"en": tmp_path / "text"}, tmp_path / "counts", [4])
    parts = {part: list(counted.words(part).counts) for part in ("train", "even", "odd", "unseen", fraction_name(4))}
    assert sorted(parts["unseen"]) == ["w10", "w11", "w4", "w5"]
    assert sorted(parts["even"]) == ["w0", "w2", "w6", "w8"] and sorted(parts["odd"]) == ["w1", "w3", "w7", "w9"]
    assert sorted(parts["train"]) == sorted(parts["even"] + parts["odd"])
    assert sorted(parts["every-4"]) == ["w0", "w6"]
    assert counted.words("train").lines == 8


def test_a_text_that_changed_back_is_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption while another text was counted, its counts must not pass for those of the first."""
    first, other = "a b\n" * 8, "c d\n" * 8
    path = tmp_path / "text"

    def count(content: str) -> CountedText:
        path.write_text(content)
        return count_text(Text({"en": "text"}, HeldOut(2)), {"en": path}, tmp_path / "counts", [])

    count(first)
    with monkeypatch.context() as patch:
        patch.setattr(texts, "merge_counts", lambda *arguments: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            count(other)
    counted = count(first)
    assert all(set(counted.words(part).counts) == {"a", "b"} for part in ("train", "even", "odd", "unseen"))


@pytest.mark.parametrize("name", ["bpe", "scaffold", "picky", "trimmed", "greedy"])
def test_measures_are_those_of_stats(folder: Path, tmp_path: Path, text: CountedText, name: str) -> None:
    """The same words have the same figures, whichever command measures them."""
    method = METHODS[name]
    learned = learn_vocabulary(method, text.counts(TRAIN), 40, 2)
    lines = (folder / "a.en").read_text(encoding="utf-8").splitlines()
    parts = {
        TRAIN: [line for number, line in enumerate(lines) if number // 2 % 5 != 4],
        UNSEEN: [line for number, line in enumerate(lines) if number // 2 % 5 == 4],
    }
    for part, content in parts.items():
        words = text.words(part)
        ours = measure(learned, words, learned.segment(list(words.counts)))
        assert learned.codes is not None
        (theirs,) = stats([learned.codes], lines=content, inference=method.inference)
        assert (ours.words, ours.bytes, ours.tokens, ours.types) == (
            theirs.words,
            theirs.bytes,
            theirs.tokens,
            theirs.types,
        )
        assert (ours.vocabulary_size, ours.under_100) == (theirs.vocabulary_size, theirs.frequency_under_100)
        assert ours.entropy_bits == pytest.approx(theirs.entropy_bits)
        assert ours.redundancy == pytest.approx(theirs.redundancy)
        assert ours.renyi_efficiency == pytest.approx(theirs.renyi_efficiency[2.5])
        bpe = BPE(learned.codes, inference=method.inference)
        whole = sum(1 for line in content for word in line.split() if " " not in bpe.segment(word))
        assert ours.whole_words == pytest.approx(whole / ours.words)


def test_trimmed_codes_are_filled_again(text: CountedText) -> None:
    """The threshold depends on the last merge, so that tokens are removed and there are pairs to refill from."""
    trimmed, refilled = (learn_vocabulary(METHODS[name], text.counts(TRAIN), 15, 2) for name in ("trimmed", "refilled"))
    assert trimmed.below is not None and trimmed.below > 1
    assert len(trimmed.merged) < 15 == len(refilled.merged)
    assert refilled.complete


@pytest.mark.parametrize("name", [*METHODS])
def test_a_text_without_frequent_pairs(text: CountedText, name: str) -> None:
    """Every method says that it is exhausted; none needs a last merge."""
    learned = learn_vocabulary(METHODS[name], text.counts(TRAIN), 5, 100_000)
    assert not learned.complete and not learned.merged


def test_parity_needs_languages(folder: Path, tmp_path: Path) -> None:
    """It learns from the counted words of each language; a text in one language has no such cell."""
    files = {"en": "a.en", "de": "a.de"}
    text = count_text(Text(files, HeldOut(5)), {each: folder / name for each, name in files.items()}, tmp_path, [])
    learned = learn_vocabulary(of("parity"), text.counts(TRAIN), 20, 2)
    assert learned.complete and len(learned.merged) == 20
    assert applies(of("parity"), "small", files) and not applies(of("parity"), "small", ["en"])
    assert not applies(of("bpe", texts=["large"]), "small", files)


def test_unigram_is_measured_by_its_pieces(text: CountedText) -> None:
    """N counts pieces of more than one character; if the words have fewer, all of them are learned."""
    pytest.importorskip("sentencepiece", reason="comes with the extra 'unigram'")
    learned = learn_vocabulary(of("unigram"), text.counts(TRAIN), 10, 2)
    assert learned.complete and len(learned.merged) == 10
    words = text.words(TRAIN)
    segmented = learned.segment(list(words.counts))
    joined = ["".join(pieces).removeprefix("\u2581") for pieces in segmented]
    assert joined == list(words.counts)
    measures = measure(learned, words, segmented)
    assert measures.vocabulary_size == 10 + len(set("".join(words.counts)) | {"\u2581"})
    too_many = learn_vocabulary(of("unigram"), text.counts(TRAIN), 5000, 2)
    assert not too_many.complete and 10 < len(too_many.merged) < 5000


def test_stability_of_two_vocabularies() -> None:
    """By hand: one of three tokens is in both; `ab` is segmented alike, `xab` is not."""
    even, odd = (of_codes(learn_bpe(lines=lines, num_symbols=2, algorithm="bpe").codes) for lines in (
        ["ab ab ab xab xab"], ["ab ab ab ya ya"]))  # fmt: skip
    assert even.merged == {"ab", "xab"} and odd.merged == {"ab", "ya"}
    assert stability(even, odd, Words({"ab": 3, "xab": 1}, 1)) == Stability(1 / 3, 1 / 2, 3 / 4)
    none = of_codes(even.codes.with_scaffold({"ab</w>", "xab</w>"}))  # type: ignore[union-attr]
    assert not none.merged and stability(none, none, Words({"ab": 3}, 1)) == Stability(1, 1, 1)


def test_scaffold_tokens_have_their_parts() -> None:
    """A scaffold token within another counts with all its parts; of two derivations, the shorter wins."""
    codes = b"#version: 0.2\na b scaffold\nc d\nab cd scaffold\nx y\nabcd xy scaffold\nb cd\na bcd scaffold\n"
    assert parts_of(of_codes(learn_bpe(lines=["ab"]).codes.of(codes)).codes) == {  # type: ignore[arg-type]
        "ab" + INSIDE: 2,
        "abcd" + INSIDE: 2,
        "abcdxy" + INSIDE: 3,
    }
    assert [class_of(frequency) for frequency in (0, 1, 2, 9, 10, 99, 5000)] == [
        "0", "1", "2-9", "2-9", "10-99", "10-99", "1000+"]  # fmt: skip


def test_additional_subwords_add_up(text: CountedText) -> None:
    """The classes cover every word, gain + cost is the difference of the two, and tokens explain the whole cost."""
    bpe, scaffold = (learn_vocabulary(METHODS[name], text.counts(TRAIN), 30, 2) for name in ("bpe", "scaffold"))
    assert scaffold.codes is not None and scaffold.codes.scaffold
    undemolished = of_codes(scaffold.codes.with_scaffold(()))
    train, unseen = text.words(TRAIN), text.words(UNSEEN)
    # Words that cannot have been learned from.
    unseen.counts.update({"wouldn": 2, "ountaining": 3})
    found = compare(bpe, scaffold, undemolished, unseen, train.counts, {})
    for learned, total in ((bpe, found.bpe), (scaffold, found.scaffold)):
        segmented = learned.segment(list(unseen.counts))
        assert total == sum(len(each) * n for each, n in zip(segmented, unseen.counts.values(), strict=True))
    assert sum(share.words for share in found.by_word.values()) == found.words == unseen.total
    assert found.by_word["0"].types >= 2
    difference = sum(share.gain + share.cost for share in found.by_word.values())
    assert difference == found.scaffold - found.bpe
    cost = sum(share.cost for share in found.by_word.values())
    assert cost > 0
    assert sum(found.by_token.values()) == cost == found.by_token["0"]
    assert sum(each.frequency * (each.parts - 1) for each in found.top) <= cost


def test_texts_stand_in_the_order_of_the_configuration(text: CountedText) -> None:
    """The tables of a study are the same bytes for every order of Python's hashes."""
    names = ["h", "c", "g", "a", "f", "b", "e", "d"]
    cell = measure_generalisation("own", 20, 1, 2, {TRAIN: text, **dict.fromkeys(names, text)})
    assert list(cell.on) == [TRAIN, UNSEEN, *names]


def test_the_criterion_of_held_out_text(tmp_path: Path) -> None:
    """By hand: `ould` is scaffold in the even lines and frequent in the odd ones, so that it replaces `zy`."""
    codes = learn_bpe(lines=["ab"]).codes.of(b"#version: 0.2\na b scaffold\nab c\nd e\nf g scaffold\nfg h\n")
    assert [merge.token for merge in first_normal(codes, 2).merges] == ["ab", "abc", "de"]
    assert first_normal(codes, 9).merges == codes.merges
    (tmp_path / "text").write_text("would could would could zy\nould zy\n" * 20)
    text = count_text(Text({"en": "text"}, HeldOut(10, 2)), {"en": tmp_path / "text"}, tmp_path / "counts", [])
    cell = measure_held_out("small", 3, 1, text, {})
    assert cell.complete and cell.least == 18
    # Two of each line are held out: 2 (5 + 4 + 1) subwords with would, could, zy; 2 (6 + 1 + 2) with ould, not zy.
    assert cell.on[UNSEEN].scaffold == 20
    assert cell.on[UNSEEN].criteria[SAME_KIND] == Criterion(1, 18)
    # 18 in 90 words are more than 2 in 14.
    assert cell.on[UNSEEN].criteria[ORACLE] == Criterion(0, 20)


def test_parts_of_the_entropy_add_up(text: CountedText) -> None:
    """They add up to the entropy of all tokens in both vocabularies, and their shares to 1."""
    bpe, scaffold = (learn_vocabulary(METHODS[name], text.counts(TRAIN), 30, 2) for name in ("bpe", "scaffold"))
    train = text.words(TRAIN)
    parts = entropy_by_class(bpe, scaffold, train)
    assert parts["removed"].share_scaffold == 0 == parts["new"].share_bpe
    for learned, name in ((bpe, "bpe"), (scaffold, "scaffold")):
        measures = measure(learned, train, learned.segment(list(train.counts)))
        assert sum(getattr(each, f"bits_{name}") for each in parts.values()) == pytest.approx(measures.entropy_bits)
        assert sum(getattr(each, f"share_{name}") for each in parts.values()) == pytest.approx(1)


def test_a_study_resumes(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell is measured once; after a change of a text or an option, those that depend on it again."""
    monkeypatch.setattr(running, "draw", lambda *arguments: [])
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in ("a.en", "a.de", "b.en"):
        (texts / name).write_bytes((folder / name).read_bytes())
    arguments = ["study", str(folder / "study.yaml"), "--texts", str(texts), "--output", str(tmp_path / "out")]
    assert main(arguments) == 0
    out = tmp_path / "out"
    rows = list(csv.DictReader((out / "measures.csv").read_text(encoding="utf-8").splitlines()))
    assert {(row["method"], row["N"], row["on"]) for row in rows} == {
        (method, size, on)
        for method in ("bpe", "scaffold", "greedy")
        for size in ("20", "60")
        for on in ("train", "unseen", "other")
    }
    cell = read_result(Cell, out / "cells" / "small" / "scaffold-20.json")
    assert cell.complete and cell.merged == 20 and cell.stability is not None
    compared = sorted(path.stem for path in (out / "generalisation" / "small").glob("*.json"))
    assert compared == ["every-1-min-2-20", "every-1-min-2-60", "every-1-min-3-20", "every-2-min-2-20"]
    assert "sha256" in (out / "config.yaml").read_text(encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    value = next(row["bytes_per_token"] for row in rows if row["method"] == "greedy" and row["on"] == "unseen")
    shown = "<h1>tiny</h1>", "N = 60", "Bytes per token, held-out part", f"{float(value):.3f}", "sha256"
    assert all(part in page for part in shown)

    tables = {path: path.read_bytes() for path in out.glob("*.csv")}
    calls: list[str] = []
    run = running._Job.run

    def noted(job: running._Job) -> str:
        calls.append(job.path.stem)
        return run(job)

    monkeypatch.setattr(running._Job, "run", noted)
    assert main(arguments) == 0
    assert calls == [] and {path: path.read_bytes() for path in out.glob("*.csv")} == tables
    (out / "cells" / "small" / "bpe-60.key").unlink()
    changed = YAML.replace("inference: greedy", "inference: greedy, stability: []")
    (tmp_path / "changed.yaml").write_text(changed)
    study(tmp_path / "changed.yaml", out, texts)
    assert sorted(calls) == ["bpe-60", "greedy-20", "greedy-60"]
    calls.clear()
    write_text(texts / "b.en", 9, 9)
    study(tmp_path / "changed.yaml", out, texts)
    assert len(calls) == 11  # everything is also measured on that text


def test_the_order_of_languages_belongs_to_parity(folder: Path, tmp_path: Path) -> None:
    """Parity-aware BPE breaks ties in their order, so that its cells are measured again; other methods ignore it."""
    keys = []
    for number, files in enumerate(("en: a.en, de: a.de", "de: a.de, en: a.en")):
        config = tmp_path / "study.yaml"
        config.write_text(YAML.replace("en: a.en, de: a.de", files).replace("algorithm: scaffold", "algorithm: parity"))
        settings = load_study(config)
        counted = {
            name: count_text(
                text, {each: folder / path for each, path in text.files.items()}, tmp_path / f"{number}{name}", [2]
            )
            for name, text in settings.texts.items()
        }
        keys.append({job.path.stem: job.key for job in running._cells(settings, counted, {}, tmp_path)})
    assert {name for name in keys[0] if keys[0][name] != keys[1][name]} == {"scaffold-20", "scaffold-60"}


def test_processes_end_with_the_study(tmp_path: Path) -> None:
    """After an error or Ctrl-C, no other cell is begun or waited for: each may take minutes."""
    calls: list[Any] = [functools.partial(int, "no number"), *[functools.partial(time.sleep, 60)] * 5]
    jobs = [running._Job(tmp_path / str(number), "", call) for number, call in enumerate(calls)]
    before = multiprocessing.active_children()  # data loaders of other tests
    start = time.monotonic()
    with pytest.raises(ValueError, match="no number"):
        list(running._finished(jobs, 2))
    assert time.monotonic() - start < 30
    assert not set(multiprocessing.active_children()) - set(before)


def test_a_process_that_dies_is_one_line(tmp_path: Path) -> None:
    """After the kernel kills a process that runs out of memory, the others end as well."""
    calls: list[Any] = [functools.partial(os._exit, 9), functools.partial(time.sleep, 60)]
    jobs = [running._Job(tmp_path / str(number), "", call) for number, call in enumerate(calls)]
    with pytest.raises(MTScaffoldError, match=r"a worker process died \(out of memory\?\); run again with fewer"):
        list(running._finished(jobs, 2))


def test_a_cell_killed_while_it_is_written_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its new result must not pass for one of the old settings if these return."""
    call: Any = functools.partial(Stability, 1.0, 1.0, 1.0)
    old, new = (running._Job(tmp_path / "cell.json", key, call) for key in ("old", "new"))
    old.run()
    assert old.is_done() and not new.is_done()

    def killed(path: Path, result: Any) -> None:
        write_result(path, result)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "write_result", killed)
    with pytest.raises(KeyboardInterrupt):
        new.run()
    assert new.path.exists() and not old.is_done() and not new.is_done()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot end a process with its parent")
def test_processes_end_with_a_killed_study(tmp_path: Path) -> None:
    """A batch system's SIGKILL of the study leaves no process behind, waiting for cells for ever."""
    script = f"""
import functools, pathlib
from mt_scaffold.experiment.study.running import _finished, _Job
work = "import os, pathlib, time; pathlib.Path({str(tmp_path)!r}, str(os.getpid())).touch(); time.sleep(60)"
if __name__ == "__main__":
    list(_finished([_Job(pathlib.Path({str(tmp_path)!r}, "none"), "", functools.partial(exec, work))] * 2, 2))
"""
    (tmp_path / "killed.py").write_text(script)
    with subprocess.Popen([sys.executable, str(tmp_path / "killed.py")], cwd=ROOT) as parent:
        wait_until(lambda: len(list(tmp_path.glob("[0-9]*"))) == 2)
        parent.kill()
    wait_until(lambda: not any(is_running(int(path.name)) for path in tmp_path.glob("[0-9]*")))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for up to half a minute for a condition that takes a second."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_figures_have_every_method_and_no_incomplete_size(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One figure per measure; a vocabulary smaller than N would look better or worse than it is."""
    config = tmp_path / "study.yaml"
    config.write_text(YAML.replace("sizes: [20, 60]", "sizes: [20, 5000]"))
    monkeypatch.setattr(running, "draw", lambda *arguments: [])
    out = study(config, tmp_path / "out", folder).parent
    grids: dict[str, list[list[Panel]]] = {}
    monkeypatch.setattr(drawing, "grid_over_sizes", lambda rows, path: grids.setdefault(path.name, rows))
    cells = [read_result(Cell, path) for path in out.glob("cells/*/*.json")]
    compared = [read_result(GeneralisationCell, path) for path in out.glob("generalisation/*/*.json")]
    drawing.draw(load_study(config), cells, compared, tmp_path / "figures")
    assert grids.keys() >= {"bytes-per-token", "entropy", "redundancy", "renyi-efficiency", "seconds", "generalisation"}
    for name, rows in grids.items():
        for panel in (panel for row in rows for panel in row):
            assert {size for points in panel.series.values() for size, _ in points} <= {20}, name
            if not name.startswith("generalisation"):
                assert list(panel.series) == ["bpe", "scaffold", "greedy"]
                assert all(len(points) == 1 for points in panel.series.values()), name
    difference = grids["bytes-per-token"][1][0].series
    assert difference["bpe"] == [(20, 0)] and difference["scaffold"] != [(20, 0)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("baseline: bpe", "baseline: bqe", r"study\.yaml:10: baseline: 'bqe' is not one of the methods"),
        (
            "other: [strange]",
            "other: [stranger]",
            r"study\.yaml:4: texts\.small\.other: 'stranger' is not one of the texts",
        ),
        ("held_out: {every: 5, lines: 2}, other: [strange]", "", "no text has held_out"),
        ("{algorithm: scaffold}", "{algorithm: trimmed}", r"study\.yaml:8: methods\.scaffold\.below: missing"),
        (
            "{algorithm: scaffold}",
            "{algorithm: scaffold, refill: true}",
            "refill: scaffold has no such setting",
        ),
        (
            "{algorithm: scaffold}",
            "{algorithm: picky, treshold: 0.5}",
            r"study\.yaml:8: methods\.scaffold\.treshold: unknown key; did you mean threshold",
        ),
        ("{algorithm: scaffold}", "{algorithm: scafold}", r"methods\.scaffold\.algorithm: must be scaffold or"),
        (
            "{algorithm: scaffold}",
            "{algorithm: unigram, inference: greedy}",
            r"methods\.scaffold\.inference: not possible",
        ),
        ("{algorithm: scaffold}", "{algorithm: scaffold, texts: []}", r"methods\.scaffold\.texts: must not be empty"),
        (
            ", de: a.de}, held_out: {every: 5, lines: 2}, other: [strange]}\n  strange: {files: {en: b.en}}\nmethods:",
            "}, held_out: {every: 5}}\nmethods:\n  p: {algorithm: parity}",
            r"study\.yaml:6: methods\.p: parity needs several languages",
        ),
        ("sizes: [20, 60]", "sizes: [20, 20]", r"study\.yaml:2: sizes: duplicate number"),
        ("fractions: [2]", "fractions: [2, 2]", r"study\.yaml:11: generalisation\.fractions: duplicate number"),
        ("strange", "unseen", r"study\.yaml:5: texts\.unseen: 'unseen' names a part of every text in the results"),
    ],
)
def test_a_wrong_configuration_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    """File, line, key and what to do, before anything is measured."""
    assert old in YAML
    (tmp_path / "study.yaml").write_text(YAML.replace(old, new))
    with pytest.raises(UsageError, match=message) as raised:
        load_study(tmp_path / "study.yaml")
    assert "\n" not in str(raised.value)


RESULTS = ROOT / "docs" / "results" / "intrinsic"
PLACES = {"learned from": "train", "text learned from": "train", "held out": "unseen", "held-out part": "unseen"}


def test_the_page_says_what_the_tables_say() -> None:
    """Subwords, gain and cost: each figure of the tables is that of the CSV files."""
    tokens, gains, costs = {}, Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in csv.DictReader((RESULTS / "measures.csv").read_text("utf-8").splitlines()):
        tokens[row["text"], row["method"], row["N"], row["on"]] = int(row["tokens"])
    complete = {
        (row["text"], row["method"], row["N"])
        for row in csv.DictReader((RESULTS / "learning.csv").read_text("utf-8").splitlines())
        if row["complete"] == "true"
    }
    subwords = Counter[tuple[str, ...]]()
    for row in csv.DictReader((RESULTS / "subwords_by_word.csv").read_text("utf-8").splitlines()):
        if (row["every"], row["min_frequency"]) == ("1", "2"):
            key = row["text"], row["N"], row["on"]
            for counter, name in ((subwords, "bpe"), (gains, "gain"), (costs, "cost")):
                counter[key] += int(row[name])
    checked = Counter[int]()
    for line in (RESULTS / "README.md").read_text("utf-8").splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        if len(cells) == 10 and cells[2] in {*PLACES, "other"}:
            text, method, on, *shown = cells
            sizes = [str(1000 * 2**power) for power in range(7)]
            on = PLACES.get(on, on)
            for size, value in zip(sizes, shown, strict=True):
                baseline = tokens[text, "bpe", size, on]
                known = (text, method, size) in complete
                assert value == (per_cent(tokens[text, method, size, on] - baseline, baseline) if known else "")
        elif len(cells) == 6 and cells[0] in {"multi30k", "mdn_de", "documentation_en"} and cells[3][0] in "+−":
            text, size, on, *shown = cells
            key = text, size.replace(",", ""), PLACES.get(on, on)
            parts = gains[key] + costs[key], gains[key], costs[key]
            assert shown == [per_cent(part, subwords[key]) for part in parts]
        else:
            continue
        checked[len(cells)] += 1
    assert checked == {10: 6, 6: 8}


def per_cent(part: int, whole: int) -> str:
    """Format a difference as on the page."""
    return f"{100 * part / whole:+.2f}".replace("-", "−")
