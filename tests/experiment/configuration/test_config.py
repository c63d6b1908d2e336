"""The experiment configuration: what is accepted, what is filled in, and one clear line for everything else."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, load_config, load_experiment, parse_experiment
from mt_scaffold.experiment.configuration.layout import requested_experiment
from mt_scaffold.experiment.configuration.overrides import overridden
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.experiment.tasks.codes import learned_codes, made_codes, trimmed_codes
from mt_scaffold.methods import PlainBPE, Trimmed

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))

SMALL = """\
name: small
languages: {source: en, target: de}
data:
  files:
    train:
      - source: {path: train.en}
        target: {url: "https://example.org/train.de.gz", sha256: %s}
    valid:
      - source: {path: valid.en}
        target: {path: valid.de}
    tests:
      news:
        - source: {path: news.en}
          target: {path: news.de}
codes:
  symbols: 100
systems:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
baseline: bpe
train:
  options: {arch: transformer, lr: 0.001, share-all-embeddings: true}
""" % ("a" * 64)


def load(tmp_path: Path, text: str, **arguments: Any) -> Config:
    path = tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, **arguments)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_of_the_project_loads_under_its_own_name(path: Path) -> None:
    """A configuration that does not load, or that writes into another one's folder, is useless."""
    config = load_experiment(path)
    assert config.name == path.stem
    assert {"bpe", "scaffold"} <= {system.algorithm for system in config.systems.values()}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_to_dict_is_read_back_as_the_same_configuration(path: Path) -> None:
    """The resolved configuration kept with an experiment must be the one that was run."""
    config = load_experiment(path)
    assert parse_experiment(config.to_dict()) == config


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    """A short configuration is a complete one."""
    config = load(tmp_path, SMALL)
    assert (config.codes.min_frequency, config.clean.max_ratio, config.seeds, config.average.last) == (2, 1.5, [1], 5)
    assert config.tokenise.aggressive_dash_splitting
    assert config.test_sets == ["news"]
    assert not config.synthetic


def test_overrides_replace_values_of_the_file(tmp_path: Path) -> None:
    """``--config`` changes only the values that it names."""
    config = load(
        tmp_path, SMALL, overrides={"data": {"sample": 7}, "seeds": [3, 4], "train": {"options": {"lr": 0.1}}}
    )
    assert (config.data.sample, config.seeds, config.train.options["lr"]) == (7, [3, 4], 0.1)
    assert config.train.options["arch"] == "transformer"


def test_an_override_takes_the_place_of_what_excludes_it(tmp_path: Path) -> None:
    """A rehearsal must be able to change with --set how trainings end, and no other key may be lost."""
    file = {"train": {"stop": {"epochs": 40}, "patience": 3}}
    assert overridden(file, {"train": {"stop": {"updates": 5}}}) == {"train": {"stop": {"updates": 5}, "patience": 3}}
    assert overridden(file, {"train": {"stop": {"updates": None}}})["train"]["stop"]["epochs"] == 40
    assert overridden(file, {"train": {"options": {"max-update": 5}}})["train"] == {
        "patience": 3,
        "options": {"max-update": 5},
    }
    options = {"max-update": 9, "lr": 1}
    file = {"train": {"options": options, "batches": {"small": {"options": options}}}}
    changed = {"options": {"lr": 1}, "batches": {"small": {"options": {"lr": 1}}}, "stop": {"tokens": 5}}
    assert overridden(file, {"train": {"stop": {"tokens": 5}}}) == {"train": changed}
    assert overridden(file, {"train": {"options": {"lr": 2}}})["train"]["options"] == {"max-update": 9, "lr": 2}
    comparisons = {"comparisons": {"tokens": {"tokens": 9}, "text": {"text_of": "tokens"}}}
    changed = {"tokens": {"text": 5}, "text": {"text_of": "tokens"}, "more": {"tokens": 7}}
    given = {"comparisons": {"tokens": {"text": 5}, "more": {"tokens": 7}}}
    assert overridden(comparisons, given) == {"comparisons": changed}
    synthetic = {"data": {"synthetic": {"pairs": 5}, "sample": 3}}
    assert overridden(synthetic, {"data": {"files": {"tests": {}}}}) == {"data": {"files": {"tests": {}}, "sample": 3}}
    # Overrides that contradict each other are the user's mistake.
    with pytest.raises(UsageError, match=r"train\.stop: give exactly one of .*\(given: updates and epochs\)"):
        load(tmp_path, SMALL, overrides={"train": {"stop": {"updates": 5, "epochs": 6}}})


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("symbols: 100", "simbols: 100", 16, "codes.simbols: unknown key; did you mean symbols?"),
        ("{path: valid.en}", "{pth: valid.en}", 9, "data.files.valid[0].source.pth: unknown key; did you mean path?"),
        ("symbols: 100", "symbols: many", 16, "codes.symbols: must be a whole number, not 'many'"),
        ("symbols: 100", "symbols: 1.5", 16, "codes.symbols: must be a whole number, not 1.5"),
        ("symbols: 100", "symbols: 0", 16, "codes.symbols: must be 1 or more, not 0"),
        ("symbols: 100", "min_frequency: 2", 15, "codes.symbols: missing"),
        ("source: en, target: de", "source: en, target: en", 2, "languages.target: source and target are the same"),
        ("source: en", "source: no", 2, "languages.source: must be text, not false (quote text"),
        ("algorithm: bpe", "algorithm: bpa", 18, "systems.bpe.algorithm: must be scaffold or bpe or picky or trimmed"),
        (
            "algorithm: bpe",
            'algorithm: "b\\np"',
            18,
            "systems.bpe.algorithm: must be scaffold or bpe or picky or trimmed or random or unigram, not 'b\\np'",
        ),
        ("algorithm: bpe", "algorithm: parity", 18, "systems.bpe.algorithm: 'parity' was removed; learn parity-aware"),
        ("algorithm: bpe", "algorithm: picky, threshold: 0", 18, "systems.bpe.threshold: the threshold of PickyBPE m"),
        ("algorithm: bpe", "algorithm: bpe, dropout: 1.5", 18, "systems.bpe.dropout: the dropout probability must b"),
        ("  bpe: {", "  b pe: {", 18, "systems.b pe: not a valid name"),
        ("  bpe: {", "  report.html: {", 18, "systems.report.html: reserved for a folder or file"),
        ("algorithm: scaffold", "algorithm: scaffold, baseline: scaffold", 19, "systems.scaffold.baseline: a system"),
        ("algorithm: bpe", "algorithm: trimmed", 18, "systems.bpe.below: missing: give it, to mark tokens rarer than"),
        ("algorithm: bpe", "algorithm: bpe, below: 9", 18, "systems.bpe.below: bpe has no such setting; its settings"),
        ("algorithm: bpe", "codes: a, below: 9", 18, "systems.bpe.below: has no effect on codes that are given"),
        (
            "algorithm: bpe",
            "algorithm: bpe, joint: false, symbols: 1, symbols_source: 2, symbols_target: 3",
            18,
            "systems.bpe.symbols: has no effect with both symbols_source",
        ),
        ("algorithm: bpe", "algorithm: bpe, glossaries: ['(?']", 18, "systems.bpe.glossaries[0]: the glossary '(?' is"),
        ("codes:", "binarise: {joined_dictionary: false}\ncodes:", 23, "train.options.share-all-embeddings: contrad"),
        ("baseline: bpe", "baseline: bp", 20, "baseline: no system is called bp; did you mean bpe?"),
        ("name: small", "name: ../small", 1, "name: must be a letter or digit"),
        ("      news:", "      train:", 12, "data.files.tests.train: a test set cannot be called"),
        (", sha256: " + "a" * 64, "", 7, "data.files.train[0].target: a url needs its sha256"),
        ("a" * 64, "'12'", 7, "data.files.train[0].target.sha256: must be 64 hexadecimal digits"),
        ("https://", "file://", 7, "data.files.train[0].target.url: must be an http or https address"),
        ("{path: valid.en}", "{}", 9, "data.files.valid[0].source: give either url or path"),
        ("  files:", "  synthetic: {}\n  files:", 3, "data: give exactly one of synthetic, files"),
        ("codes:", "clean: {min_tokens: 9, max_tokens: 3}\ncodes:", 15, "clean.min_tokens: more than clean.max_tokens"),
        ("codes:", "clean: {max_ratio: .nan}\ncodes:", 15, "clean.max_ratio: must be a finite number"),
        ("codes:", "seeds: [1, 1]\ncodes:", 15, "seeds: duplicate seed"),
        ("codes:", "seeds: []\ncodes:", 15, "seeds: must not be empty"),
        ("codes:", f"seeds: [{2**32 + 1}]\ncodes:", 15, "seeds[0]: a seed must be from 0 to 4000000000"),
        ("codes:", "seeds: [010]\ncodes:", 15, "YAML reads 010 to the base 8"),
        ("codes:", "seeds: [1:40]\ncodes:", 15, "YAML reads 1:40 to the base 60"),
        ("codes:", "clean: {max_ratio: 15e-1}\ncodes:", 15, "clean.max_ratio: must be a number, not '15e-1', which is"),
        ("codes:", "seeds: 1\ncodes:", 15, "seeds: must be a list, not 1"),
        ("codes:", "tokenise: 'off'\ncodes:", 15, "tokenise: must be none or 'key: value' lines, not 'off'"),
        ("codes:", "tokenise: {source: {target: none}}\ncodes:", 15, "tokenise.source.target: a side has no sides"),
        ("codes:", "tokenise: {lowercased: 1}\ncodes:", 15, "tokenise.lowercased: unknown key; did you mean lowercase"),
        ("lr: 0.001", "--lr: 0.001", 22, "train.options.--lr: not a valid name"),
        ("lr: 0.001", "lr: {a: 1}", 22, "train.options.lr: must be true, false, a number"),
        ("train:\n  o", "train:\n  batch: b\n  batches: {a: {options: {}}}\n  o", 22, "train.batch: give one of a"),
        ("name: small", "name: small\nname: other", 2, "name: duplicate key"),
        ("  symbols: 100", "  symbols: [100", 17, "not valid YAML"),
    ],
)
def test_a_wrong_value_is_one_line_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    """The user can go straight to the mistake."""
    assert old in SMALL
    with pytest.raises(UsageError) as raised:
        load(tmp_path, SMALL.replace(old, new, 1))
    assert str(raised.value).startswith(f"{tmp_path / 'small.yaml'}:{line}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "just text", "- a\n- list\n", "name: \x00", "? {a: 1}\n: 2\n"])
def test_a_file_that_is_not_a_configuration_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever YAML it holds, the error is one of ours."""
    with pytest.raises(UsageError):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ("2001-99-99", "not valid YAML: month must be in 1..12"),
        ("!!int ''", "not valid YAML"),
        ("!!bool maybe", "not valid YAML"),
        ("!!timestamp today", "not valid YAML"),
        ("&x [*x]", "nested too deeply or recursively"),
        ("[" * 3000 + "]" * 3000, "nested too deeply or recursively"),
    ],
    ids=["date", "integer", "truth", "time", "itself", "deep"],
)
def test_yaml_that_python_stumbles_over_is_refused(tmp_path: Path, symbols: str, message: str) -> None:
    """No traceback for a value that PyYAML cannot construct."""
    with pytest.raises(UsageError, match=rf"small.yaml: {message}"):
        load(tmp_path, SMALL.replace("symbols: 100", f"symbols: {symbols}"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("seeds: [LARGE]", r"seeds\[0\]: must be a number of at most 64 bits, not one of 20,000 bits"),
        ("description: LARGE", "description: must be text, not one of 20,000 bits"),
        ("train: {options: {lr: LARGE}}", "lr: must be a number of at most 64 bits"),
        ("train: {options: {lr: [1, LARGE]}}", "lr: must be a number of at most 64 bits"),
        ("train: {beam: LARGE}", "beam: "),
        ("train: {options: {dropout: -LARGE}}", "dropout: must be"),
        ("? LARGE\n: 1", "one of 20,000 bits: unknown key"),
        ("systems: {? LARGE : {symbols: 1}}", "systems.one of 20,000 bits: not a valid name"),
        ("task: LARGE", "task: must be .*, not one of 20,000 bits"),
    ],
)
def test_a_number_that_python_does_not_write_is_one_line(tmp_path: Path, line: str, says: str) -> None:
    """A number of 5,000 digits, even as a key, once raised an error from within the message."""
    key, large = line.partition(":")[0], "0x" + "F" * 5000
    kept = "".join(part for part in re.split(r"^(?=\w)", SMALL, flags=re.MULTILINE) if not part.startswith(f"{key}:"))
    with pytest.raises(UsageError, match=says):
        load(tmp_path, f"{kept}{line.replace('LARGE', large)}\n")


def aliases(levels: int) -> list[str]:
    """Return lists of ten aliases to the previous list; the last expands to 10 to the power of ``levels`` values."""
    own = "[" + ", ".join("1" for _ in range(10)) + "]"
    return [f"&a0 {own}", *(f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels))]


@pytest.mark.parametrize("levels", [5, 9, 500])
def test_aliases_that_expand_to_too_much_are_refused(tmp_path: Path, levels: int) -> None:
    """A few lines cannot expand to 10^500 values: each node is visited once, in a file and in --set alike."""
    bomb = "".join(f"a{number}: {entry}\n" for number, entry in enumerate(aliases(levels)))
    with pytest.raises(UsageError, match=r"small\.yaml: its aliases expand to more than 10,000 values"):
        load(tmp_path, SMALL + bomb)
    with pytest.raises(UsageError, match="--config: its aliases expand to more than 10,000 values"):
        settings_from([f"seeds=[{', '.join(aliases(levels))}]"])
    merges = "".join(f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 10)}], k{n}: 1}}\n" for n in range(1, levels))
    with pytest.raises(UsageError, match=r"small\.yaml: its aliases expand to more than 10,000 values"):
        load(tmp_path, f"{SMALL}b0: &b0 {{k: 1}}\n{merges}")


def test_a_check_refuses_aliases_before_they_cost_anything(tmp_path: Path) -> None:
    """A file of 400 bytes took a minute and 6 GB; now it takes little more than a missing file, and one line."""
    bomb = "".join(f"a{number}: {entry}\n" for number, entry in enumerate(aliases(8)))
    (tmp_path / "bomb.yaml").write_text(bomb, encoding="utf-8")

    def check(name: str) -> tuple[int, int, bytes]:
        """Return the exit status, the peak in KiB, and what is printed to stderr."""
        command = [sys.executable, "-m", "mt_scaffold", "check", str(tmp_path / name)]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        ) as process:
            assert process.stderr is not None
            printed = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used.ru_maxrss, printed

    status, peak, printed = check("bomb.yaml")
    assert status == 2 and printed.count(b"\n") == 1 and b"its aliases expand to more than 10,000 values" in printed
    assert peak < check("missing.yaml")[1] + 200 * 1024


def test_aliases_are_read(tmp_path: Path) -> None:
    """They may repeat a value."""
    text = SMALL.replace("symbols: 100", "symbols: &amount 100") + "seeds: [*amount, 2]\n"
    assert load(tmp_path, text).seeds == [100, 2]


def test_numbers_of_any_length_are_compared_with_their_bounds(tmp_path: Path) -> None:
    """An integer too large for a float is out of range, not a crash."""
    with pytest.raises(UsageError, match=r"systems\.bpe\.dropout: the dropout probability must be between 0 and 1"):
        load(tmp_path, SMALL.replace("algorithm: bpe", "algorithm: bpe, dropout: 1" + 400 * "0"))


def test_given_codes_of_each_side_belong_to_their_language(tmp_path: Path) -> None:
    """Their statistics are of that side's text; a file for both sides is measured on both."""
    systems = "algorithm: bpe}\n  sides: {codes_source: a.bpe, codes_target: b.bpe}\n  same: {codes: a.bpe}"
    config = load(tmp_path, SMALL.replace("algorithm: bpe}", systems))
    sides, same = config.segmentation("sides"), config.segmentation("same")
    assert (sides.source.languages, sides.target.languages) == (("en",), ("de",))
    assert same.codes[0].languages == ("en", "de") and len({sides.source.name, sides.target.name, same.name}) == 3


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    """A Latin-1 file is reported, not half read."""
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"description: \xe4\n")
    with pytest.raises(UsageError, match="not valid YAML"):
        load_config(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error is about the path that was given."""
    with pytest.raises(MTScaffoldError, match=r"none\.yaml"):
        load_config(tmp_path / "none.yaml")


def test_the_command_shows_the_error_and_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr, and nothing written."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("symbols", "simbols"), encoding="utf-8")
    assert main(["get-data", "--config", str(path), "--output-dir", str(tmp_path / "raw")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean symbols?" in error
    assert not (tmp_path / "raw").exists()


def test_trimmed_codes_are_made_of_those_of_bpe(tmp_path: Path) -> None:
    """Different settings have different names; BPE codes are learned once, whether a system uses them or not."""
    trimmed = "algorithm: trimmed, below: 9, min_frequency: 3"
    systems = f"{trimmed}}}\n  refilled: {{{trimmed}, refill: true}}\n  sides: {{{trimmed}, joint: false}}\n"
    systems += "  t: {algorithm: bpe, dropout: 0.1, vocabulary_threshold: 2"
    config = load(tmp_path, SMALL.replace("algorithm: bpe", systems))
    assert [config.segmentation(name).name for name in config.systems] == [
        "trimmed-100-below9-min3",
        "trimmed-100-below9-refill-min3",
        "trimmed-100-below9-min3.en+trimmed-100-below9-min3.de",
        "bpe-100-threshold2",
        "scaffold-100",
    ]
    learned = ["bpe-100", "scaffold-100", "bpe-100-min3", "bpe-100-min3.en", "bpe-100-min3.de"]
    assert learned_codes(config) == learned and trimmed_codes(config) == [
        name for name in config.all_codes if name.startswith("trimmed")
    ]
    untrimmed = made_codes(config)["bpe-100-min3.de"]
    assert untrimmed.method == PlainBPE(symbols=100, min_frequency=3)
    for name, refill in (("trimmed-100-below9-min3", False), ("trimmed-100-below9-refill-min3", True)):
        assert made_codes(config)[name].method == Trimmed(symbols=100, below=9, refill=refill, min_frequency=3)


def test_only_chooses_systems_and_forgets_none(tmp_path: Path) -> None:
    """A part of a study can be run first without changing shared steps; an unknown system is refused."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    whole = requested_experiment([path], {})
    assert whole.systems == ["bpe", "scaffold"]
    assert requested_experiment([path], {"only": "[scaffold, bpe]"}) == whole
    assert requested_experiment([path], {"only": "scaffold"}) == whole._replace(systems=["scaffold"])
    with pytest.raises(UsageError, match=r"only: no system 'picky' \(there are bpe, scaffold\)"):
        requested_experiment([path], {"only": ["picky"]})
    for nothing in ("[]", "3", "{bpe: 1}", "[3]"):
        with pytest.raises(UsageError, match="only: give one or more systems"):
            requested_experiment([path], {"only": nothing})
