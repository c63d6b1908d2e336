"""python -m studies.debian: make parallel and monolingual text from a Debian mirror (README.md)."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import make_folder, open_input, open_output, read_file, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.options import worker_count

from . import archives, cleaning, corpus, segments
from .mirror import Mirror, Package, as_json

STEPS = ("list", "download", "extract", "build")
ALWAYS = r"^(wesnoth-[\d.]+-data|gimp-help-\w+)$"


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression ({error}): '{text}'") from None


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(
        prog="python -m studies.debian",
        description="Make parallel text of English and other languages, and text of each, from a Debian mirror. Steps "
        "whose output exists are not repeated, so the same command resumes an interrupted run.",
    )
    result.add_argument("--languages", nargs="+", required=True, choices=cleaning.CANDIDATES[1:], metavar="CODE",
                        help=f"languages besides English: {', '.join(cleaning.CANDIDATES[1:])}")  # fmt: skip
    result.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder for all output")
    result.add_argument("--sources", metavar="FILE", help="apt's list of sources (default: this machine's for Debian)")
    result.add_argument(
        "--most-mb", type=float, default=20, metavar="MB", help="leave out packages over this size (20)"
    )
    result.add_argument("--always", type=_pattern, default=ALWAYS, metavar="REGEX",
                        help="packages to use whatever their size (Wesnoth's, GIMP's help)")  # fmt: skip
    result.add_argument("--only", type=_pattern, metavar="REGEX", help="only these source packages, for a rehearsal")
    result.add_argument("--connections", type=int, default=4, choices=range(1, 5), metavar="N",
                        help="parallel downloads, 1 to 4 (4)")  # fmt: skip
    result.add_argument("--jobs", type=int, default=2, metavar="N", help="processes that read packages (2)")
    result.add_argument("--test-pairs", type=int, default=2000, metavar="N",
                        help="at most N pairs in each test and validation set (2000)")  # fmt: skip
    result.add_argument("--text-kb", type=int, default=1000, metavar="KB",
                        help="held-out text of each kind and language, in whole documents (1000)")  # fmt: skip
    result.add_argument(
        "--until", choices=STEPS, default="build", metavar="STEP", help="last step: list, download, extract, build"
    )
    return result


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def list_packages(folder: Path, options: argparse.Namespace, mirror: Mirror) -> None:
    """Write packages.json and descriptions.jsonl.gz from the mirror's indices."""
    mirror.update()
    languages = options.languages
    chosen = mirror.choose(languages, int(options.most_mb * 1e6), options.always)
    sources = {s["Package"]: s.get("Source", s["Package"]).split(" ")[0] for s in mirror.packages().values()}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for _, stanza in mirror.stanzas("Translations"):
        for language in ("en", *languages):
            if f"Description-{language}" in stanza:
                entry = found.setdefault((stanza["Package"], stanza["Description-md5"]), {})
                entry.setdefault(language, stanza[f"Description-{language}"])
    with open_output(folder / "descriptions.jsonl.gz") as stream:
        for (name, _), texts in sorted(found.items()):
            source = sources.get(name, name)
            if options.only is None or options.only.search(source):
                line = {"package": name, "source": source, "texts": texts}
                stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    if options.only is not None:
        chosen = [package for package in chosen if options.only.search(package.source)]
    indices = {
        Path(path).name.removesuffix(".lz4"): hashlib.sha256(mirror.read_index(path)).hexdigest()
        for kind in ("Packages", "Translations")
        for path in mirror.indices(kind)
    }
    content = {"settings": settings_of(options), "indices": indices, "packages": as_json(chosen)}
    write_text(folder / "packages.json", json.dumps(content, indent=1) + "\n")


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that decide which packages are listed."""
    only = None if options.only is None else options.only.pattern
    always = options.always.pattern
    return {"languages": options.languages, "most_mb": options.most_mb, "always": always, "only": only}


def read_packages(folder: Path, options: argparse.Namespace) -> tuple[list[Package], dict[str, str]]:
    """Return the packages of packages.json and the digests of the indices.

    Raises UsageError if the settings differ from those of ``options``.
    """
    content = json.loads(read_file(folder / "packages.json"))
    for name, value in settings_of(options).items():
        if content["settings"][name] != value:
            raise UsageError(
                f"{folder}: was started with {name} {content['settings'][name]}, not {value}; use another --output, or "
                f"delete packages.json"
            )
    names = {each.name for each in fields(Package)}
    return [Package(**{k: v for k, v in entry.items() if k in names}) for entry in content["packages"]], content[
        "indices"
    ]


def extract_all(folder: Path, packages: Sequence[Package], languages: Sequence[str], jobs: int) -> None:
    """Extract the text of each package that is not extracted yet."""
    make_folder(folder / "extracted")
    missing = [package for package in packages if archives.extracted(_text(folder, package), languages) is None]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(archives.extract, package, folder / "debs" / package.file, languages, _text(folder, package))
            for package in missing
        ]
        try:
            for done, future in enumerate(futures, 1):
                future.result()
                if done % 200 == 0:
                    _say(f"extract: {done} of {len(missing)} packages")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _text(folder: Path, package: Package) -> Path:
    return folder / "extracted" / package.file.replace(".deb", ".jsonl.gz")


def build(folder: Path, packages: Sequence[Package], indices: dict[str, str], options: argparse.Namespace) -> None:
    """Write the corpus from the extracted text."""
    loaded, heads = [], {}
    for package in packages:
        found = archives.extracted(_text(folder, package), options.languages)
        if found is None:
            raise MTScaffoldError(f"{_text(folder, package)}: missing or outdated; run the step extract")
        heads[package.name], records = found
        loaded.append((package, records))
    with open_input(folder / "descriptions.jsonl.gz") as stream:
        descriptions = [json.loads(line) for line in stream]
    settings = {
        **settings_of(options),
        "test_pairs": options.test_pairs,
        "text_bytes": 1000 * options.text_kb,
        "indices": indices,
    }
    corpus.build(folder, segments.Extracted(loaded, descriptions), heads, settings)


def run(options: argparse.Namespace) -> None:
    """Run the steps up to ``options.until``."""
    jobs = worker_count(options.jobs)
    folder: Path = options.output
    make_folder(folder)
    mirror = Mirror(folder / "apt", options.sources, ["en", *options.languages])
    if not (folder / "packages.json").exists():
        _say("list: reading the mirror's indices")
        list_packages(folder, options, mirror)
    packages, indices = read_packages(folder, options)
    _say(f"list: {len(packages):,} packages, {sum(package.size for package in packages) / 1e6:,.0f} MB")
    last = STEPS.index(options.until)
    if last >= 1:
        mirror.download(packages, folder / "debs", options.connections)
        _say(f"download: all in {folder / 'debs'}")
    if last >= 2:
        extract_all(folder, packages, options.languages, jobs)
        _say(f"extract: all in {folder / 'extracted'}")
    if last >= 3:
        build(folder, packages, indices, options)
        _say(f"build: see {folder / 'statistics.md'} and {folder / 'manifest.json'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        run(parser().parse_args(arguments))
    except MTScaffoldError as error:
        print(f"studies.debian: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
