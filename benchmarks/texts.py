"""Write the six texts that encoding is measured on, each in two halves: one to learn codes from, one unseen.

python benchmarks/texts.py OUT [--megabytes 16]

The English, German, and Chinese and Japanese texts are manual pages from Debian packages, downloaded with apt-get;
Python is the installed standard library; new words are random. Documents of 3,000 characters go to the halves in turn;
``lines`` is the German text again, each line a document. Each half is a JSON list of documents in ASCII.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

TEXTS = {
    "lines": "the lines of the German text",
    "english": "English manual pages",
    "german": "German manual pages",
    "chinese and japanese": "Chinese and Japanese manual pages",
    "python": "Python source",
    "new words": "random words of 4 to 12 letters",
}
# Text → Debian packages, and the folders of manual pages in them.
PAGES = {
    "english": (("manpages", "manpages-dev"), ("man?",)),
    "german": (("manpages-de", "manpages-de-dev"), ("de/man?",)),
    "chinese and japanese": (("manpages-ja", "manpages-ja-dev", "manpages-zh"), ("ja/man?", "zh_??/man?")),
}
DOCUMENT = 3_000
HALVES = ("learned", "unseen")


def halves(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the files of a text: the half to learn codes from, and the unseen one."""
    learned, unseen = (folder / f"{name}.{half}.json" for half in HALVES)
    return learned, unseen


def read(path: Path) -> list[str]:
    """Return the documents of a half."""
    texts: list[str] = json.loads(path.read_text(encoding="ascii"))
    return texts


def manual_pages(packages: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    """Download packages and yield the text of their manual pages, without roff's requests and font changes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["apt-get", "--quiet", "--quiet", "download", *packages], cwd=folder, check=True)
        for package in sorted(folder.glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, folder / "all"], check=True)
        for pattern in folders:
            for path in sorted((folder / "all/usr/share/man").glob(f"{pattern}/*.gz")):
                if path.is_symlink():
                    continue
                source = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
                text = re.sub(r"\\f[BIRP]|\\-|\\&", lambda found: "-" * (found[0] == r"\-"), source)
                yield "".join(line for line in text.splitlines(keepends=True) if line[0] not in ".'")


def modules() -> Iterator[str]:
    """Yield the modules of Python's standard library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text("utf-8", "replace")


def new_words(size: int) -> Iterator[str]:
    """Yield lines of random words."""
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for _ in range(size // 100):
        yield " ".join("".join(draw.choices(letters, k=draw.randint(4, 12))) for _ in range(11)) + "\n"


def documents(texts: Iterable[str], size: int) -> Iterator[str]:
    """Yield documents of whole lines with at least DOCUMENT characters, up to ``size`` bytes in all."""
    held, length, left = list[str](), 0, size
    for text in texts:
        for line in text.splitlines(keepends=True):
            held.append(line)
            length += len(line)
            if length < DOCUMENT:
                continue
            document = "".join(held)
            left -= len(document.encode())
            if left < 0:
                return
            yield document
            held, length = [], 0


def write(folder: Path, size: int) -> None:
    """Write both halves of each text, of ``size`` bytes together."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: list(documents(manual_pages(*PAGES[name]), size)) for name in PAGES}
    made["python"] = list(documents(modules(), size))
    made["new words"] = list(documents(new_words(size), size))
    made["lines"] = "".join(made["german"]).splitlines(keepends=True)
    for name in TEXTS:
        for half, path in enumerate(halves(folder, name)):
            path.write_text(json.dumps(made[name][half::2]), encoding="ascii")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="OUT")
    parser.add_argument("--megabytes", type=int, default=16, help="of each text (default: %(default)s)")
    options = parser.parse_args()
    write(options.folder, options.megabytes * 1_000_000)


if __name__ == "__main__":
    main()
