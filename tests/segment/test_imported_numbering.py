"""The ids of imported codes stay with the codes, and text is prepared for every method that segments it."""

from __future__ import annotations

import base64
import copy
import io
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import BPE, Codes, MTScaffoldError, UsageError, apply_bpe
from mt_scaffold.cli import main
from mt_scaffold.integrations.vocabularies.imported import of_pieces
from mt_scaffold.manifest import manifest_path
from mt_scaffold.segment.encode import decode_documents, encode_documents
from mt_scaffold.segment.join import join_text
from mt_scaffold.segment.numbering import Numbering, Spaces, write_numbered

PIECES = ["\u2581", "a", "b", "ab", "\u2581ab"]
MERGES = [("a", "b"), ("\u2581", "ab")]
SPACES = [
    Spaces(),
    Spaces("always"),
    Spaces("unless-there"),
    Spaces("unless-there", True),
]


def imported(path: Path, spaces: Spaces = SPACES[1], first: int = 5) -> Path:
    """Codes whose ids begin with ``first``; with all bytes, whose ids follow."""
    ids = {piece: first + number for number, piece in enumerate(PIECES)}
    given = {byte: first + len(PIECES) + byte for byte in range(256)}
    made, numbering = of_pieces("x", "metaspace-runs", MERGES, ids, given, None, spaces, {"<s>": 0}, {}, {})
    write_numbered(made, numbering, path)
    return path


@pytest.fixture
def codes(tmp_path: Path) -> Path:
    return imported(tmp_path / "codes")


def test_ids_follow_the_codes(codes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another folder, a pickle, a copy or an open file, ids are not those by rank."""
    text = "ab ba"
    expected = BPE(codes).encode(text)
    assert expected != BPE(codes.read_bytes()).encode(text)
    monkeypatch.chdir(tmp_path)
    before, read = BPE("codes"), Codes.read("codes")
    with open("codes", "rb") as binary, open("codes", encoding="utf-8") as characters, open(b"codes", "rb") as named:
        opened = [BPE(binary), BPE(characters), BPE(named)]
    kept = pickle.dumps((before, read))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    codes.unlink()
    unpickled, codes_again = pickle.loads(kept)
    for bpe in (before, unpickled, copy.copy(before), BPE(read), BPE(codes_again), *opened):
        assert bpe.encode(text) == expected and bpe.decode(expected) == text


def test_ids_of_another_numbering_are_not_decoded(codes: Path, tmp_path: Path) -> None:
    """The same codes with other ids, or without their manifest, would give a different text."""
    (tmp_path / "text").write_text("ab ba\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bare, other = elsewhere / "codes", imported(tmp_path / "other", first=6)
    bare.write_bytes(codes.read_bytes())
    assert other.read_bytes() == codes.read_bytes()
    for ours in (codes, bare, other):
        encode_documents(ours, [tmp_path / "text"], tmp_path / "ids.bin")
        for theirs in (codes, bare, other):
            if theirs is ours:
                decode_documents(theirs, tmp_path / "ids.bin", tmp_path / "back")
                assert (tmp_path / "back").read_text() == "ab ba\n"
                continue
            with pytest.raises(UsageError, match=r"encoded with .*, not with .*; decode with those codes"):
                decode_documents(theirs, tmp_path / "ids.bin", tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_the_program_s_own_special_tokens_need_not_be_given(codes: Path, tmp_path: Path) -> None:
    """The manifest records them as well; the same arguments decode what they encoded."""
    (tmp_path / "text").write_text("ab ba\n")
    for given in ({"append": "<s>"}, {"append": "<s>", "special_tokens": ["<x>"]}, {"special_tokens": ["<x>"]}):
        encode_documents(codes, [tmp_path / "text"], tmp_path / "ids.bin", **given)
        decode_documents(codes, tmp_path / "ids.bin", tmp_path / "back", **given)
        assert (tmp_path / "back").read_text() == "ab ba\n"
        with pytest.raises(UsageError, match="encoded with other special tokens"):
            decode_documents(codes, tmp_path / "ids.bin", tmp_path / "no", special_tokens=["<y>"])


def test_the_first_manifests_are_read(codes: Path, tmp_path: Path) -> None:
    """They recorded neither the ids of codes nor the tokens that are shown."""
    (tmp_path / "text").write_text("ab ba\n")
    encode_documents(codes, [tmp_path / "text"], tmp_path / "ids.bin")
    before = Codes.read(codes).used()
    for path, entry, key in ((manifest_path(codes), "shown", None), (tmp_path / "ids.manifest.json", "codes", "ids")):
        content = json.loads(Path(path).read_text())
        del (content if key is None else content[entry])[key or entry]
        Path(path).write_text(json.dumps(content))
    decode_documents(codes, tmp_path / "ids.bin", tmp_path / "back")
    assert (tmp_path / "back").read_text() == "ab ba\n" and Codes.read(codes).used() == before


@pytest.mark.parametrize("again", ["<x>=301", "<x>=300"])
def test_a_special_token_is_imported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], again: str) -> None:
    """Otherwise one of its ids would be dropped without notice."""
    ranks = b"".join(base64.b64encode(bytes((byte,))) + b" %d\n" % byte for byte in range(256))
    (tmp_path / "x.tiktoken").write_bytes(ranks)
    command = ["import", str(tmp_path / "x.tiktoken"), "--pretokenise", "gpt2", "--output", str(tmp_path / "codes")]
    assert main([*command, "--special", "<x>=300", again]) == 2
    assert "--special: duplicate token '<x>'" in capsys.readouterr().err and not (tmp_path / "codes").exists()


def test_a_damaged_manifest_is_not_ignored(codes: Path) -> None:
    """Without it, text would also be prepared differently."""
    Path(manifest_path(codes)).write_text("{")
    with pytest.raises(MTScaffoldError, match=r"codes\.manifest\.json: not JSON"):
        BPE(codes)


@pytest.mark.parametrize("spaces", SPACES, ids=str)
def test_subwords_are_those_of_the_ids(tmp_path: Path, spaces: Spaces) -> None:
    """This holds for a string, its bytes, a line and a file; joined, they are the decoded text of the ids."""
    bpe = BPE(imported(tmp_path / "codes", spaces))
    lines = ["ab ab", " ab", "  ab  ba ", "", "a\u2581b", "ab", "ä日😀ab\tab", "ab\u00a0ab\u2028", "\x00 ab\rab\r"]
    subwords = []
    for line in lines:
        ids = bpe.encode(line)
        subwords.append(bpe.segment(line))
        assert len(subwords[-1].split(" ") if line else []) == len(ids)
        assert bpe.segment(line.encode()).decode() == subwords[-1]
        assert bpe.process_line(line + "\n") == subwords[-1] + "\n"
        assert bpe.join(subwords[-1]) == bpe.decode(ids)
    text = "\n".join(lines).encode()
    for end in (b"", b"\n"):
        output, joined = io.BytesIO(), io.BytesIO()
        apply_bpe(tmp_path / "codes", io.BytesIO(text + end), output)
        assert output.getvalue() == "\n".join(subwords).encode() + end
        join_text(io.BytesIO(output.getvalue()), joined, codes=tmp_path / "codes")
        assert joined.getvalue().decode() == "\n".join(map(bpe.join, subwords)) + end.decode()
    dictionary = {
        form: number for number, form in enumerate({form for each in subwords for form in each.split(" ")}, 4)
    }
    ids_of_all, begins = bpe.encoder(dictionary, 3).encode(lines)
    for number, each in enumerate(subwords):
        expected = [dictionary[form] for form in each.split(" ")] if each else []
        assert [*ids_of_all[begins[number] : begins[number + 1]]] == expected


def test_a_copy_keeps_what_a_subclass_adds() -> None:
    """It has the subclass's attributes and those set later; values derived from the codes are computed again."""

    class Lower(BPE):
        def __init__(self, codes: bytes, lower: bool) -> None:
            self.before = "before"
            super().__init__(codes)
            self.lower = lower

    class Locked(Lower):
        lock = None

        def __getstate__(self) -> dict[str, object]:
            return {"lower": self.lower}

    locked = Locked(b"#version: 0.2\na n\n", True)
    locked.lock = threading.Lock()  # type: ignore[assignment]
    assert copy.copy(locked).lock is None and copy.copy(locked).lower
    bpe = Lower(b"#version: 0.3 bytes gpt2\na n\n", False)
    bpe.__init__(b"#version: 0.3 bytes gpt2\na n\n", True)  # type: ignore[misc]
    bpe.note = "kept"  # type: ignore[attr-defined]
    assert bpe.tokens and bpe.special_tokens == {}
    for again in (copy.copy(bpe), copy.deepcopy(bpe)):
        assert (again.before, again.lower, again.note) == ("before", True, "kept")  # type: ignore[attr-defined]
        assert again.encode("an") == bpe.encode("an") and again.ids_in_core is not bpe.ids_in_core


def test_ids_without_tokens_are_counted() -> None:
    """More ids than tokens are reported by number, not as a wrong id of unknown bytes."""
    codes = Codes(b"#version: 0.3 bytes gpt2\na b\n", "c")
    assert Numbering((*range(257), 5)).fault(codes) == "there are 258 ids for 257 tokens"


@pytest.mark.parametrize(
    "changes",
    [
        {"others": {"-2000000": "a"}},
        {"others": {"x": "a"}},
        {"special_tokens": {"<s>": -3}},
        {"special_tokens": {"": 300}, "in_text": [""]},
        {"special_tokens": {"\ud800": 300}},
        {"in_text": ["<nowhere>"]},
        {"unknown": 2**31 - 2},
        {"unknown": 2**40},
        {"unknown": "x"},
        {"unknown": -1},
        {"spaces": {"prefix": "zz"}},
        {"spaces": 5},
        {"source": 5},
        {"ids": float("inf")},
        {"ids": [float("inf")] * 258},
        {"ids": [0] * 258},
        {"ids": [-7] * 258},
        {"ids": [2.5] * 258},
        {"ids": [1, 2]},
    ],
    ids=repr,
)
def test_a_manifest_with_impossible_ids_is_refused(codes: Path, changes: dict[str, Any]) -> None:
    """Negative ids would make the core write outside its table, an empty token would make it loop forever."""
    path = Path(manifest_path(codes))
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")
    with pytest.raises(MTScaffoldError):
        BPE(codes).encode("ab a\0b")
