"""Check that an installed mt_scaffold, without its source, learns and segments as in tests/vectors.

    PYTHON tools/check_wheel.py

Needs only the standard library, so that it tests the wheel as a user without a compiler has it.
"""

from __future__ import annotations

import io
import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VECTORS = ROOT / "tests" / "vectors"


class WheelError(Exception):
    """The installed package does not work as it must."""


def run(program: str, arguments: Iterable[str | Path], text: bytes = b"") -> bytes:
    """Run ``mt-scaffold PROGRAM`` of this environment and return its output. Raises WheelError if it fails."""
    command = [Path(sys.executable).with_name("mt-scaffold"), program, *arguments]
    result = subprocess.run(command, input=text, capture_output=True, check=False)
    if result.returncode:
        raise WheelError(f"{program}: exit status {result.returncode}: {result.stderr.decode(errors='replace')}")
    return result.stdout


def check_commands(vector: Path, algorithm: str) -> None:
    """Learn and apply on the command line. Raises WheelError if the output differs from the vector's."""
    options = [*(vector / "options.txt").read_text().split(), "--algorithm", *algorithm.split()]
    learned = run("learn-bpe", options, (vector / "corpus.txt").read_bytes())
    algorithm = algorithm.split()[0]
    codes = vector / f"{algorithm}.codes"
    segmented = run("apply-bpe", ["--codes", codes], (vector / "probe.txt").read_bytes())
    if learned != codes.read_bytes() or segmented != (vector / f"{algorithm}.segmented").read_bytes():
        raise WheelError(f"{vector.name}, {algorithm}: other bytes than in {vector}")


def check_errors() -> None:
    """Check that errors of the core, and Python's from its threads, keep their types. Raises WheelError if not."""
    from mt_scaffold import BPE, MTScaffoldError

    class Interrupting(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            raise KeyboardInterrupt

    bpe = BPE(b"#version: 0.2\na b\n")
    for source, expected in ((io.BytesIO(b"a\n\xff\n"), MTScaffoldError), (Interrupting(), KeyboardInterrupt)):
        try:
            bpe.process_file(source, io.BytesIO(), num_workers=2)
        except expected:
            continue
        raise WheelError(f"no {expected.__name__} was raised")


def main() -> None:
    import mt_scaffold
    from mt_scaffold import _core

    if ROOT in Path(mt_scaffold.__file__).resolve().parents and ".venv" not in mt_scaffold.__file__:
        raise WheelError(f"{mt_scaffold.__file__} is the source; install the wheel, and run this from another folder")
    if not Path(mt_scaffold.__file__).with_name("_core.pyi").exists():
        raise WheelError("the wheel has no _core.pyi, the types of the core")
    vectors = sorted(path for path in VECTORS.iterdir() if path.is_dir())
    for vector in vectors:
        for algorithm in ("bpe", "scaffold", "picky --threshold 0.7"):
            check_commands(vector, algorithm)
    check_errors()
    print(f"{Path(_core.__file__).name} on Python {platform.python_version()}: {len(vectors)} vectors are correct")


if __name__ == "__main__":
    try:
        main()
    except WheelError as error:
        sys.exit(f"check_wheel.py: {error}")
