"""Import and export of other programs' vocabularies: exactly the ids of the program itself, or an error."""

from __future__ import annotations

import base64
import copy
import json
import random
import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt_scaffold import BPE, Codes, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.integrations.tokenizers import export_tokenizers, to_tokenizers
from mt_scaffold.integrations.vocabularies import fastbpe, sentencepiece, tiktoken, tokenizer_json
from mt_scaffold.integrations.vocabularies.exporting import export_codes
from mt_scaffold.integrations.vocabularies.imported import of_pieces
from mt_scaffold.integrations.vocabularies.importing import format_of, segmentation
from mt_scaffold.integrations.vocabularies.merging import applied_merges, last_parts, merges_of_ranks
from mt_scaffold.segment.numbering import Numbering, Spaces, numbering_of, write_numbered

_WORDS = "the lower newest wider naïve schöne Häuser déjà 日本語 日本 café 😀 x1 2023 It's".split()
_RANDOM = random.Random(7)
LINES = [" ".join(_RANDOM.choices(_WORDS, k=8)) for _ in range(400)]
# Characters of the training text, others, and those that formats treat specially.
TEXTS = st.text(
    st.sampled_from("".join(_WORDS) + "  \t\n\r\u2581\u2028\u00a0Ω語ß'7")
    | st.characters(codec="utf-8", exclude_categories=["Cn"])
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("importing") / "corpus.txt"
    path.write_text("\n".join([*LINES, "two  spaces   three"]) + "\n", encoding="utf-8")
    return path


def _tokenizers(corpus: Path, kind: str) -> Path:
    """Return a file of a kind; that of ByteLevel and of "never", tokenizers 0.23.3 trained on the corpus."""
    pytest.importorskip("tokenizers", reason="comes with the extra 'transformers'")
    trained = Path(__file__).with_name("trained") / ("ByteLevel.json" if kind == "bytes" else "Metaspace.json")
    content = json.loads(trained.read_text(encoding="utf-8"))
    if kind in ("always", "llama"):
        vocabulary = content["model"]["vocab"]
        content["model"]["byte_fallback"] = True
        for byte in range(256):
            vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    if kind == "llama":
        steps = [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        ]
        content |= {"normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": None}
    elif kind != "bytes":
        content["pre_tokenizer"] |= {"prepend_scheme": kind, "split": kind != "never"}
    path = corpus.with_name(f"{kind}.json")
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _transformers() -> Any:
    """Return our module, without which transformers is not installed or refuses the installed tokenizers."""
    return pytest.importorskip("mt_scaffold.integrations.transformers", exc_type=ImportError)


def _sentencepiece(corpus: Path, kind: str) -> Path:
    library: Any = pytest.importorskip("sentencepiece", reason="comes with the extra 'unigram'")
    path = corpus.with_name(f"{kind}.model")
    library.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(path.with_suffix("")),
        vocab_size=400 if kind == "fallback" else 140,
        model_type="bpe",
        byte_fallback=kind == "fallback",
        add_dummy_prefix=kind == "fallback",
        user_defined_symbols=["<sep>"],
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.99,
        minloglevel=2,
    )
    return path


def _ranks(corpus: Path) -> Path:
    pytest.importorskip("tiktoken", reason="comes with the extra 'dev'")
    codes = learn_bpe(paths=[corpus], algorithm="bpe", num_symbols=200, pretokenise="gpt2").codes
    path = corpus.with_name("ranks.tiktoken")
    path.write_bytes(tiktoken.write(codes))
    return path


def _fastbpe(corpus: Path) -> Path:
    pytest.importorskip("fastBPE", reason="is built from source")
    path = corpus.with_name("fast.bpe")
    # In the format of its learnbpe.
    merges = learn_bpe(paths=[corpus], algorithm="bpe", num_symbols=200).codes.merges
    path.write_text("".join(f"{left} {right} {9000 - i}\n" for i, (left, right, _) in enumerate(merges)), "utf-8")
    return path


MAKERS = {
    "ByteLevel": lambda corpus: _tokenizers(corpus, "bytes"),
    "Metaspace, byte fallback": lambda corpus: _tokenizers(corpus, "always"),
    "Metaspace, unknown": lambda corpus: _tokenizers(corpus, "first"),
    "Metaspace, runs": lambda corpus: _tokenizers(corpus, "never"),
    "Metaspace, LLaMA's": lambda corpus: _tokenizers(corpus, "llama"),
    "SentencePiece, byte fallback": lambda corpus: _sentencepiece(corpus, "fallback"),
    "SentencePiece, unknown": lambda corpus: _sentencepiece(corpus, "unknown"),
    "tiktoken": _ranks,
    "fastBPE": _fastbpe,
}


def _imported(path: Path) -> tuple[Any, Any]:
    from mt_scaffold.integrations.vocabularies import importing

    reader = importing.reader_of(format_of(path))
    options = ("gpt2", {"<|end|>": 1000}) if format_of(path) == "tiktoken" else (None, None)
    imported = reader.read(path, *options)
    return imported, reader.original(path, imported)


@pytest.mark.parametrize("kind", MAKERS)
def test_ids_are_those_of_the_original_on_its_text_and_on_random_unicode(kind: str, corpus: Path) -> None:
    """A model trained with the original gets the ids that it was trained with."""
    path = MAKERS[kind](corpus)
    imported, original = _imported(path)
    ours = segmentation(imported)
    assert all(list(ours(line)) == list(original(line)) for line in [*LINES, "a<|end|><unk>b <sep> <s>"])

    @settings(max_examples=150, deadline=None)
    @given(TEXTS)
    def check(text: str) -> None:
        if kind == "fastBPE":
            text = " ".join(text.replace("\0", "").split()) or "x"  # its words also end at NUL
        assert list(ours(text)) == list(original(text))

    check()


WRITERS: dict[str, Any] = {
    "SentencePiece, byte fallback": sentencepiece.write,
    "SentencePiece, unknown": sentencepiece.write,
    "tiktoken": tiktoken.write,
    "fastBPE": lambda codes, _: fastbpe.write(codes),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_goes_out_comes_in_again_unchanged(kind: str, corpus: Path, tmp_path: Path) -> None:
    """Neither direction loses a merge, an id or a special token."""
    path = MAKERS[kind](corpus)
    codes, numbering, _ = _imported(path)[0]
    (tmp_path / path.name).write_bytes(WRITERS[kind](codes, numbering))
    again = _imported(tmp_path / path.name)[0]
    assert again.codes.text == codes.text
    assert again.numbering == numbering
    if kind == "tiktoken":
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "kind", ["ByteLevel", "Metaspace, byte fallback", "Metaspace, unknown", "Metaspace, runs", "Metaspace, LLaMA's"]
)
def test_a_tokenizer_json_goes_out_and_in_again(kind: str, corpus: Path, tmp_path: Path) -> None:
    """Codes, ids and special tokens are the same as before, and tokenizers gives the ids of the original."""
    path = MAKERS[kind](corpus)
    original = _imported(path)[1]
    codes = [tmp_path / "codes", tmp_path / "again"]
    assert main(["import", str(path), "--output", str(codes[0])]) == 0
    out = str(tmp_path / "tokenizer.json")
    options = ["--codes", str(codes[0]), "--pattern", "published", "--check", str(corpus)]
    assert main(["export-tokenizers", *options, "--output", out]) == 0
    assert main(["import", out, "--output", str(codes[1])]) == 0
    assert codes[0].read_bytes() == codes[1].read_bytes()
    assert numbering_of(Codes.read(codes[0])) == numbering_of(Codes.read(codes[1])) is not None
    library: Any = pytest.importorskip("tokenizers")
    written, bpe = library.Tokenizer.from_file(out), BPE(codes[0])

    @settings(max_examples=150, deadline=None)
    @example("<unk>0")
    @example("<|end|> a")
    @given(TEXTS)
    def check(text: str) -> None:
        ids = list(original(text))
        assert written.encode(text).ids == ids
        decoded = written.decode(ids, skip_special_tokens=False)
        if kind not in ("ByteLevel", "Metaspace, runs") and text.startswith(("<unk>", "<|end|>")):
            # After special tokens that come first, tokenizers keeps the space (docs/vocabularies.md).
            decoded = re.sub(r"\A((?:<unk>|<\|end\|>)+) ", r"\1", decoded)
        assert bpe.decode(ids) == decoded

    check()


def test_sentencepiece_goes_out_as_tokenizer_json(corpus: Path, tmp_path: Path) -> None:
    """Ids stay, and control tokens are not found in text; a prefix with user-defined symbols is refused."""
    library: Any = pytest.importorskip("tokenizers")
    imported, original = _imported(MAKERS["SentencePiece, unknown"](corpus))
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    out = tmp_path / "tokenizer.json"
    assert main(["export-tokenizers", "--codes", str(tmp_path / "codes"), "--output", str(out)]) == 0
    written = library.Tokenizer.from_file(str(out))
    assert all(written.encode(line).ids == original(line) for line in [*LINES, "<s> Ω語<sep> a</s>"])
    prefixed = _imported(MAKERS["SentencePiece, byte fallback"](corpus))[0]
    with pytest.raises(MTScaffoldError, match="not after special tokens, as in SentencePiece"):
        tokenizer_json.write(prefixed.codes, prefixed.numbering)


def test_codes_that_a_format_cannot_hold_are_refused(corpus: Path, tmp_path: Path) -> None:
    """Scaffold tokens, codes of another kind, a merge that ranks would not choose, a limited number of merges."""
    codes, numbering, _ = _imported(MAKERS["Metaspace, byte fallback"](corpus))[0]
    several = [merge.token for merge in codes.merges if merge.normal and len(merge.token) > 4]
    marked = codes.with_scaffold(codes.scaffold | {several[0]})
    with pytest.raises(MTScaffoldError, match="cannot take scaffold tokens apart, such as"):
        tokenizer_json.write(marked, numbering.after(codes, marked)[0])
    part = Codes("#version: 0.3 bytes metaspace\næ Ĺ\n".encode(), "x")
    with pytest.raises(MTScaffoldError, match="the merge 'æ Ĺ' is of parts of characters, which tokenizers does not"):
        tokenizer_json.write(part, Numbering(tuple(range(257)), spaces=Spaces()))
    pieces = {"\u2581": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5, "abc": 6}
    merges = [("b", "c"), ("a", "b"), ("ab", "c")]
    codes, numbering = of_pieces("x", "metaspace-runs", merges, pieces, {}, 7, Spaces(), {"<unk>": 7}, {}, {})
    with pytest.raises(MTScaffoldError, match="SentencePiece would merge 'a bc' where the codes merge 'ab c'"):
        sentencepiece.write(codes, numbering)
    lines = {"\u2581": 0, "a": 1, "b": 2, "\n": 3, "ab": 4, "b\n": 5, "ab\n": 6}
    of_lines = [("b", "\n"), ("a", "b"), ("ab", "\n")]
    broken = of_pieces("x", "metaspace-runs", of_lines, lines, {}, 7, Spaces(), {"<unk>": 7}, {}, {})
    with pytest.raises(MTScaffoldError, match=r"would merge 'a b\\n' where the codes merge 'ab \\n'"):
        sentencepiece.write(*broken)
    repeated = of_pieces("x", "metaspace", [*of_lines, ("a", "b\n")], lines, {}, 7, Spaces(), {"<unk>": 7}, {}, {})
    with pytest.raises(MTScaffoldError, match=r"two merges make 'ab\\n'; tokenizers allows only one"):
        tokenizer_json.write(*repeated)
    write_numbered(codes, numbering, tmp_path / "codes")
    with pytest.raises(UsageError, match="omit the number of merges"):
        to_tokenizers(tmp_path / "codes", merges=2)


def test_a_token_that_spells_a_special_token_does_not_go_out(tmp_path: Path) -> None:
    """tokenizer.json has one id per name, and extending can learn the name of a special token."""
    pieces = {"\u2581": 2, "<": 3, "s": 4, ">": 5}
    ids: Any = (pieces, {}, 0, Spaces(), {"<unk>": 0, "<s>": 1}, {7: b""}, {})
    merges = [("s", ">")]
    pieces["s>"] = 6
    codes, numbering = of_pieces("x", "metaspace-runs", merges, *ids)
    vocabulary = tokenizer_json.write(codes, numbering)["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(8)) and vocabulary[""] == 7
    pieces["<s>"] = 8
    codes, numbering = of_pieces("x", "metaspace-runs", [*merges, ("<", "s>")], *ids)
    with pytest.raises(MTScaffoldError, match="text that spells '<s>' would get its id in tokenizer"):
        tokenizer_json.write(codes, numbering)


@pytest.mark.parametrize(
    ("unknown", "others", "reason"),
    [
        ("?", {}, "text that spells '\\?' would get its id in tokenizer"),
        ("<unk>", {4: "é".encode()}, "text that spells 'é' would get its id in tokenizer"),
        ("<unk>", {4: b"b"}, "no text gets the id 4 of the byte 0x62, which tokenizers cannot express"),
    ],
)
def test_a_token_of_one_character_that_is_not_found_in_text_does_not_go_out(
    unknown: str, others: Any, reason: str
) -> None:
    """As SentencePiece's unknown and unused pieces; tokenizers found it, and gave other ids."""
    pieces = {"\u2581": 2, "a": 3}
    made = of_pieces("x", "metaspace-runs", [], pieces, {}, 0, Spaces(), {unknown: 0}, others, {})
    with pytest.raises(MTScaffoldError, match=reason):
        tokenizer_json.write(*made)


def test_a_new_special_token_does_not_get_an_id_in_use(tmp_path: Path) -> None:
    """tokenizers would number it by the count of tokens, which is the id of another one if ids have gaps."""
    for last in (3, 4):
        codes, numbering = of_pieces(
            "x", "metaspace-runs", [], {"\u2581": 0, "a": 1, "b": last}, {}, 2, Spaces(), {"<unk>": 2}, {}, {}
        )
        write_numbered(codes, numbering, tmp_path / str(last))
    assert to_tokenizers(tmp_path / "3", special_tokens=["<new>"]).encode("a<new>b").ids == [1, 4, 3]
    with pytest.raises(UsageError, match="'<new>' could get one in use"):
        to_tokenizers(tmp_path / "4", special_tokens=["<new>"])


def test_the_command_checks_writes_and_encode_and_decode_use_its_ids(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files of ids contain the ids of the manifest, and decode to the text."""
    path = MAKERS["SentencePiece, byte fallback"](corpus)
    codes = str(tmp_path / "codes")
    assert main(["import", str(path), "--output", codes, "--check", str(corpus)]) == 0
    assert "the same as the original on all 401 lines" in capfd.readouterr().err
    text = tmp_path / "text"
    text.write_text("schöne 😀 Häuser\n  zwei  Ω\n", encoding="utf-8")
    ids = str(tmp_path / "ids.bin")
    assert main(["encode", "--codes", codes, "--input", str(text), "--append", "</s>", "--output", ids]) == 0
    assert main(["decode", "--codes", codes, "--input", ids, "--output", str(tmp_path / "back")]) == 0
    assert (tmp_path / "back").read_bytes() == text.read_bytes()
    numbers = list(memoryview(Path(ids).read_bytes()).cast("H"))
    original = _imported(path)[1]
    wanted = [[*original(line), 2] for line in text.read_text("utf-8").splitlines()]
    assert numbers == [number for line in wanted for number in line]


def test_sentencepiece_takes_scaffold_tokens_apart_as_codes_do(corpus: Path, tmp_path: Path) -> None:
    """A piece of the type UNUSED is a scaffold token, so that trimmed codes can go back."""
    library: Any = pytest.importorskip("sentencepiece", reason="comes with the extra 'unigram'")
    imported = _imported(MAKERS["SentencePiece, byte fallback"](corpus))[0]
    before = imported.codes
    several = [merge.token for merge in before.merges if merge.normal and len(merge.token) > 3]
    codes = before.with_scaffold(before.scaffold | set(several[::3]))
    numbering, moved = imported.numbering.after(before, codes)
    assert moved.count(None) == len(several[::3])
    write_numbered(codes, numbering, tmp_path / "codes")
    (tmp_path / "model").write_bytes(sentencepiece.write(codes, numbering))
    original = library.SentencePieceProcessor(model_file=str(tmp_path / "model"))
    bpe = BPE(tmp_path / "codes")
    assert bpe.numbering == numbering
    for line in LINES:
        assert bpe.encode(line) == original.encode(line)
        assert max(bpe.encode(line)) < numbering.n_vocab < original.get_piece_size()


def test_a_check_reports_the_byte_offset_in_the_file(
    corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As all readers do; it was that in the line."""
    text = tmp_path / "text"
    text.write_bytes(b"low\n" * 70 + b"l\xffw\n")
    path = str(MAKERS["ByteLevel"](corpus))
    assert main(["import", path, "--output", str(tmp_path / "codes"), "--check", str(text)]) == 1
    assert f"{text}: line 71, byte offset 281: 0xFF is not UTF-8" in capfd.readouterr().err


def _json(model: dict[str, Any], **others: Any) -> dict[str, Any]:
    full = {"type": "BPE", "vocab": {"a": 0}, "merges": [], **model}
    return {
        "model": full,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        **others,
    }


def test_the_last_place_of_a_merge_is_its_rank(tmp_path: Path) -> None:
    """As in tokenizers; the export lists it once."""
    pytest.importorskip("tokenizers")
    vocabulary = {token: number for number, token in enumerate(["\u2581", "a", "b", "ab", "\u2581a", "<unk>"])}
    merges = [["a", "b"], ["\u2581", "a"], ["a", "b"]]
    model = {"vocab": vocabulary, "merges": merges, "unk_token": "<unk>", "fuse_unk": True}
    words = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}
    # With a byte order mark, the format was once not recognised.
    (tmp_path / "tokenizer.json").write_text(json.dumps(_json(model, pre_tokenizer=words)), encoding="utf-8-sig")
    imported, original = _imported(tmp_path / "tokenizer.json")
    assert segmentation(imported)("ab b") == original("ab b") == [4, 2, 0, 2]
    out = tokenizer_json.loaded(tokenizer_json.write(imported.codes, imported.numbering))
    assert out.encode("ab b").ids == [4, 2, 0, 2]


def test_spaces_as_gemma_replaces_them_are_imported(tmp_path: Path) -> None:
    """Gemma's normaliser replaces the spaces at which its pre-tokeniser would split; any other split is refused."""
    pytest.importorskip("tokenizers")
    vocabulary = {token: number for number, token in enumerate(["\u2581", "a", "b", "\u2581a", "\u2581ab", "<unk>"])}
    merges = [["\u2581", "a"], ["\u2581a", "b"]]
    model = {"vocab": vocabulary, "merges": merges, "unk_token": "<unk>", "fuse_unk": True}
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_json(model, normalizer=spaces, pre_tokenizer=split)))
    imported, original = _imported(path)
    assert segmentation(imported)("ab ab") == original("ab ab") == [1, 2, 4]
    path.write_text(json.dumps(_json(model, normalizer=spaces, pre_tokenizer=split | {"pattern": {"String": "a"}})))
    with pytest.raises(MTScaffoldError, match="the pre-tokeniser Split after the normaliser Replace"):
        _imported(path)


def test_ranks_with_a_token_that_no_merge_makes_are_refused(tmp_path: Path) -> None:
    """tiktoken gives such a token only to words that equal it."""
    tokens = [*(bytes((byte,)) for byte in range(256)), b"abc"]
    lines = (base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokens))
    (tmp_path / "ranks").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(MTScaffoldError, match="no merge makes the token 'abc'"):
        tiktoken.read(tmp_path / "ranks", "gpt2")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.text("ab", min_size=1, max_size=3)), max_size=8))
def test_merges_that_are_left_out_are_never_applied(merges: list[tuple[str, str]]) -> None:
    """The claim of integrations/vocabularies/merging.py, compared with merging one place at a time with all merges."""
    order = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}

    def merged(text: str, ranks: dict[tuple[str, str], int]) -> list[str]:
        parts = list(text)
        while pairs := [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]:
            at = min(pairs)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts

    kept = {pair: order[pair] for pair in applied_merges(merges, list)}
    for length in range(8):
        for number in range(2**length):
            text = f"{number:0{length}b}".replace("0", "a").replace("1", "b") if length else ""
            assert merged(text, order) == merged(text, kept)


def test_a_token_of_ranks_is_made_by_what_its_own_segmentation_comes_to() -> None:
    """Not by just any two tokens that spell it."""
    ranks = {token: rank for rank, token in enumerate(["a", "b", "c", "bc", "ab", "abc", "bca"])}
    assert merges_of_ranks(ranks, list) == ([("b", "c"), ("a", "b"), ("a", "bc"), ("bc", "a")], [])


def test_ids_of_other_codes_are_refused(corpus: Path, tmp_path: Path) -> None:
    """Codes that were edited do not get the ids of the old ones."""
    imported = _imported(MAKERS["SentencePiece, unknown"](corpus))[0]
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    assert isinstance(numbering_of(Codes.read(tmp_path / "codes")), Numbering)
    (tmp_path / "codes").write_bytes(imported.codes.text + b"x x\n")
    with pytest.raises(MTScaffoldError, match="has the ids of other codes than"):
        BPE(tmp_path / "codes").encode("a")


def test_a_fairseq_dictionary_refuses_imported_ids(corpus: Path, tmp_path: Path) -> None:
    """It would silently give other ids than the program."""
    vocabulary = pytest.importorskip("mt_scaffold.experiment.binarise.byte_vocabulary")
    codes = tmp_path / "codes"
    path = str(MAKERS["tiktoken"](corpus))
    assert main(["import", path, "--pretokenise", "cl100k", "--output", str(codes)]) == 0
    with pytest.raises(UsageError, match="numbers tokens by rank"):
        vocabulary.Vocabulary(codes)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "fastBPE"])
def test_the_class_for_transformers_has_the_ids_of_the_original(kind: str, corpus: Path, tmp_path: Path) -> None:
    """Encoding, decoding and streaming, in a batch, with special tokens in the text, and from a saved folder."""
    transformers = _transformers()
    imported, original = _imported(MAKERS[kind](corpus))
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    made = transformers.MTScaffoldTokenizer(tmp_path / "codes", pad_token="<pad>")
    made.save_pretrained(tmp_path / "saved")
    texts = [*LINES[:50], "  two spaces, schöne 😀 語\n", "a<|end|>b <sep> c", ""]
    decoder = BPE(imported.codes, numbering=imported.numbering)
    for tokenizer in (made, transformers.AutoTokenizer.from_pretrained(tmp_path / "saved", trust_remote_code=True)):
        assert type(tokenizer) is transformers.MTScaffoldTokenizer
        assert (tokenizer.vocab_size, tokenizer.pad_token_id) == (imported.numbering.n_vocab,) * 2
        assert len(set(tokenizer.get_vocab().values())) == len(tokenizer) == imported.numbering.n_vocab + 1
        wanted = [list(original(text)) for text in texts]
        assert tokenizer(texts).input_ids == [tokenizer(text).input_ids for text in texts] == wanted
        for text, ids in zip(texts, wanted, strict=True):
            assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) == ids
            assert tokenizer.decode(ids) == decoder.decode(ids)
        assert tokenizer("a<pad>").input_ids[-1] == tokenizer.pad_token_id


def test_special_tokens_that_are_named_have_their_original_ids(corpus: Path, tmp_path: Path) -> None:
    """SentencePiece does not find </s> in text; given as eos_token, it has the id of the model."""
    transformers = _transformers()
    imported, original = _imported(MAKERS["SentencePiece, byte fallback"](corpus))
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    tokenizer = transformers.MTScaffoldTokenizer(tmp_path / "codes", eos_token="</s>", append_eos=True)
    assert tokenizer("schöne Häuser").input_ids == [*original("schöne Häuser"), 2]
    assert len(tokenizer) == imported.numbering.n_vocab
    with pytest.raises(UsageError, match="omit lstrip, rstrip and single_word"):
        tokenizer.add_tokens([transformers.AddedToken("<m>", lstrip=True)])


def test_offsets_of_imported_codes_are_those_of_the_original(corpus: Path, tmp_path: Path) -> None:
    """They count characters, including those of special tokens; codes that add a space to a text refuse them."""
    transformers = _transformers()
    library: Any = pytest.importorskip("tokenizers")
    path = MAKERS["ByteLevel"](corpus)
    imported = _imported(path)[0]
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    text = "the lower<|end|> newest"
    wanted = library.Tokenizer.from_file(str(path)).encode(text)
    found = transformers.MTScaffoldTokenizer(tmp_path / "codes")(text, return_offsets_mapping=True)
    assert (found.input_ids, found.offset_mapping) == (wanted.ids, wanted.offsets)
    # With split_special_tokens, a special token is text, in tokenize as in a call.
    tokenizer = transformers.MTScaffoldTokenizer(tmp_path / "codes")
    tokens = tokenizer.tokenize(text, split_special_tokens=True)
    assert tokenizer.convert_tokens_to_ids(tokens) == tokenizer(text, split_special_tokens=True).input_ids
    assert "<|end|>" in tokenizer.tokenize(text) and "<|end|>" not in tokens
    imported = _imported(MAKERS["SentencePiece, unknown"](corpus))[0]
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    with pytest.raises(UsageError, match="return_offsets_mapping is not supported for codes that add spaces"):
        transformers.MTScaffoldTokenizer(tmp_path / "codes")(text, return_offsets_mapping=True)


def test_a_symbol_at_the_start_comes_after_the_space_before_the_text(corpus: Path) -> None:
    """As in SentencePiece, where a user-defined symbol is part of the text; decoding removes that space again."""
    imported, original = _imported(MAKERS["SentencePiece, byte fallback"](corpus))
    bpe = BPE(imported.codes, numbering=imported.numbering)
    for text in ("<sep>the", "<sep>", "<sep><sep> the", " <sep>", "the<sep> the<sep>", "<s><sep>", ""):
        ids: list[int] = list(map(int, segmentation(imported)(text)))
        assert ids == original(text)
        assert bpe.decode(ids) == text
    assert bpe.decode([3, *original(" the")[1:]]) == "<sep>" + bpe.decode(original(" the"))


def _added(content: str, number: int, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": content, **plain, **flags}


_PIECES = {"<unk>": 0, "\u2581": 1, "a": 2, "b": 3, "ab": 4, "\u2581a": 5}
_METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True}


def _pieces(added: list[dict[str, Any]], **model: Any) -> dict[str, Any]:
    full = {"vocab": _PIECES, "merges": [["a", "b"], ["\u2581", "a"]], "unk_token": "<unk>", "fuse_unk": True, **model}
    return _json(full, added_tokens=added, pre_tokenizer=_METASPACE)


_BYTES = {f"<0x{byte:02X}>": 6 + byte for byte in range(256)}


def test_added_tokens_of_both_kinds_that_do_not_overlap_are_found_as_in_tokenizers(tmp_path: Path) -> None:
    """The order in which tokenizers looks for them matters only if they overlap."""
    library: Any = pytest.importorskip("tokenizers")
    added = [_added("<unk>", 0), _added("<x>", 6, normalized=True), _added("  ", 7)]
    (tmp_path / "tokenizer.json").write_text(json.dumps(_pieces(added)), encoding="utf-8")
    imported, original = _imported(tmp_path / "tokenizer.json")
    for text in ("<x>ab<x>", "<x>  a", "a  <x>b<unk>", "<x>"):
        assert list(segmentation(imported)(text)) == original(text)
    # With a space before the text, version 1 of the library looks for normalized tokens after it.
    content = _pieces([_added("<x>", 6, normalized=True)]) | {"pre_tokenizer": _METASPACE | {"prepend_scheme": "first"}}
    version_1 = not hasattr(library, "AddedToken")
    assert tokenizer_json.loaded(content).encode("<x>a").ids == ([1, 6, 2] if version_1 else [6, 2])


def test_a_symbol_with_a_space_is_not_found_in_text(tmp_path: Path) -> None:
    """SentencePiece looks for symbols after it has replaced spaces."""
    library: Any = pytest.importorskip("sentencepiece", reason="comes with the extra 'unigram'")
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(["a river in New York", "New York is a city"] * 20),
        model_prefix=str(tmp_path / "m"),
        vocab_size=40,
        model_type="bpe",
        user_defined_symbols=["New York"],
        add_dummy_prefix=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    imported, original = _imported(tmp_path / "m.model")
    assert list(segmentation(imported)("in New York")) == original("in New York")
    codes, text, ids = str(tmp_path / "codes"), tmp_path / "text", str(tmp_path / "ids.bin")
    text.write_text("in New York")
    assert main(["import", str(tmp_path / "m.model"), "--output", codes]) == 0
    command = ["encode", "--codes", codes, "--in-text", "token", "--input", str(text), "--output", ids]
    assert main(command) == 0
    assert array("H", Path(ids).read_bytes()).tolist() == original("in New York")
    spelt = library.SentencePieceProcessor(model_file=str(tmp_path / "m.model")).piece_to_id("New York")
    assert BPE(codes).decode([spelt]) == "New York"


def test_an_export_that_sentencepiece_cannot_load_is_refused() -> None:
    """SentencePiece needs a piece for unknown characters, which it never finds in text."""
    unk: Any = ({"\u2581": 1, "a": 2, "b": 3}, {}, 0, Spaces(), {"<unk>": 0}, {}, {})
    codes, numbering = of_pieces("x", "metaspace", [], *unk)
    with pytest.raises(MTScaffoldError, match="SentencePiece does not find '<unk>', its piece for unknown"):
        sentencepiece.write(codes, replace(numbering, in_text=("<unk>",)))
    assert sentencepiece.write(codes, numbering)
    pieces = {"\u2581": 1, "a": 2, "\u2581\u2581": 3}
    codes, numbering = of_pieces("x", "metaspace", [("\u2581", "\u2581")], pieces, *unk[1:])
    with pytest.raises(MTScaffoldError, match="would make '\u2581\u2581'"):
        sentencepiece.write(codes, numbering)


def test_a_cr_in_fastbpe_codes_is_not_lost(tmp_path: Path) -> None:
    """A CR at the end of a line is not part of a symbol; a symbol that ends in one is refused; no merge is repeated."""
    (tmp_path / "crlf").write_bytes(b"a b 3\r\nab c</w> 2\r\n")
    assert fastbpe.read(tmp_path / "crlf").codes.text == b"#version: 0.2\na b\nab c</w>\n"
    for content, reason in ((b"a b\r 3\n", "ends in a CR"), (b"a b 3\nb c 2\na b 1\n", "is also in line 1")):
        (tmp_path / "codes").write_bytes(content)
        with pytest.raises(MTScaffoldError, match=reason):
            fastbpe.read(tmp_path / "codes")
    twice = Codes(b"#version: 0.2\na b\nb c\na b\n")
    assert export_codes(twice, tmp_path / "out", "fastbpe") == 2
    assert (tmp_path / "out").read_bytes() == b"a b 0\nb c 0\n"


def test_special_tokens_that_tiktoken_finds_by_chance_are_refused(corpus: Path) -> None:
    """If one is a prefix of another, the order of a hash table decides; and an id belongs to one token only."""
    path = _ranks(corpus)
    with pytest.raises(MTScaffoldError, match="'<a>' is a prefix of '<a>b'"):
        tiktoken.read(path, "gpt2", {"<a>b": 1001, "<a>": 1000})
    with pytest.raises(MTScaffoldError, match="have one id, 97"):
        tiktoken.read(path, "gpt2", {"<a>": 97})


def test_ids_that_no_token_has_decode_to_nothing(tmp_path: Path) -> None:
    """A known difference from tiktoken, which raises an error; ids beyond the last are refused."""
    tokens = [(bytes([byte]), byte) for byte in range(256)] + [(b"ab", 300)]
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % number for token, number in tokens)
    (tmp_path / "ranks").write_bytes(ranks)
    assert main(["import", str(tmp_path / "ranks"), "--pretokenise", "gpt2", "--output", str(tmp_path / "codes")]) == 0
    bpe = BPE(tmp_path / "codes")
    assert bpe.decode([300, 280, 32]) == "ab "
    with pytest.raises(MTScaffoldError, match="id 301 at position 0 is out of range: these codes have ids 0 to 300"):
        bpe.decode([301])


def test_an_export_with_ends_of_words_does_not_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its tokenizer.json splits at spaces, which importing does not support."""
    (tmp_path / "codes").write_text("#version: 0.2\na b\nab c</w>\n", encoding="utf-8")
    exported = tmp_path / "tokenizer.json"
    assert main(["export-tokenizers", "--codes", str(tmp_path / "codes"), "--output", str(exported)]) == 0
    assert main(["import", str(exported), "--output", str(tmp_path / "again")]) == 1
    assert "tokenizer.json: " in capsys.readouterr().err and not (tmp_path / "again").exists()


def test_a_token_that_is_spelled_in_no_bytes_is_not_found_in_text(tmp_path: Path) -> None:
    """ByteLevel's "ĠĠ" is two spaces; a token spelled as two actual spaces has another id, which no text gets."""
    pytest.importorskip("tokenizers")
    pieces = [*sorted(map(bytes_to_notation, (bytes((byte,)) for byte in range(256)))), "ĠĠ", "  "]
    model = {"vocab": {piece: number for number, piece in enumerate(pieces)}, "merges": [["Ġ", "Ġ"]]}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_json(model)), encoding="utf-8")
    found, original = _imported(path)
    imported = segmentation(found)
    for text in ("  ", "a   b", "a\n  "):
        assert list(imported(text)) == original(text)
    assert list(imported("  ")) == [256]


def test_added_tokens_that_are_not_special_are_shown(tmp_path: Path) -> None:
    """Skipping special tokens keeps tool calls, for example, in the class, saved or not, and in an export."""
    library: Any = pytest.importorskip("tokenizers")
    added = [_added("<unk>", 0), _added("<end>", 6), _added("<call>", 7, special=False)]
    (tmp_path / "tokenizer.json").write_text(json.dumps(_pieces(added)), encoding="utf-8")
    imported, _ = _imported(tmp_path / "tokenizer.json")
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    original = library.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    text = "ab<call>a<end>"
    ids = original.encode(text).ids
    wanted = {True: "ab<call>a", False: text}
    export_tokenizers(tmp_path / "codes", tmp_path / "out.json")
    exported = library.Tokenizer.from_file(str(tmp_path / "out.json"))
    for skip in wanted:
        assert original.decode(ids, skip_special_tokens=skip).replace(" ", "") == wanted[skip]
        assert exported.decode(ids, skip_special_tokens=skip) == wanted[skip]
    transformers = _transformers()
    made = transformers.MTScaffoldTokenizer(tmp_path / "codes")
    made.save_pretrained(tmp_path / "saved")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved", trust_remote_code=True)
    assert all(each.decode(ids, skip_special_tokens=skip) == wanted[skip] for each in (made, loaded) for skip in wanted)
    # Replacing transformers' list of further special tokens leaves those of the codes.
    made.add_special_tokens({"additional_special_tokens": ["<call>"]})
    assert made.decode(ids, skip_special_tokens=True) == "aba"
    made.add_special_tokens({"additional_special_tokens": []})
    assert made.decode(made("a<end>b").input_ids, skip_special_tokens=True) == "ab"


def test_a_check_of_an_export_finds_special_tokens_in_its_text(tmp_path: Path) -> None:
    """Both those of imported codes and added ones, like the exported file."""
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(json.dumps(_pieces([_added("<unk>", 0), _added("<x>", 6)])))
    imported, _ = _imported(tmp_path / "tokenizer.json")
    write_numbered(imported.codes, imported.numbering, tmp_path / "codes")
    (tmp_path / "text").write_text("ab<x>a\n<x>\na<y>b\n")
    exported = export_tokenizers(
        tmp_path / "codes", tmp_path / "out.json", special_tokens=["<y>"], check=tmp_path / "text"
    )
    assert exported.lines == 3


_TEXT, _START, _END = {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<s>"}}, {"SpecialToken": {"id": "<e>"}}
_AFTER = {"type": "TemplateProcessing", "single": [_TEXT, _END]}


@pytest.mark.parametrize(
    ("processor", "notes"),
    [
        (None, []),
        ({"type": "ByteLevel"}, []),
        (
            {"type": "TemplateProcessing", "single": [_START, _TEXT]},
            ["puts <s> before a text, which encode does not; the tokenizer for transformers does with prepend_bos"],
        ),
        (
            {"type": "Sequence", "processors": [{"type": "ByteLevel"}, _AFTER]},
            ["puts <e> after a text, which encode does with --append"],
        ),
        (
            {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]},
            ["puts <s> before a text", "puts </s> after a text, which encode does with --append"],
        ),
    ],
)
def test_what_a_post_processor_adds_is_said(processor: Any, notes: list[str], tmp_path: Path) -> None:
    """``--append`` puts a token at the end, so it must not be suggested for one at the start."""
    content = _pieces([_added("<unk>", 0)]) | {"post_processor": processor}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    found = tokenizer_json.read(tmp_path / "tokenizer.json").notes
    assert len(found) == len(notes) and all(note in each for note, each in zip(notes, found, strict=True))


def test_a_long_token_is_segmented_in_no_time() -> None:
    """A token that a file spells out may have any length; with quadratic time, this one would take hours."""
    ranks = {"a" * 2**power: power for power in range(1, 17)}
    assert last_parts("a" * 2**16, lambda left, right: ranks.get(left + right)) == ["a" * 2**15] * 2


def _message(*fields: tuple[int, int | bytes]) -> bytes:
    return sentencepiece._message(*fields)


_FLOAT = b"\x15\x00\x00\x00\x00"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"\xff" * 1_500_000, "a whole number of more than 10 bytes", id="a number without an end"),
        (b"\x0a\x0b\x18" + b"\xff" * 10, "a whole number of more than 10 bytes"),
        (_message((1, 5)), "field 1 has the type 0"),
        (_message((1, _message((1, 5)))), "field 1 has the type 0"),
        (_message((1, _message((2, 5)))), "field 2 has the type 0"),
        (_message((1, _message((2, b"four")))), "field 2 has the type 2"),
        (_message((1, _message((3, b"x")))), "field 3 has the type 2"),
        (_message((1, _message((3, 7)))), "a piece with the score 0.0 and the type 7"),
        (_message((1, b"\x15\x00\x00\xc0\x7f")), "a piece with the score nan"),
        (_message((1, _message((1, b"\xff")))), "can't decode byte 0xff"),
        (_message((2, 5)), "field 2 has the type 0"),
        (_message((3, _message((1, b"\xff"), (2, b"x"))), (2, _message((3, 2)))), "can't decode byte 0xff"),
        (_message((3, _message((1, 5), (2, b"x"))), (2, _message((3, 2)))), "field 1 has the type 0"),
        (_message((2, _message((3, b"x")))), "field 3 has the type 2"),
        (_message((5, _message((2, 1)))), "field 2 has the type 0"),
        (
            _message((1, _message((1, b"a\nb"), (3, 6))), (2, _message((3, 2))), (3, _message((4, 0)))),
            r"the piece 'a\\nb' is not a byte",
        ),
        (b"\x0b", "field 1 of type 3"),
        (b"\x0a\x05a", "field 1 of type 2 with 5 bytes"),
        (b"\x0a", "index out of range"),
    ],
)
def test_a_malformed_model_of_sentencepiece_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    """In one line, whatever the bytes, and in linear time."""
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(MTScaffoldError, match=f"not a model of SentencePiece .*{reason}") as caught:
        sentencepiece.read(tmp_path / "model")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        (("ab", -4.0, 1), "two pieces named 'ab'"),
        (("a", -5.0, 5), "two pieces named 'a'"),
        (("<s>", 0.0, 3), "two pieces named '<s>'"),
        (("<u>", 0.0, 2), "two pieces for unknown characters"),
        (("", -5.0, 1), "a piece without a name"),
        (("c", -5.0, 1), None),
    ],
)
def test_pieces_that_sentencepiece_does_not_load_are_refused(
    piece: tuple[str, float, int], reason: str | None, tmp_path: Path
) -> None:
    """One of two ids was lost without a word; the library refuses such a model."""
    library: Any = pytest.importorskip("sentencepiece", reason="comes with the extra 'unigram'")
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("\u2581", -1.0, 1), ("a", -2.0, 1), ("b", -3.0, 1), ("ab", 0.0, 1)]
    packed = ((1, sentencepiece._packed(sentencepiece._Piece(*each))) for each in [*pieces, piece])
    settings = _message((1, b"identity"), (3, 0), (4, 0), (5, 1))
    (tmp_path / "model").write_bytes(_message(*packed, (2, _message((3, 2))), (3, settings)))
    load = library.SentencePieceProcessor().load
    if reason is None:
        assert load(str(tmp_path / "model")) and sentencepiece.read(tmp_path / "model").numbering
        return
    with pytest.raises(RuntimeError):
        load(str(tmp_path / "model"))
    with pytest.raises(MTScaffoldError, match=f"model: SentencePiece does not load {reason}$"):
        sentencepiece.read(tmp_path / "model")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_json({}, normalizer={"type": "NFC"}), "the normaliser NFC changes text"),
        (_json({"type": "Unigram"}), "the model 'Unigram' is not BPE"),
        (_json({"dropout": 0.1}), "the model has dropout 0.1"),
        (_json({}, pre_tokenizer={"type": "Whitespace"}), "the pre-tokeniser (Whitespace) is neither"),
        (_json({}, pre_tokenizer={"type": "ByteLevel", "add_prefix_space": True}), "add_prefix_space"),
        (_json({}), "'Ā' has no id"),
        ({"a": 0, "b": 1}, "ids of tokens without merges (vocab.json); give tokenizer.json instead"),
        (_json({}, added_tokens=[{"id": 9, "content": "<m>", "lstrip": True}]), "the added token '<m>' has lstrip"),
        (_pieces([_added("<a>", 400)]), "the added token '<a>' has the id 400, but 6 in tokenizers"),
        (_pieces([_added("<a>", 6), _added("<a>", 7)]), "the added token '<a>' is listed twice"),
        (_pieces([_added("<b>", 5)]), "the added token '<b>' has the id 5, but 6 in tokenizers"),
        (_pieces([_added("<a>", -1)]), "the added token '<a>' has the id -1, but 6 in tokenizers"),
        (_pieces([_added("", 6)]), "the added token with the id 6 is empty"),
        (
            _pieces([_added("abc", 6, normalized=True), _added("bcd", 7)]),
            "the added tokens 'abc' and 'bcd' overlap, and one of them is normalized",
        ),
        (_pieces([_added("\u2581a", 5)]), "the added token '\u2581a' is also a piece, where"),
        (
            _pieces([_added("<unk>", 0)], vocab=_PIECES | _BYTES, byte_fallback=True, ignore_merges=True),
            "no merge makes the token '<0x",
        ),
        (_pieces([], unk_token="a"), "the unknown token 'a' is also a piece of text"),
        (_pieces([], vocab=_PIECES | {"b": 2}), "have one id, 2"),
        (_pieces([], vocab=_PIECES | {"b": 2**24}), "'b' has the id 16777216, which is not from 0 to 16,777,215"),
        pytest.param('{"model": ' + "[" * 100_000, "RecursionError", id="nested deeply"),
        (_pieces([]) | {"post_processor": {"type": "TemplateProcessing", "single": []}}, "ValueError"),
        (_pieces([]) | {"post_processor": {"type": "BertProcessing", "cls": [], "sep": []}}, "IndexError"),
        (_pieces([], vocab=_PIECES | {"x": 6.0}), "TypeError: the token 'x' with the id 6.0"),
        (_pieces([], vocab=_PIECES | {"x": True}), "TypeError: the token 'x' with the id True"),
        (_pieces([_added("<x>", 6) | {"content": 5}]), "TypeError: the token 5 with the id 6"),
        (_pieces([], vocab=_PIECES | {"b": -1}), "'b' has the id -1, which is not from 0"),
        (_pieces([], merges=[["x\ny", "a"]]), r"is in the merges, but not in the vocabulary"),
        (_pieces([_added("x\ny", 6) | {"lstrip": True}]), r"the added token 'x\ny' has lstrip"),
    ],
)
def test_a_tokenizer_json_that_codes_cannot_express_is_refused_by_name(
    content: Any, reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Other models and normalisers, added tokens that tokenizers numbers or finds differently, ids in use, malformed
    files: nothing is guessed, one line names it, even if the library's message has several, and no file is left."""
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
    assert main(["import", f"{tmp_path}/tokenizer.json", "--output", f"{tmp_path}/codes"]) == 1
    message = capfd.readouterr().err
    assert reason in message and message.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]


def _places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value of a JSON document."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], *path, key)


def test_a_tokenizer_json_with_any_other_value_is_read_or_refused(tmp_path: Path) -> None:
    """Each value is left out or given another type: it is either refused, or imported with whole numbers as ids."""
    template = {"type": "TemplateProcessing", "single": [_START, _TEXT]}
    others = [template, {"type": "BertProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}]
    document = _pieces([_added("<unk>", 0), _added("<x>", 6)])
    document["post_processor"] = {"type": "Sequence", "processors": others}
    replace_spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    spaces = [{"type": "Prepend", "prepend": "\u2581"}, replace_spaces]
    llama = {"normalizer": {"type": "Sequence", "normalizers": spaces}, "pre_tokenizer": None}
    path, left_out = tmp_path / "tokenizer.json", object()
    read = refused = 0
    for whole, part in ((document, ()), (document | llama, ("normalizer",))):
        for *first, last in (place for place in _places(whole) if place and place[: len(part)] == part):
            for value in (left_out, None, 5, "x", [], {}):
                changed: Any = copy.deepcopy(whole)
                place = changed
                for key in first:
                    place = place[key]
                if value is left_out:
                    del place[last]
                else:
                    place[last] = value
                path.write_text(json.dumps(changed), encoding="utf-8")
                try:
                    codes, numbering, _ = tokenizer_json.read(path)
                except MTScaffoldError:
                    refused += 1
                    continue
                read += 1
                assert codes.merges is not None and numbering is not None
                assert {*map(type, (*numbering.ids, *numbering.special.values()))} <= {int}
    assert min(read, refused) > 50


def test_a_file_that_its_own_program_does_not_load_is_refused_by_a_check(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each library raises its own exceptions."""
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(_pieces([]) | {"decoder": {"type": "x"}}), encoding="utf-8")
    assert main(["import", str(path), "--check", str(path), "--output", f"{tmp_path}/codes"]) == 1
    message = capfd.readouterr().err
    assert "its own program does not load it" in message and message.count("\n") == 1
    assert not (tmp_path / "codes").exists()
