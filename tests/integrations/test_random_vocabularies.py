"""Random files of other programs, imported, exported and imported again: they get the library's ids, or are refused."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from awkward_words import examples
from hypothesis import given
from hypothesis import strategies as st

from mt_scaffold import MTScaffoldError
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.integrations.tokenizers import to_tokenizers
from mt_scaffold.integrations.vocabularies import fastbpe, importing, sentencepiece, tiktoken, tokenizer_json
from mt_scaffold.segment.numbering import write_numbered

LETTERS = "aabbcdeé日\u2581"
SYMBOLS = ["<s>", "<sep>", "<sep>a", "ab", "bc", "a b", "\u2581a", "<unk>", "<0x41>", "  ", "é", "?"]
WRITERS = {
    "sentencepiece": sentencepiece.write,
    "tiktoken": tiktoken.write,
    "fastbpe": lambda codes, _: fastbpe.write(codes),
}


class Made(NamedTuple):
    """The content of a file, the special tokens to look for in text, and the options of its import."""

    content: bytes
    symbols: list[str]
    pretokeniser: str | None = None
    special: Mapping[str, int] | None = None


def _words(draw: random.Random) -> list[str]:
    return ["".join(draw.choices(LETTERS[:-1], k=draw.randrange(1, 6))) for _ in range(draw.randrange(4, 12))]


def _merges(draw: random.Random, base: list[str]) -> list[tuple[str, str]]:
    tokens, merges = list(base), dict[tuple[str, str], None]()
    for _ in range(draw.randrange(1, 16)):
        pair = draw.choice(tokens), draw.choice(tokens)
        merges[pair] = None
        tokens.append("".join(pair))
    return list(merges)


def _tokenizer_json(draw: random.Random) -> Made:
    import tokenizers

    kind = draw.choice(["bytes", "always", "first", "never", "llama"])
    base = list("abcde\u2581") if kind != "bytes" else list("abcdeĠÃ©")
    merges = _merges(draw, base)
    fallback = kind != "bytes" and draw.random() < 0.5
    alphabet = [bytes_to_notation(bytes((byte,))) for byte in range(256)]
    listed = [*(alphabet if kind == "bytes" else base), *("".join(pair) for pair in merges)]
    listed += ["<unk>", *draw.sample(SYMBOLS, draw.randrange(3))]
    listed += [f"<0x{byte:02X}>" for byte in range(256)] if fallback else []
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(listed))}
    options = {"unk_token": draw.choice(["<unk>"] * 6 + ["a"]), "fuse_unk": draw.random() < 0.9}
    options |= {"byte_fallback": fallback, "ignore_merges": draw.random() < 0.2}
    words: dict[str, Any] | None
    normaliser = None
    if kind == "bytes":
        words = {"type": "ByteLevel", "add_prefix_space": draw.random() < 0.05, "trim_offsets": True}
    elif kind == "llama":
        spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        normaliser = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, spaces]}
        words = None
    else:
        words = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": kind, "split": draw.random() < 0.7}
    content = tokenizer_json.content_of(normaliser, words, None, vocabulary, merges, **options)
    symbols = draw.sample(SYMBOLS, draw.randrange(5))
    rare = draw.random() < 0.1
    # Version 1 looks for normalized tokens after Metaspace has replaced spaces, which importing does not.
    often = 0.02 if kind == "llama" else 0.3 * (kind == "bytes" or hasattr(tokenizers, "AddedToken"))
    for symbol in symbols:
        flags = {flag: rare and draw.random() < 0.3 for flag in ("lstrip", "rstrip", "single_word")}
        flags |= {"normalized": draw.random() < often, "special": draw.random() < 0.5}
        number = vocabulary.setdefault(symbol, len(vocabulary))
        content["added_tokens"].append({"id": number, "content": symbol, **flags})
    content["added_tokens"].sort(key=lambda token: token["id"])
    return Made(json.dumps(content).encode(), symbols)


def _sentencepiece(draw: random.Random) -> Made:
    from sentencepiece import SentencePieceTrainer

    symbols = draw.sample([each for each in SYMBOLS if each not in ("<s>", "<unk>", "<0x41>", "  ")], draw.randrange(4))
    control = draw.sample(["<c>", "x", "cd"], draw.randrange(3))
    lines = [" ".join(draw.choices(_words(draw), k=6)) for _ in range(8)]
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=draw.choice([24, 40]) + 256 * (fallback := draw.random() < 0.4),
        byte_fallback=fallback,
        hard_vocab_limit=False,
        user_defined_symbols=symbols,
        control_symbols=control,
        add_dummy_prefix=draw.random() < 0.6,
        remove_extra_whitespaces=draw.random() < 0.05,
        normalization_rule_name="identity",
        character_coverage=draw.choice([1.0, 0.9]),
        split_digits=draw.random() < 0.3,
        split_by_whitespace=draw.random() < 0.9,
        allow_whitespace_only_pieces=draw.random() < 0.3,
        treat_whitespace_as_suffix=draw.random() < 0.05,
        bos_id=draw.choice([1, -1]),
        eos_id=-1,
        unk_piece=draw.choice(["<unk>", "?"]) if "?" not in symbols else "<unk>",
        num_threads=1,
        minloglevel=3,
    )
    fields = []
    unused = draw.random() < 0.3
    for number, _, value in sentencepiece._fields(model.getvalue()):
        if number == 1 and unused:
            piece = sentencepiece._piece(value)
            hidden = piece.kind == 1 and piece.text != "\u2581" and draw.random() < 0.3
            value = sentencepiece._packed(piece._replace(kind=5) if hidden else piece)
        fields.append((number, value))
    return Made(sentencepiece._message(*fields), [*symbols, *control, "<s>", "<unk>"])


def _tiktoken(draw: random.Random) -> Made:
    base = [each.encode() for each in "abcde "]
    merges = [left + right for left, right in _merges(draw, list("abcde "))]
    tokens = dict.fromkeys([*(bytes((byte,)) for byte in range(256)), *base, *(each.encode() for each in merges)])
    content = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    symbols = draw.sample(SYMBOLS, draw.randrange(1, 4))
    first = len(tokens) - (draw.random() < 0.05) + draw.randrange(3)
    special = {token: first + number for number, token in enumerate(symbols)}
    return Made(content, symbols, draw.choice(["gpt2", "cl100k", "o200k"]), special)


def _fastbpe(draw: random.Random) -> Made:
    merges = _merges(draw, ["a", "b", "c", "d", "é"] + (["a\r"] if draw.random() < 0.05 else []))
    if draw.random() < 0.7:
        merges += [(left, right + "</w>") for left, right in merges[::2] if len(right) == 1]
    end = draw.choice(["\n", "\n", "\r\n"])
    return Made("".join(f"{left} {right} 9{end}" for left, right in merges).encode(), ["</w>", "@@"])


MAKERS = {
    "tokenizer.json": _tokenizer_json,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
    "fastbpe": _fastbpe,
}


def _texts(draw: random.Random, symbols: list[str], plain: bool) -> list[str]:
    """Return texts that begin with, end in, repeat and surround every special token, and some without any."""
    texts = ["", *(_text(draw) for _ in range(4))]
    for symbol in symbols:
        texts += [symbol, symbol * 2, symbol + _text(draw), _text(draw) + symbol, f" {symbol} {symbol}"]
        texts.append(symbol.join(_text(draw) for _ in range(3)) + draw.choice(symbols))
    # fastBPE separates words at spaces only.
    return [" ".join(text.split()) or "a" for text in texts] if plain else texts


def _text(draw: random.Random) -> str:
    return "".join(draw.choices([*LETTERS, " ", " ", "?", "Ω", "<", "\n", "😀"], k=draw.randrange(9)))


@pytest.mark.parametrize("format", MAKERS)
@examples(20)
@given(seed=st.integers(0, 2**64))
def test_imported_and_exported_again(format: str, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """A random file is refused, or gives the library's ids, imported and exported again."""
    pytest.importorskip({"tokenizer.json": "tokenizers", "fastbpe": "fastBPE"}.get(format, format))
    draw = random.Random(f"{seed} {format}")
    folder = tmp_path_factory.mktemp("random")
    path = folder / "file"
    try:
        made = MAKERS[format](draw)
    except (RuntimeError, ValueError, OSError):
        return  # the library does not train on this
    path.write_bytes(made.content)
    reader = importing.reader_of(format)
    try:
        imported = reader.read(path, made.pretokeniser, made.special)
    except MTScaffoldError:
        return
    texts = _texts(draw, made.symbols, imported.numbering is None)
    ours = importing.segmentation(imported)
    original = reader.original(path, imported)
    wanted = [list(original(text)) for text in texts]
    assert [list(ours(text)) for text in texts] == wanted, texts
    if imported.numbering is not None:
        write_numbered(imported.codes, imported.numbering, folder / "codes")
        with contextlib.suppress(MTScaffoldError):
            tokenizer = to_tokenizers(folder / "codes", pattern="published")
            assert tokenizer_json.ids_of(tokenizer, texts) == wanted, texts
    if format in WRITERS:
        try:
            content = WRITERS[format](imported.codes, imported.numbering)  # type: ignore[no-untyped-call]
        except MTScaffoldError:
            return
        path.write_bytes(content)
        exported = reader.original(path, reader.read(path, made.pretokeniser, made.special))
        assert [list(exported(text)) for text in texts] == wanted, texts
