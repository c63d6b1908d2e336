"""The base class of all methods: one registry; settings that become options, keys and names; one common error."""

from __future__ import annotations

import argparse
import math
import pickle
import sys
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from learning import learn_with

from mt_scaffold import BPE, Codes, UsageError, count_words, learn, learn_bpe
from mt_scaffold import methods as registry
from mt_scaffold.cli import main
from mt_scaffold.commands.learning import add_method, given_method
from mt_scaffold.methods import (
    METHODS,
    Picky,
    PlainBPE,
    RandomlyTrimmed,
    Scaffold,
    Trimmed,
    Unigram,
    make_method,
    methods,
)
from mt_scaffold.methods.base import min_frequency_setting, setting, symbols_setting, total_symbols_setting
from mt_scaffold.methods.bpe import MergingMethod
from mt_scaffold.methods.trimming import trim
from mt_scaffold.segment.draw import NO_DRAW, RESAMPLINGS, Draw, description, training_options

LINES = ["low lower lowest", "low low newer newest", "wide wider widest low"] * 4
# Settings without a default, and some with a value other than the default.
NEEDED: dict[str, dict[str, Any]] = {"trimmed": {"below": 3}}
OTHER: dict[str, dict[str, Any]] = {
    "picky": {"threshold": 0.5},
    "trimmed": {"below": 3, "refill": True},
    "random": {"draw": 2},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_describes_itself(name: str) -> None:
    """The users of the registry rely on this."""
    kind = methods()[name]
    assert kind.name == name and kind.title and METHODS[name].command and kind.suffix.startswith(".")
    assert kind.resampling in RESAMPLINGS
    assert {"symbols", "total_symbols"} <= {*kind.settings()}
    assert all(entry.metadata["help"] for entry in kind.settings().values())
    method = make_method(name, symbols=7, **NEEDED.get(name, {}))
    assert method.amount == 7 and method.label.startswith(f"{name}-7") and "7 symbols" in method.description
    labels = {make_method(name, **{**NEEDED.get(name, {}), **settings}).label for settings in ({}, {"symbols": 7})}
    assert len(labels) == 2


def test_names_of_files_stay_as_they_are() -> None:
    """Experiments find their codes by these names."""
    assert PlainBPE(4000).label == "bpe-4000"
    assert Scaffold(4000, min_frequency=5).label == "scaffold-4000-min5"
    assert Picky(4000, total_symbols=True, threshold=0.7).label == "picky-4000-total-ios0.7"
    assert Trimmed(4000, below=20, refill=True, min_frequency=5).label == "trimmed-4000-below20-refill-min5"
    assert RandomlyTrimmed(50, draw=2).label == "random-50-draw2"
    assert Unigram(50, total_symbols=True).label == "unigram-50-total"


@pytest.mark.parametrize("name", methods("learn-bpe"))
def test_the_options_of_a_method_give_it_back(name: str) -> None:
    """Every setting is an option of ``learn-bpe`` with the same value."""
    parser = argparse.ArgumentParser()
    add_method(parser)
    for settings in ({}, {"symbols": 7, "min_frequency": 3, "total_symbols": True, **OTHER.get(name, {})}):
        method = make_method(name, **settings)
        options = ["--algorithm", name]
        for key, value in method.given.items():
            option = f"--{key.replace('_', '-')}"
            options += [option] * value if isinstance(value, bool) else [option, str(value)]
        assert given_method(parser.parse_args(options)) == method


def test_a_wrong_setting_is_one_error_that_lists_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and as an option; values out of range are refused by the method itself."""
    says = "bpe has no such setting; its settings are symbols, min_frequency, total_symbols"
    with pytest.raises(UsageError, match=f"^{says}$"):
        make_method("bpe", threshold=0.7)
    assert main(["learn-bpe", "--algorithm", "bpe", "--threshold", "0.7"]) == 2
    assert capsys.readouterr().err == f"mt-scaffold: --threshold: {says}\n"
    with pytest.raises(
        UsageError, match="algorithm 'bpa'; choose one of scaffold, bpe, picky, trimmed, random, unigram"
    ):
        make_method("bpa")
    for call in (
        lambda: PlainBPE(0),
        lambda: Picky(threshold=0),
        lambda: Trimmed(below=1.5),
        lambda: Unigram(-1),
    ):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(UsageError, match="choose one of scaffold, bpe, picky"):
        learn_bpe(lines=LINES, algorithm="unigram")


def test_learning_with_an_object(tmp_path: Path) -> None:
    """The file contains what is returned; learn_bpe learns the same; words can be counted beforehand."""
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    learned = learn(tmp_path / "text", Scaffold(symbols=9), tmp_path / "codes")
    assert (tmp_path / "codes").read_bytes() == learned.text == learn_bpe(lines=LINES, num_symbols=9).text
    assert Scaffold(9).learn(count_words(lines=LINES)).text == learned.text
    assert learn(lines=LINES, method=Picky(9, threshold=0.4)).codes.header.picky
    assert learn_with(lines=LINES, num_symbols=9, algorithm="picky", threshold=0.4).codes.header.picky


@pytest.mark.parametrize("refill", [False, True])
def test_trimmed_is_bpe_that_is_trimmed(refill: bool) -> None:
    """One call does the same as learn-bpe and trim; below 1, it takes a share of the frequency of the last merge."""
    bpe = learn(lines=LINES, method=PlainBPE(12)).codes
    marked = trim(bpe, lines=LINES, below=9, refill="same" if refill else None, min_frequency=2)
    learned = learn(lines=LINES, method=Trimmed(12, below=9, refill=refill))
    assert learned.text == marked.codes.text and learned.scaffold > 0 and learned.marked_below == 9
    last = bpe.merges[-1].token.removesuffix("</w>")
    frequency = sum(line.split().count(last) for line in LINES)
    share = learn(lines=LINES, method=Trimmed(12, below=0.5))
    assert frequency and share.marked_below == -(-frequency // 2)
    assert trim(bpe, lines=LINES, below=0.5).codes.text == share.text


def test_words_of_the_wrong_kind_are_refused() -> None:
    """A Unigram model has no bytes and no steps."""
    for options in ({"pretokenise": "gpt2"}, {"byte_level": True}):
        with pytest.raises(UsageError, match="unigram learns from words between spaces"):
            learn(lines=LINES, method=Unigram(5), **options)
    with pytest.raises(UsageError, match="no merges to show"):
        learn(lines=LINES, method=Unigram(5), verbose=True)


def test_a_new_method_is_a_file_and_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command and Python then know it, with its own setting, and nothing else changes."""

    @dataclass(frozen=True)
    class Half(MergingMethod):
        """Learns half as many merges."""

        name: ClassVar[str] = "half"
        title: ClassVar[str] = "half a BPE"
        symbols: int = symbols_setting("number of merges")
        share: int = setting("learn this part", default=2, least=1, label="-share{}", metavar="S")
        min_frequency: int = min_frequency_setting()
        total_symbols: bool = total_symbols_setting()

    module = types.ModuleType("mt_scaffold.methods.half")
    monkeypatch.setattr(module, "Half", Half, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry.METHODS, "half", registry.Entry("Half", "half"))

    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    files = ["--input", str(tmp_path / "text"), "--output", str(tmp_path / "codes")]
    assert main(["learn-bpe", "--algorithm", "half", "--symbols", "5", "--share", "3", *files]) == 0
    assert len(Codes.read(tmp_path / "codes").merges) == 5
    assert main(["learn-bpe", "--algorithm", "bpe", "--share", "3", *files]) == 2
    assert learn(lines=LINES, method=Half(5)).merges == 5


def test_systems_have_the_keys_of_every_method() -> None:
    """A system names each method, with its settings; one of a language model, those that learn from bytes."""
    systems = pytest.importorskip("mt_scaffold.experiment.configuration.systems", reason="needs the extra 'workflow'")
    kinds = registry.methods()
    assert [*systems.System.algorithms] == [*kinds]
    assert [*systems.LanguageModelSystem.algorithms] == [name for name, kind in kinds.items() if kind.has_codes]
    for system in (systems.System, systems.LanguageModelSystem):
        hints = typing.get_type_hints(system)
        for name in system.algorithms:
            own = typing.get_type_hints(kinds[name])
            assert all(hints[setting] == own[setting] | None for setting in kinds[name].settings())
    picky = systems.System.from_keys({"algorithm": "picky", "threshold": 0.7})
    assert picky.segmentation(systems.Learn(symbols=100), ("en", "de")).name == "picky-100-ios0.7"
    with pytest.raises(systems.WrongValue, match=r"^threshold: scaffold has no such setting; its settings are symbols"):
        systems.System.from_keys({"algorithm": "scaffold", "threshold": 0.7})


def test_a_draw_reaches_the_encoder_as_it_is() -> None:
    """It segments like the equivalent options of a public call; nothing is drawn for 0."""
    bpe = BPE(learn_bpe(lines=LINES, num_symbols=30, min_frequency=1).codes)
    encoder = bpe.encoder({form: number for number, form in enumerate(bpe.surface_forms())}, 1000)

    def ids(draw: Draw) -> list[int]:
        return [*encoder.ids_of(LINES, draw, range(len(LINES)))[0]]

    plain = [*encoder.encode(LINES)[0]]
    assert not NO_DRAW and ids(NO_DRAW) == plain == ids(Draw("sampling_alpha"))
    assert ids(Draw("dropout", 0.5, 3, 1)) == [*encoder.encode(LINES, 0.5, 3, 1)[0]] != plain
    dropout = Draw("dropout", 0.5, 3)
    assert ids(dropout.at(1)) == [*encoder.encode(LINES, 0.5, 3, 1)[0]]
    assert training_options((dropout, NO_DRAW)) == {"bpe-dropout-src": 0.5, "bpe-dropout-tgt": 0.0}
    assert training_options((Draw("sampling_alpha", 0.2),) * 2) == {"sampling-alpha": 0.2}
    assert description((NO_DRAW, dropout)) == "BPE-dropout 0 and 0.5"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        *(((kind, amount), "must be") for kind in RESAMPLINGS for amount in (-1, math.nan)),
        (("dropout", 1.5), "the dropout probability must be between 0 and 1, not 1.5"),
        (("dropout", 0.1, 2**64), "the seed must fit into 64 bits"),
        (("dropout", 0.1, 1, -1), "the epoch must be 0 or more and fit into 64 bits, not -1"),
        (("dropout", 0.1, None, 2), "epoch 2 is random without a seed; give one"),
        (("mixing",), "there is no kind of resampling 'mixing'; choose one of dropout, sampling_alpha"),
    ],
)
def test_a_draw_is_checked_when_it_is_made(fields: tuple[Any, ...], problem: str) -> None:
    """So that no function that receives it has to check it again."""
    with pytest.raises(UsageError, match=problem):
        Draw(*fields)


def test_a_draw_has_a_seed_or_draws_one() -> None:
    """The core takes 64 bits, the two's complement of a negative seed; without a seed, every use draws another."""
    assert Draw(seed=-1).core_seed == 2**64 - 1 and Draw(seed=5).at(9) == ("dropout", 0.0, 5, 9)
    assert len({Draw("dropout", 0.1).core_seed for _ in range(5)}) == 5
    assert pickle.loads(pickle.dumps(Draw("dropout", 0.1, 3, 4))) == Draw("dropout", 0.1, 3, 4)
