"""Offsets of lines and documents in a data folder that somebody else may have written."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise import offsets
from mt_scaffold.experiment.binarise.data_folder import read_data_folder, text_offsets
from mt_scaffold.experiment.binarise.pairs_as_words import WordsFile


def _npy(header: str, data: bytes = b"") -> bytes:
    content = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content + data


def _array(path: Path, values: object, kind: str = "<i8") -> bytes:
    np.save(path / "made.npy", np.array(values, kind))
    return (path / "made.npy").read_bytes()


def _zip(path: Path) -> bytes:
    np.savez(path / "made.npz", np.array([0, 4, 6]))
    return (path / "made.npz").read_bytes()


@pytest.fixture
def damaged(tmp_path: Path) -> dict[str, bytes]:
    """Files that are not valid offsets for six bytes."""
    made = {
        "empty": b"",
        "zip": _zip(tmp_path),
        "like a zip": b"PK\3\4",
        "pickle": b"\x80\x04N.",
        "cut header": _npy("{'descr': '<i8', 'fortran_order': False, 'shape': ("),
        "large": _npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**70},)}}"),
        "wide": _npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**40}, {2**40})}}"),
        "less than none": _npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-3,)}"),
        "objects": _npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", bytes(24)),
        "number": _array(tmp_path, 6),
        "table": _array(tmp_path, [[0, 6]]),
        "one": _array(tmp_path, [0]),
        "floats": _array(tmp_path, [0, 4, 6], "<f8"),
        "short": _array(tmp_path, [0, 4, 6], "<i4"),
        "late": _array(tmp_path, [1, 4, 6]),
        "back": _array(tmp_path, [0, -4, 6]),
        "turned": _array(tmp_path, [0, 7, 6]),
        "overflow": _array(tmp_path, [0, 2**63 - 1, -(2**63), 6]),
    }
    return made | {"half": _array(tmp_path, [0, 4, 6])[:-3]}


def refusal(function: Callable[..., object], *arguments: object) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises(MTScaffoldError) as raised:
        function(*arguments)
    return str(raised.value)


def test_damaged_offsets_are_one_line(tmp_path: Path, damaged: dict[str, bytes]) -> None:
    """NumPy has a different error for each, or none."""
    (tmp_path / "text.words").write_bytes(b"one\na\n")
    more = {"no line": _array(tmp_path, [0, 0, 6]), "other text": _array(tmp_path, [0, 4, 7])}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, content in damaged.items():
            (tmp_path / "test.offsets.npy").write_bytes(content)
            says = refusal(text_offsets, tmp_path, "test")
            assert "test.offsets.npy: damaged or modified" in says, name
        for name, content in (damaged | more).items():
            (tmp_path / "text.words.npy").write_bytes(content)
            assert "text.words: damaged or modified" in refusal(WordsFile, tmp_path / "text.words"), name


def test_all_offsets_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those at the borders of blocks; a document may be empty."""
    monkeypatch.setattr(offsets, "_BLOCK", 4)
    for size in (2, 4, 5, 6, 9):
        right = np.arange(size) // 2
        np.save(tmp_path / "test.offsets.npy", right)
        assert text_offsets(tmp_path, "test").tolist() == right.tolist()
        for place in range(1, size):
            wrong = right.copy()
            wrong[place] = wrong[place - 1] - 1
            np.save(tmp_path / "test.offsets.npy", wrong)
            with pytest.raises(MTScaffoldError, match="damaged or modified"):
                text_offsets(tmp_path, "test")


def test_a_description_of_brackets_is_one_line(tmp_path: Path) -> None:
    """Python's JSON reader raises RecursionError for it."""
    (tmp_path / "binarised.json").write_text("[" * 100_000)
    with pytest.raises(MTScaffoldError, match=r"binarised\.json: not JSON"):
        read_data_folder(tmp_path)
