"""Print the text of Debian packages: HTML pages, plain text and fortunes, each line once, split at punctuation.

    apt-get download python3.11-doc postgresql-doc-15
    python scripts/package_text.py *.deb > documentation.en

docs/results/intrinsic lists the packages of each text.
"""

from __future__ import annotations

import html
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator

_NO_TEXT = re.compile(r"<(script|style|head|nav)\b.*?</\1>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(
    r"</?(?:a|abbr|b|cite|code|em|i|kbd|samp|small|span|strong|sub|sup|tt|u|var)\b[^>]*>", re.IGNORECASE
)
_TAG = re.compile(r"<[^>]*>")
_BLANK_LINES = re.compile(r"\n\s*\n")
_WORD = re.compile(r"\w+|[^\w\s]")
# Fortunes have no suffix; their indices end in .dat and .u8.
_FORTUNE = re.compile(r"/games/fortunes/(?:[a-z]+/)?[\w-]+$")


def texts(package: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and content of each text file of a package."""
    try:
        with (
            subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking,
            tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
        ):
            for member in archive:
                kind = "html" if member.name.endswith((".html", ".htm")) else "text"
                wanted = kind == "html" or member.name.endswith(".txt") or _FORTUNE.search(member.name)
                stream = archive.extractfile(member) if wanted and member.isfile() else None
                if stream is not None:
                    yield kind, stream.read().decode("utf-8", "replace")
        complete = unpacking.returncode == 0
    except tarfile.ReadError:
        complete = False
    except FileNotFoundError:
        raise SystemExit("dpkg-deb: not found; install dpkg, or run this on Debian") from None
    if not complete:
        raise SystemExit(f"{package}: dpkg-deb cannot read it; download it again")


def lines(kind: str, content: str) -> Iterator[str]:
    """Yield the paragraphs of a file, each as words between single spaces."""
    if kind == "html":
        # In HTML, line ends mean nothing; tags that are not inline end a paragraph.
        content = _INLINE.sub("", _NO_TEXT.sub("\n\n", content)).replace("\n", " ")
        content = html.unescape(_TAG.sub("\n\n", content))
    for paragraph in _BLANK_LINES.split(content.replace("\n%\n", "\n\n")):
        if words := _WORD.findall(paragraph):
            yield " ".join(words)


def main() -> None:
    if not sys.argv[1:]:
        print("usage: package_text.py PACKAGE.deb ... > TEXT", file=sys.stderr)
        raise SystemExit(2)
    # A closed pipe (`| head`) or Ctrl-C ends it without a traceback, as with other filters.
    for ending in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(ending, signal.SIG_DFL)
    seen = set()
    for package in sys.argv[1:]:
        for kind, content in texts(package):
            for line in lines(kind, content):
                if line not in seen:
                    seen.add(line)
                    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    main()
