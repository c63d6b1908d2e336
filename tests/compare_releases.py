"""Compare the output of two releases for the same texts, byte for byte: a check before a release, not a test.

The old release is checked out in a separate work tree and its core is built. Both then run the same commands, each in a
separate folder and only through ``python -m mt_scaffold``, so that internal changes do not matter. Compared are the
codes, subwords, vocabularies, words, fairseq data folders, ids and vocabularies of other programs of

- ``tests/vectors``;
- Multi30k, if it is available;
- the generated corpus of ``configs/demo.yaml``, up to the trainings; with ``--demo`` also the whole experiment, and a
  short one with language models on the same text.

Both use the generated text and the configurations of this release, because either may change between releases. Logs,
versions and times are not compared. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "tests" / "vectors"
ALGORITHMS = ("bpe", "scaffold")
# Files of a whole experiment without versions, times or generated ids of figures.
RESULTS = (
    "codes/*",
    "raw/*",
    "words/*",
    "dictionaries/*/*",
    "binarised/*/*",
    "test-sets/*/*/*",
    "*/seed-*/scores/*.json",
    "*/seed-*/translations/*",
    "comparison.*",
    "data-report.json",
    "statistics.json",
)
EXPERIMENTS = ("translation", "language-models")
# Descriptions that a release may change; the described files are compared.
NOT_RESULTS = (".log", ".generate.txt", "binarised.json", "segmentation.json", ".manifest.json")
# Keys of JSON files.
_NOT_COMPARED = {"versions", "figures"}


@dataclass
class Release:
    """A checkout with its core, and the folder in which it works."""

    name: str
    checkout: Path
    folder: Path

    @property
    def snakefile(self) -> Path:
        """The workflow, which was not always in the package."""
        own = self.checkout / "mt_scaffold" / "experiment" / "workflow" / "Snakefile"
        return own if own.exists() else self.checkout / "scripts" / "Snakefile"

    def run(self, command: list[str]) -> None:
        """Run Python with ``command`` in the release's folder; exit if it fails."""
        environment = os.environ | {"PYTHONPATH": str(self.checkout), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            sys.exit(f"{self.name} release: python {shlex.join(command)} (in {self.folder}) failed:\n{end}")

    def build(self) -> None:
        """Build the core in place, and make sure that Python imports this package."""
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=self.checkout, check=True, stdout=sys.stderr)
        package = self.checkout / "mt_scaffold"
        self.run(["-c", f"import mt_scaffold._core as core; assert core.__file__.startswith({str(package)!r}), core"])

    def artefacts(self) -> dict[str, Path]:
        """Return the files that the commands have written, by name."""
        found = {}
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            name = path.relative_to(self.folder)
            parts = name.parts
            if path.name.startswith(".") or path.name.endswith(NOT_RESULTS) or ".snakemake" in parts:
                continue
            if parts[0] in EXPERIMENTS and not any(Path(*parts[1:]).match(pattern) for pattern in RESULTS):
                continue
            found[str(name)] = path
        return found


@dataclass
class Both:
    """The two releases, which run the same commands."""

    old: Release
    new: Release

    def run(self, command: str, *more: object) -> None:
        """Run ``mt-scaffold`` in both. more: arguments that may contain spaces."""
        arguments = [*command.split(), *map(str, more)]
        for release in (self.old, self.new):
            release.run(["-m", "mt_scaffold", *arguments])

    def make_folder(self, name: str) -> None:
        """Make a folder in both, for commands that do not make that of their output."""
        for release in (self.old, self.new):
            (release.folder / name).mkdir(parents=True, exist_ok=True)


def run_vectors(both: Both) -> None:
    """Learn from each corpus of the vectors and segment its probe."""
    for vector in sorted(path for path in VECTORS.iterdir() if path.is_dir()):
        folder = f"vectors/{vector.name}"
        both.make_folder(folder)
        options = (vector / "options.txt").read_text(encoding="utf-8").split()
        for algorithm in ALGORITHMS:
            codes = f"{folder}/{algorithm}.codes"
            both.run(f"learn-bpe --algorithm {algorithm} --output {codes} --input", vector / "corpus.txt", *options)
            segmented = f"{folder}/{algorithm}.segmented"
            both.run(f"apply-bpe --codes {codes} --output {segmented} --input", vector / "probe.txt")


def run_multi30k(both: Both, texts: Path) -> None:
    """Learn from the raw training text and segment it in several ways; prepare the small files for fairseq."""
    both.make_folder("multi30k/words")
    train = {language: texts / f"train.{language}.gz" for language in ("en", "de")}
    codes = {(algorithm, n): f"multi30k/{algorithm}.{n}.codes" for algorithm in ALGORITHMS for n in (4000, 8000)}
    for (algorithm, symbols), path in codes.items():
        both.run(f"learn-bpe --algorithm {algorithm} --symbols {symbols} --output {path} --input", *train.values())
        for language, text in train.items():
            output = f"{path}.train.{language}"
            both.run(f"apply-bpe --codes {path} --output {output} --input", text)
            both.run(f"get-vocab --input {output} --output {output}.vocabulary")
            both.run(f"apply-bpe --codes {path} --output {output}.dropout --dropout 0.1 --seed 1 --input", text)
    for algorithm in ALGORITHMS:
        joint = f"multi30k/{algorithm}.joint"
        vocabularies = {language: f"{joint}.vocabulary.{language}" for language in train}
        both.run(
            f"learn-joint-bpe-and-vocab --algorithm {algorithm} --symbols 4000 --output {joint}.codes "
            f"--write-vocabulary {' '.join(vocabularies.values())} --input",
            *train.values(),
        )
        for language, text in train.items():
            both.run(
                f"apply-bpe --codes {joint}.codes --vocabulary {vocabularies[language]} --vocabulary-threshold 10 "
                f"--output {joint}.train.{language} --input",
                text,
            )
    for part in ("val", "test_2016_flickr", "test_2017_flickr"):
        for language in ("en", "de"):
            words = f"multi30k/words/{part}.uncleaned.{language}"
            both.run(
                f"tokenise --language {language} --output {words} --report {words}.json --input",
                texts / f"{part}.{language}.gz",
            )
        clean(both, f"multi30k/words/{part}", "en", "de")
    # The validation set in place of the training set, which would take minutes.
    parts = ("val", "test_2016_flickr", "test_2017_flickr")
    by_algorithm = {algorithm: codes[algorithm, 4000] for algorithm in ALGORITHMS}
    binarise(both, "multi30k", parts, by_algorithm, "en", "de")


def clean(both: Both, prefix: str, source: str, target: str) -> None:
    """Drop pairs, in both."""
    sides = {"source": source, "target": target}
    inputs = " ".join(f"--{side} {prefix}.uncleaned.{language}" for side, language in sides.items())
    outputs = " ".join(f"--output-{side} {prefix}.{language}" for side, language in sides.items())
    both.run(f"clean {inputs} {outputs} --max-ratio 3.0 --report {prefix}.clean.json")


def binarise(both: Both, folder: str, parts: tuple[str, ...], codes: dict[str, str], source: str, target: str) -> None:
    """Make the data folders of ids and of words, from FOLDER/words; ``parts`` are train, valid and tests."""
    for algorithm, path in codes.items():
        both.make_folder(f"{folder}/{algorithm}.subwords")
        for part in parts:
            for language in (source, target):
                both.run(
                    f"apply-bpe --codes {path} --input {folder}/words/{part}.{language} "
                    f"--output {folder}/{algorithm}.subwords/{part}.{language}"
                )
        for release in (both.old, both.new):
            # Earlier releases had fairseq-preprocess make the ids from the text of the subwords.
            from_words = (release.checkout / "mt_scaffold/experiment/binarise").is_dir()
            made = [("binarise", "words" if from_words else f"{algorithm}.subwords", "binarised", from_words)]
            made.append(("binarise-words", "words", "on-the-fly", True))
            for command, text, output, takes_codes in made:
                train, valid, *tests = (f"{folder}/{text}/{part}" for part in parts)
                arguments = [command, "--source-lang", source, "--target-lang", target, "--train", train]
                arguments += ["--valid", valid, "--test", *tests, "--output", f"{folder}/{algorithm}.{output}"]
                arguments += ["--codes", path] if takes_codes else []
                release.run(["-m", "mt_scaffold", *arguments])


def run_generated(both: Both) -> None:
    """Run the steps of the demonstration before its trainings."""
    config = read_config("demo.yaml")
    config["data"] = {"synthetic": {"pairs": 12000, "valid": 500, "test": 1000, "seed": 1}}
    both.make_folder("generated")
    demo = both.new.folder / "generated" / ".demo.yaml"
    demo.write_text(yaml.safe_dump(config), encoding="utf-8")
    both.new.run(["-m", "mt_scaffold", "get-data", "--config", str(demo), "--output-dir", "generated/raw"])
    shutil.copytree(both.new.folder / "generated/raw", both.old.folder / "generated/raw")
    both.make_folder("generated/words")
    source, target = "en", "de"
    for part in ("train", "valid", "test"):
        for language in (source, target):
            words = f"generated/words/{part}.uncleaned.{language}"
            both.run(
                f"tokenise --language {language} --input generated/raw/{part}.{language} --output {words} "
                f"--report {words}.json"
            )
        clean(both, f"generated/words/{part}", source, target)
    codes = {algorithm: f"generated/{algorithm}.codes" for algorithm in ALGORITHMS}
    for algorithm, path in codes.items():
        both.run(
            f"learn-bpe --algorithm {algorithm} --symbols 2000 --output {path} "
            f"--input generated/words/train.{source} generated/words/train.{target}"
        )
    binarise(both, "generated", ("train", "valid", "test"), codes, source, target)


def run_ids(both: Both) -> None:
    """Learn from the generated text with GPT-2's pattern, encode it, and export codes to other programs and back."""
    both.make_folder("ids")
    text = both.new.folder / "generated" / "raw" / "train.de"
    for algorithm in ALGORITHMS:
        codes = f"ids/{algorithm}.codes"
        both.run(f"learn-bpe --algorithm {algorithm} --pretokenise gpt2 --symbols 2000 --output {codes} --input", text)
        both.run(f"encode --codes {codes} --format lines --output ids/{algorithm}.bin --input", text)
        dropped = f"--dropout 0.1 --seed 1 --output ids/{algorithm}.dropout.bin"
        both.run(f"encode --codes {codes} --format lines {dropped} --input", text)
    formats = {"tokenizer.json": "json", "tiktoken": "ranks"}
    for name, suffix in formats.items():
        exported = f"ids/exported.{suffix}"
        both.run(f"export-tokenizers --codes ids/bpe.codes --to {name} --output {exported}")
        pretokenise = "" if suffix == "json" else "--pretokenise gpt2"
        both.run(f"import {exported} {pretokenise} --output ids/imported.{suffix}.codes")
        imported = f"ids/imported.{suffix}"
        both.run(f"encode --codes {imported}.codes --format lines --output {imported}.bin --input", text)


def read_config(name: str) -> dict[str, Any]:
    """Return a configuration of this release."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "configs" / name).read_text(encoding="utf-8"))
    return config


def translation_config(both: Both) -> dict[str, Any]:
    """Return the demonstration's configuration, with the generated text as files."""
    raw = both.new.folder / "generated" / "raw"

    def pair(part: str) -> list[dict[str, dict[str, str]]]:
        return [
            {side: {"path": str(raw / f"{part}.{language}")} for side, language in (("source", "en"), ("target", "de"))}
        ]

    files = {"train": pair("train"), "valid": pair("valid"), "tests": {"test": pair("test")}}
    return read_config("demo.yaml") | {"data": {"files": files}}


def language_model_config(both: Both) -> dict[str, Any]:
    """Return the configuration of lm_demo with the generated text as documents and a fifth of the tokens."""
    documents = {}
    for part in ("train", "valid", "test"):
        lines = (both.new.folder / "generated" / "raw" / f"{part}.en").read_text(encoding="utf-8").splitlines(True)
        texts = ["".join(lines[first : first + 10]) for first in range(0, len(lines), 10)]
        documents[part] = both.new.folder / f".{part}.jsonl"
        documents[part].write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    data: dict[str, Any] = {"train": [str(documents["train"])], "valid": [str(documents["valid"])]}
    data |= {"tests": {"test": [str(documents["test"])]}, "format": "jsonl", "field": "text"}
    equal = {"equal_tokens": {"tokens": 200_000}, "equal_text": {"text_of": "equal_tokens"}}
    config = {key: value for key, value in read_config("lm_demo.yaml").items() if key != "tasks"}
    return config | {"data": {"documents": data}, "comparisons": equal}


def run_experiment(both: Both, name: str, config: dict[str, Any], cores: int) -> None:
    """Run a whole experiment in both, in the folder ``name``."""
    for release in (both.old, both.new):
        path = release.folder / f".{name}.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        command = ["-m", "snakemake", "-s", str(release.snakefile), "--configfile", str(path), "--cores", str(cores)]
        release.run([*command, "--config", f"output={name}"])


def digest(path: Path | None) -> str:
    """Return the sha256 of a file; for JSON, without the versions and the list of figures."""
    if path is None:
        return "missing"
    content = path.read_bytes()
    if path.suffix == ".json":
        document = json.loads(content)
        if isinstance(document, dict) and document.keys() & _NOT_COMPARED:
            content = json.dumps({key: document[key] for key in document if key not in _NOT_COMPARED}).encode()
    return hashlib.sha256(content).hexdigest()


def compare(both: Both) -> int:
    """Print the table and return the number of differences."""
    old, new = both.old.artefacts(), both.new.artefacts()
    names = sorted(old.keys() | new.keys())
    width = max(map(len, names))
    print(f"{'artefact':{width}}  {'old':12}  {'new':12}  identical")
    differences = 0
    for name in names:
        before, after = digest(old.get(name)), digest(new.get(name))
        differences += before != after
        print(f"{name:{width}}  {before[:12]:12}  {after[:12]:12}  {'yes' if before == after else 'NO'}")
    print(f"\n{len(names)} artefacts, {differences or 'none'} of them different")
    return differences


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """Check out a work tree of ``revision``, which is removed at the end."""
    checkout = folder / "checkout"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(checkout), revision], check=True)
    try:
        yield checkout
    finally:
        subprocess.run([*git, "remove", "--force", str(checkout)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--old",
        default="ac0f64e",
        metavar="REV",
        help="the release to compare with (default: %(default)s, the last one that needed fairseq-preprocess)",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="run experiments in each release as well: configs/demo.yaml, and a fifth of configs/lm_demo.yaml",
    )
    parser.add_argument("--cores", type=int, default=2, help="cores of these experiments (default: %(default)s)")
    parser.add_argument(
        "--multi30k",
        type=Path,
        default=ROOT.parent / "shared" / "data" / "multi30k",
        metavar="FOLDER",
        help="train, val and test_*, each .en.gz and .de.gz (left out if it is missing)",
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the output of both in FOLDER")
    options = parser.parse_args()

    folder = Path(tempfile.mkdtemp(prefix="compare-releases-")).resolve()
    try:
        with checked_out(options.old, folder) as checkout:
            both = Both(Release("old", checkout, folder / "old"), Release("new", ROOT, folder / "new"))
            for release in (both.old, both.new):
                release.folder.mkdir()
                say(f"building the {release.name} release")
                release.build()
            say("vectors")
            run_vectors(both)
            if options.multi30k.is_dir():
                say("Multi30k")
                run_multi30k(both, options.multi30k.resolve())
            else:
                say(f"Multi30k is left out: {options.multi30k} is missing")
            say("the generated corpus")
            run_generated(both)
            say("ids")
            run_ids(both)
            if options.demo:
                say("the experiment with translation")
                run_experiment(both, "translation", translation_config(both), options.cores)
                say("the experiment with language models")
                run_experiment(both, "language-models", language_model_config(both), options.cores)
            differences = compare(both)
    finally:
        # Also after an error, to help find the cause.
        for name in ("old", "new") if options.keep else ():
            shutil.copytree(folder / name, options.keep / name, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
