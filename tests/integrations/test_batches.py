"""Batches of MTScaffoldTokenizer, compared with transformers' own code; offsets, chats and streams of ids."""

from __future__ import annotations

import copy
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mt_scaffold import UsageError, learn_bpe

pytest.importorskip("transformers", reason="comes with the extra 'transformers'")

from transformers import AddedToken, PreTrainedTokenizer, TextIteratorStreamer

from mt_scaffold.integrations.tokenizers import to_tokenizers
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer

TEXTS = [
    "a small house",
    "",
    "  two  spaces \n and\r\n lines\t\n",
    "Größe 12345 — 東京 🙂👩‍👩‍👧 e\u0301",
    "the house <|end|> and <|end|><|end|>",
    "it's </w> a</w>b @@ x@@ y",
]
WORDS = ["a small house", "", "das Haus  ist größer ", "low lower x@@ y", "a </s> b", " @@ a@@ @@"]


@pytest.fixture(scope="module")
def tokenizers(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, MTScaffoldTokenizer]:
    """One for each kind of codes and algorithm."""
    folder = tmp_path_factory.mktemp("codes")
    train = [tiny_words / "train.en", tiny_words / "train.de"]
    found = {}
    for algorithm in ("bpe", "scaffold"):
        kinds: dict[str, dict[str, Any]] = {
            "gpt2": {"pretokenise": "gpt2"},
            "o200k": {"pretokenise": "o200k"},
            "points": {},
        }
        for kind, options in kinds.items():
            path = folder / f"{kind}-{algorithm}"
            learn_bpe(paths=train, outfile=path, num_symbols=150, algorithm=algorithm, **options)
            special: dict[str, Any] = (
                {} if kind == "points" else {"eos_token": "<|end|>", "pad_token": "<|pad|>", "bos_token": "<|end|>"}
            )
            found[path.name] = MTScaffoldTokenizer(path, **special, prepend_bos=kind == "gpt2")
    return found


def texts_of(name: str) -> list[str]:
    return WORDS if name.startswith("points") else TEXTS


OPTIONS: list[dict[str, Any]] = [
    {},
    {"padding": True, "return_tensors": "np"},
    {"padding": "max_length", "max_length": 40, "truncation": True, "return_special_tokens_mask": True},
    {"padding": True, "pad_to_multiple_of": 8, "padding_side": "left", "return_tensors": "np"},
    {"truncation": True, "max_length": 4, "return_length": True, "return_attention_mask": False},
    {"truncation": "only_second", "max_length": 4, "verbose": False},
    {"add_special_tokens": False, "split_special_tokens": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_a_batch_is_what_transformers_makes_of_each_text(
    tokenizers: dict[str, MTScaffoldTokenizer], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding, truncation, masks and special tokens: the same arrays and lists, for every kind of codes."""
    fast = {name: tokenizer(texts_of(name), **options) for name, tokenizer in tokenizers.items()}
    one = {name: tokenizer(texts_of(name)[0], **options) for name, tokenizer in tokenizers.items()}
    monkeypatch.setattr(MTScaffoldTokenizer, "_encode_plus", PreTrainedTokenizer._encode_plus)
    for name, tokenizer in tokenizers.items():
        for found, expected in (
            (fast[name], tokenizer(texts_of(name), **options)),
            (one[name], tokenizer(texts_of(name)[0], **options)),
        ):
            assert found.keys() == expected.keys()
            for key in expected:
                assert (
                    numpy.array_equal(found[key], expected[key])
                    if "return_tensors" in options
                    else (found[key] == expected[key])
                ), (name, key)


@pytest.mark.parametrize("side", ["left", "right"])
def test_texts_are_truncated_on_the_side_that_is_set(tokenizers: dict[str, MTScaffoldTokenizer], side: str) -> None:
    """The end of a long prompt is what a model continues."""
    tokenizer = tokenizers["gpt2-bpe"]
    whole = tokenizer("a small house and another one", add_special_tokens=False)["input_ids"]
    tokenizer.truncation_side, before = side, tokenizer.truncation_side
    try:
        cut = tokenizer("a small house and another one", truncation=True, max_length=5)["input_ids"]
    finally:
        tokenizer.truncation_side = before
    assert cut == [tokenizer.bos_token_id, *(whole[-4:] if side == "left" else whole[:4])]


@pytest.mark.parametrize("kind", ["gpt2", "points"])
def test_offsets_are_those_of_tokenizers(
    tokenizers: dict[str, MTScaffoldTokenizer], tiny_words: Path, kind: str
) -> None:
    """On plain BPE codes, which that library also supports, with characters of several bytes and odd spaces."""
    tokenizer = tokenizers[f"{kind}-bpe"]
    other = to_tokenizers(
        tokenizer.init_kwargs["codes_file"] if "codes_file" in tokenizer.init_kwargs else _codes(tokenizer)
    )
    texts = [text for text in texts_of(kind) if "<|" not in text and "</s>" not in text and "@@" not in text]
    texts += (tiny_words / "train.de").read_text(encoding="utf-8").splitlines()[:300]
    found = tokenizer(texts, return_offsets_mapping=True, add_special_tokens=False)
    for encoding, offsets in zip(
        other.encode_batch(texts, add_special_tokens=False), found["offset_mapping"], strict=True
    ):
        assert encoding.offsets == offsets


def _codes(tokenizer: MTScaffoldTokenizer) -> Any:
    return tokenizer._source.codes


@pytest.mark.parametrize("name", ["gpt2-scaffold", "o200k-scaffold", "points-scaffold", "points-bpe"])
def test_offsets_are_where_plain_python_finds_the_subwords(
    tokenizers: dict[str, MTScaffoldTokenizer], tiny_words: Path, name: str
) -> None:
    """Each token's characters contain its bytes, in order, with only spaces between tokens."""
    tokenizer = tokenizers[name]
    texts = texts_of(name) + (tiny_words / "train.de").read_text(encoding="utf-8").splitlines()[:300]
    found = tokenizer(texts, return_offsets_mapping=True, add_special_tokens=False, return_tensors=None)
    for text, ids, offsets in zip(texts, found["input_ids"], found["offset_mapping"], strict=True):
        place = 0
        data = text.encode()
        for number, (begin, end) in zip(ids, offsets, strict=True):
            piece = tokenizer.decode([number])
            if "\ufffd" in piece:
                place = max(place, end)
                continue
            if tokenizer.convert_ids_to_tokens(number) == "<unk>":
                assert end > begin
            else:
                assert text[begin:end] == (piece.removesuffix("@@") if text[begin:end] != piece else piece)
            assert text[place:begin].strip(" \r\n") == "" or "<" in text
            place = max(place, end)
        spanned = sum(len(text[begin:end].encode()) for begin, end in offsets)
        assert spanned >= len(data) - sum(map(text.count, " \r\n")) if name != "gpt2-scaffold" else spanned >= len(data)


def test_special_tokens_in_a_text_have_their_place(tokenizers: dict[str, MTScaffoldTokenizer]) -> None:
    """Even in a padded array; tokens around a text have none, and ids are given without a text."""
    tokenizer = tokenizers["gpt2-scaffold"]
    text = "the house <|end|> and"
    found = tokenizer([text, "a"], return_offsets_mapping=True, padding=True, return_tensors="np")
    ids, offsets = found["input_ids"][0].tolist(), found["offset_mapping"][0].tolist()
    place = ids.index(tokenizer.eos_token_id, 1)
    assert text[slice(*offsets[place])] == "<|end|>" and offsets[0] == [0, 0]
    assert found["offset_mapping"][1, 2:].tolist() == [[0, 0]] * (len(ids) - 2)
    with pytest.raises(UsageError, match="return_offsets_mapping: works for texts, pairs and words only"):
        tokenizer([5, 6], return_offsets_mapping=True)


def test_dropout_is_the_same_in_any_batch(tokenizers: dict[str, MTScaffoldTokenizer]) -> None:
    """A text's tokens depend on seed, epoch and text, as those of ``tokenize`` do, and its offsets fit them."""
    for name, tokenizer in tokenizers.items():
        texts = ["a small house and another small house", "the houses"]
        tokenizer.set_dropout(0.5, seed=3)
        found = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
        plain = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in texts]
        tokenizer.set_dropout(0)
        assert found["input_ids"] == plain, name
        for text, offsets in zip(texts, found["offset_mapping"], strict=True):
            assert "".join(text[begin:end] for begin, end in offsets).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.text("ab <>|\u00e9🙂", max_size=12), min_size=1, max_size=3))
@example(["", "  <a>  ", "<ab<b>", "<a> x <a>b<b>", "ab"])
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_added_tokens_are_found_as_transformers_finds_them(
    tokenizers: dict[str, MTScaffoldTokenizer], texts: list[str]
) -> None:
    """One is a prefix of another, two strip the spaces next to them; their spans are where they are spelt."""
    for name in ("gpt2-scaffold", "points-bpe"):
        tokenizer = deepcopy(tokenizers[name])
        tokens = AddedToken("<a>", lstrip=True), AddedToken("<b>", rstrip=True), "<", "<a", "🙂>"
        tokenizer.add_tokens([token if isinstance(token, AddedToken) else AddedToken(token) for token in tokens])
        found = tokenizer(texts, return_offsets_mapping=True, add_special_tokens=False)
        for text, ids, offsets in zip(texts, found["input_ids"], found["offset_mapping"], strict=True):
            assert ids == PreTrainedTokenizer._encode_plus(tokenizer, text, add_special_tokens=False)["input_ids"]
            for number, (begin, end) in zip(ids, offsets, strict=True):
                if number in tokenizer.added_tokens_decoder and number != tokenizer.unk_token_id:
                    assert text[begin:end].strip() == str(tokenizer.added_tokens_decoder[number])
            assert offsets == sorted(offsets)


@given(st.lists(st.text("ab <>|\u00e9🙂", max_size=12), min_size=1, max_size=3))
@example(["", "<a><a", "<🙂>x<🙂🙂>", "|é<a>|", "ab"])
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_core_finds_added_tokens_as_the_pattern_does(
    tokenizers: dict[str, MTScaffoldTokenizer], texts: list[str]
) -> None:
    """Ids, offsets and tokens of texts do not change with one more token, which strips the spaces next to it."""
    for name in ("gpt2-scaffold", "o200k-bpe"):
        core, pattern = deepcopy(tokenizers[name]), deepcopy(tokenizers[name])
        core.add_tokens([AddedToken(each) for each in ("<a>", "<<", "<a", "🙂>", "|>", "é<", "b>")])
        pattern.add_tokens([AddedToken(each) for each in ("<a>", "<<", "<a", "🙂>", "|>", "é<", "b>")])
        pattern.add_tokens([AddedToken("never", rstrip=True)])
        assert core._search.in_core and not pattern._search.in_core
        options: dict[str, Any] = {"return_offsets_mapping": True, "add_special_tokens": False}
        for split in (False, True):
            assert core(texts, split_special_tokens=split, **options) == pattern(
                texts, split_special_tokens=split, **options
            )
            for text in texts:
                tokens = core.tokenize(text, split_special_tokens=split)
                assert tokens == pattern.tokenize(text, split_special_tokens=split)
                assert (
                    core.convert_tokens_to_ids(tokens)
                    == core(text, split_special_tokens=split, add_special_tokens=False).input_ids
                )


@pytest.mark.parametrize("name", ["gpt2-bpe", "points-bpe"])
def test_a_single_word_is_not_found_within_another(tokenizers: dict[str, MTScaffoldTokenizer], name: str) -> None:
    """``single_word=True`` means the same as in tokenizers; it had no effect."""
    tokenizer = deepcopy(tokenizers[name])
    other: Any = to_tokenizers(_codes(tokenizer))
    word = AddedToken("xq", single_word=True)
    tokenizer.add_tokens([word])
    other.add_tokens([word])
    marks = [
        f"xq{mark} {mark}xq" for mark in ("\u0301", "\u05b0", "\u064e", "\u200d", "\u200c", "\u203f", "½", "²", "Ⅷ")
    ]
    words = [("xq", 1), ("xq cxq xqc xq", 2), ("(xq)_xq éxq xq-", 2), ("東xq", 0)]
    for text, count in (*words, *((text, 0 if text[2] not in "½²" else 2) for text in marks)):
        for tokens in (tokenizer.tokenize(text), other.encode(text, add_special_tokens=False).tokens):
            assert tokens.count("xq") == count
        assert tokenizer(text).input_ids.count(tokenizer.convert_tokens_to_ids("xq")) == count


def test_added_tokens_are_found_however_they_were_added(
    tokenizers: dict[str, MTScaffoldTokenizer], tmp_path: Path
) -> None:
    """By a setter, in a shallow copy, on the target side, after saving: the core searched for others, or none."""
    tokenizer = deepcopy(tokenizers["gpt2-bpe"])
    number = len(tokenizer)
    tokenizer.added_tokens_decoder = {**tokenizer.added_tokens_decoder, number: AddedToken("<y>")}
    assert tokenizer("a<y>", add_special_tokens=False).input_ids[-1] == number
    shallow = copy.copy(tokenizer)
    shallow.add_tokens([AddedToken("<z>", lstrip=True)])
    for each in (tokenizer, shallow):
        assert each("a<y>  <z>", add_special_tokens=False).input_ids[-2:] == [number, number + 1]
        assert each.tokenize("a<y>")[-1] == "<y>"
    path = tmp_path / "codes"
    path.write_bytes(_codes(tokenizer).text)
    both = MTScaffoldTokenizer(path, target_codes_file=path, eos_token="</s>", pad_token="<pad>")
    both.save_pretrained(tmp_path / "saved")
    for each in (both, MTScaffoldTokenizer.from_pretrained(tmp_path / "saved")):
        found = each("a</s>", text_target="b</s>", return_offsets_mapping=True)
        assert found.input_ids[-1] == found.labels[-1] == each.eos_token_id


def test_an_added_token_that_the_codes_have_keeps_its_id(tokenizers: dict[str, MTScaffoldTokenizer]) -> None:
    """From then on it is a separate token, even within words."""
    tokenizer = deepcopy(tokenizers["gpt2-bpe"])
    size, number = len(tokenizer), tokenizer.convert_tokens_to_ids("e")
    tokenizer.add_tokens(["e", "<new>"])
    assert len(tokenizer) == size + 1 and not tokenizer._search.in_core
    ids = tokenizer("the house<new>", add_special_tokens=False).input_ids
    assert ids.count(number) == 2 and ids[-1] == size and tokenizer.decode(ids) == "the house<new>"


def test_a_chat_becomes_the_ids_of_its_template(tokenizers: dict[str, MTScaffoldTokenizer]) -> None:
    """Special tokens of the template are single ids, and the texts between them are segmented."""
    tokenizer = tokenizers["gpt2-scaffold"]
    template = "{% for each in messages %}<|end|>{{ each.role }}: {{ each.content }}\n{% endfor %}"
    chat = [{"role": "user", "content": "a small house"}, {"role": "assistant", "content": "größer"}]
    text = "<|end|>user: a small house\n<|end|>assistant: größer\n"
    assert tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False) == text
    ids = tokenizer.apply_chat_template(chat, chat_template=template, return_dict=False)
    assert ids.count(tokenizer.eos_token_id) == 2 and tokenizer.decode(ids) == text
    assert ids == tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", ["gpt2-scaffold", "o200k-bpe", "points-scaffold"])
def test_transformers_streams_the_text_of_ids(tokenizers: dict[str, MTScaffoldTokenizer], name: str) -> None:
    """generate(streamer=TextIteratorStreamer(tokenizer)) gives what decode returns, no half of a character or word."""
    tokenizer = tokenizers[name]
    for text in texts_of(name):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        shown = TextIteratorStreamer(tokenizer, clean_up_tokenization_spaces=False)
        for number in ids:
            shown.put(torch.tensor([number]))
        shown.end()
        assert "".join(shown) == tokenizer.decode(ids)


def test_tokens_are_the_same_however_a_text_is_passed(tokenizers: dict[str, MTScaffoldTokenizer]) -> None:
    """The search of transformers misses an added token that begins inside an incomplete other one."""
    for name in ("gpt2-scaffold", "points-scaffold"):
        tokenizer = copy.deepcopy(tokenizers[name])
        tokenizer.add_tokens(["céé", "é", AddedToken("<s|>", lstrip=True, rstrip=True)])
        for text in ("cébé", "a <s|> é", "é", ""):
            tokens = tokenizer.tokenize(text)
            ids = tokenizer(text, add_special_tokens=False).input_ids
            assert tokenizer.convert_tokens_to_ids(tokens) == ids
            assert tokenizer(text, "a", add_special_tokens=False).input_ids[: len(ids)] == ids
            assert tokens.count("é") == text.count("é")
