"""scripts/package_text.py, which makes the texts of the intrinsic study from Debian packages."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "package_text.py"
dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")


def make_package(folder: Path, files: dict[str, str]) -> Path:
    """Build a package of these files."""
    root = folder / "root"
    control = "Package: words\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n"
    for name, content in {"DEBIAN/control": control, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    subprocess.run(["dpkg-deb", "--build", root, folder / "words.deb"], check=True, stdout=subprocess.DEVNULL)
    return folder / "words.deb"


def run(*packages: Path) -> subprocess.CompletedProcess[str]:
    """Run the script on packages."""
    return subprocess.run([sys.executable, SCRIPT, *packages], capture_output=True, encoding="utf-8")


def test_paragraphs_are_lines_of_words() -> None:
    """Markup, scripts and line ends in a paragraph are removed, entities decoded, punctuation marks separated."""
    spec = importlib.util.spec_from_file_location("package_text", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = "<head>no</head><p>Don't\n<b>st</b>op &auml; x.</p><script>no</script><p>two</p>"
    assert list(module.lines("html", page)) == ["Don ' t stop ä x .", "two"]
    assert list(module.lines("text", "one\ntwo.\n%\nthree\n\n \n")) == ["one two .", "three"]


@dpkg
def test_a_line_is_written_once(tmp_path: Path) -> None:
    """Lines are distinct over all packages together; files that are not text are left out."""
    files = {"usr/a.txt": "same\n\nfirst\n", "usr/b.html": "<p>same</p>", "usr/c.png": "no"}
    package = make_package(tmp_path, files)
    found = run(package, package)
    assert (found.returncode, found.stdout, found.stderr) == (0, "same\nfirst\n", "")


@dpkg
def test_a_broken_package_is_reported(tmp_path: Path) -> None:
    """No traceback, and no exit status 0 after half of the text."""
    package = make_package(tmp_path, {"usr/a.txt": "word\n"})
    package.write_bytes(package.read_bytes()[:-100])
    for broken in (package, tmp_path / "missing.deb"):
        found = run(broken)
        assert found.returncode == 1
        assert found.stderr.splitlines()[-1] == f"{broken}: dpkg-deb cannot read it; download it again"
        assert "Traceback" not in found.stderr


@dpkg
def test_a_reader_that_has_gone_ends_it_quietly(tmp_path: Path) -> None:
    """As in ``| head``, with more lines than a pipe holds."""
    package = make_package(tmp_path, {"usr/a.txt": "\n\n".join(map(str, range(50_000)))})
    with subprocess.Popen([sys.executable, SCRIPT, package], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as script:
        assert script.stdout is not None and script.stderr is not None
        assert script.stdout.readline() == b"0\n"
        script.stdout.close()
        errors = script.stderr.read()
    assert errors == b"" and script.returncode == -signal.SIGPIPE
