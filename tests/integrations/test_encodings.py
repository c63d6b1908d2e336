"""The word and the characters of each token, in batches, pairs and windows: the same as in the fast class."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import UsageError, learn_bpe

pytest.importorskip("transformers", reason="comes with the extra 'transformers'")

from transformers import AddedToken, PreTrainedTokenizerFast

from mt_scaffold.integrations.tokenizers import to_tokenizers
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer

PIECES = [*"x1é东🙂\n ", "the", "house", "  ", "@@", "low", "<l>", "<r>", "<w>", "  <l>", "<e>"]
ADDED = [AddedToken("<l>", lstrip=True), AddedToken("<r>", rstrip=True), AddedToken("<w>", single_word=True)]


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("codes")
    text = ["the small house is in the low land", "das kleine haus ist klein 123"] * 20
    for algorithm in ("bpe", "scaffold"):
        learn_bpe(lines=text, outfile=folder / f"points.{algorithm}", num_symbols=30, algorithm=algorithm)
        options: dict[str, Any] = {"num_symbols": 30, "algorithm": algorithm, "pretokenise": "gpt2"}
        learn_bpe(lines=text, outfile=folder / f"gpt2.{algorithm}", **options)
    return folder


def special(kind: str) -> dict[str, Any]:
    if kind == "gpt2":
        return {"eos_token": "<e>", "pad_token": "<e>"}
    return {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def asked(generator: random.Random, with_words: bool) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a random call."""

    def text() -> str:
        return "".join(generator.choices(PIECES, k=generator.randint(1, 9)))

    def sequence() -> Any:
        return (text().split() or ["a"]) if words else text()

    pair, batch, words = (generator.random() < chance for chance in (0.5, 0.5, 0.5 * with_words))
    texts = [[sequence() for _ in range(3)] if batch else sequence() for _ in range(1 + pair)]
    options: dict[str, Any] = {"is_split_into_words": words, "add_special_tokens": generator.random() < 0.7}
    options |= {f"return_{name}": True for name in ("offsets_mapping", "token_type_ids", "special_tokens_mask")}
    if generator.random() < 0.5:
        options["truncation"] = generator.choice(["only_first", "only_second"] if pair else ["only_first"])
        options |= {"max_length": generator.randint(4, 12), "padding": generator.choice([False, True, "max_length"])}
        if generator.random() < 0.5:
            options |= {"return_overflowing_tokens": True, "stride": generator.randint(0, 2)}
    options["padding_side"] = generator.choice(["left", "right"])
    return texts, options


@pytest.mark.parametrize("kind", ["points", "gpt2"])
def test_everything_is_as_in_the_fast_class(codes: Path, kind: str) -> None:
    """Words, characters, types and windows; added tokens that strip spaces, batches, pairs, words, both sides."""
    named: dict[str, Any] = {"special_tokens": ["<e>"]} if kind == "gpt2" else {}
    fast = PreTrainedTokenizerFast(tokenizer_object=to_tokenizers(codes / f"{kind}.bpe", **named), **special(kind))
    ours = MTScaffoldTokenizer(codes / f"{kind}.bpe", **special(kind))
    for each in (fast, ours):
        each.add_tokens(
            [
                AddedToken(str(t), lstrip=t.lstrip, rstrip=t.rstrip, single_word=t.single_word, normalized=False)
                for t in ADDED
            ]
        )
    generator, compared = random.Random(1), 0
    for _ in range(200):
        texts, options = asked(generator, kind == "points")  # the fast class drops the spaces of bytes
        fast.truncation_side = ours.truncation_side = generator.choice(["left", "right"])
        try:
            expected = fast(*texts, **options)
        except BaseException:  # it panics if max_length leaves nothing
            continue
        found = ours(*texts, **options)
        compared += 1
        assert dict(found) == dict(expected), (texts, options)
        for number, encoding in enumerate(expected.encodings):
            assert found.word_ids(number) == expected.word_ids(number)
            assert found.sequence_ids(number) == expected.sequence_ids(number)
            mine = pickle.loads(pickle.dumps(found)).encodings[number]
            for sequence in range(len(texts)):
                for place in range(12):
                    assert mine.char_to_token(place, sequence) == encoding.char_to_token(place, sequence)
                    assert mine.char_to_word(place, sequence) == encoding.char_to_word(place, sequence)
                    assert mine.word_to_tokens(place, sequence) == encoding.word_to_tokens(place, sequence)
                    assert mine.word_to_chars(place, sequence) == encoding.word_to_chars(place, sequence)
            for token in range(len(encoding.ids)):
                assert mine.token_to_chars(token) == encoding.token_to_chars(token)
                assert mine.token_to_word(token) == encoding.token_to_word(token)
    assert compared > 100


def test_an_empty_list_of_words_is_one_empty_text(codes: Path) -> None:
    """As in the fast class; it ended in an IndexError."""
    fast = PreTrainedTokenizerFast(tokenizer_object=to_tokenizers(codes / "points.bpe"), **special("points"))
    for kind in ("points", "gpt2"):
        ours = MTScaffoldTokenizer(codes / f"{kind}.bpe", **special(kind))
        found = ours([], is_split_into_words=True, return_offsets_mapping=True)
        assert dict(found) == dict(ours("", return_offsets_mapping=True))
        if kind == "points":
            assert found["input_ids"] == fast([], is_split_into_words=True)["input_ids"]


def test_words_spelt_like_the_separator(tmp_path: Path) -> None:
    """They stay words, with their characters, and decode to themselves."""
    (tmp_path / "codes").write_text("#version: 0.2\n@ @</w>\n")
    (tmp_path / "vocab").write_text("@@ 3\na 2\nb 2\n")
    tokenizer = MTScaffoldTokenizer(tmp_path / "codes", vocab_file=tmp_path / "vocab")
    for text in ("a @@ b", "@@ @@ a", "@@ @@"):
        found = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
        assert [text[begin:end] for begin, end in found["offset_mapping"]] == text.split()
        assert tokenizer.decode(found["input_ids"]) == text


def test_a_dictionary_keeps_words_that_end_in_the_separator_apart(tmp_path: Path) -> None:
    """In a dictionary, ``foo@@</w>`` is the word ``foo@@``, and ``foo@@`` the beginning of another."""
    (tmp_path / "codes").write_text("#version: 0.2\nf o\nfo o\n@ @</w>\nfoo @@</w>\n")
    (tmp_path / "vocab").write_text("foo@@ 3\nfoo@@</w> 2\nb 2\n")
    tokenizer = MTScaffoldTokenizer(tmp_path / "codes", vocab_file=tmp_path / "vocab")
    ids = tokenizer("foo@@ foob", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["foo@@</w>", "foo@@", "b"]
    assert tokenizer.decode(ids) == "foo@@ foob"


def test_max_length_is_the_width_without_truncation(codes: Path) -> None:
    """Longer texts stay longer and lengthen no others; the rows are then not a matrix."""
    tokenizer = MTScaffoldTokenizer(codes / "points.scaffold")
    found = tokenizer(["the low house in the small land", "a"], padding="max_length", max_length=4)
    assert len(found["input_ids"][0]) > 4 and len(found["input_ids"][1]) == 4
    with pytest.raises(ValueError, match="Unable to create tensor"):
        tokenizer(["the low house in the small land", "a"], padding="max_length", max_length=4, return_tensors="pt")


def test_the_fingerprint_is_the_same_in_every_process(codes: Path) -> None:
    """So that ``datasets.map`` finds cached results: before and after calls, and with any hash seed."""
    pytest.importorskip("datasets")
    program = f"""
from datasets.fingerprint import Hasher
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer
tokenizer = MTScaffoldTokenizer({str(codes / "gpt2.scaffold")!r}, eos_token="<e>", pad_token="<p>")
tokenizer.add_tokens([f"<{{number}}>" for number in range(9)])
found = [Hasher.hash(tokenizer)]; tokenizer("the house <e>"); found.append(Hasher.hash(tokenizer))
"""
    here: dict[str, Any] = {}
    exec(program, here)
    elsewhere = subprocess.run(
        [sys.executable, "-c", f"{program}print(*found)"],
        env={"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len({*here["found"], *elsewhere.stdout.split()}) == 1


_WORDS: dict[str, Any] = {"is_split_into_words": True}


@pytest.mark.parametrize("kind", ["points", "gpt2"])
def test_token_classification_and_question_answering(codes: Path, kind: str, models_of_transformers: Any) -> None:
    """With scaffold tokens: labels of words reach a model through the collator, and answers are found in windows."""
    torch = pytest.importorskip("torch")
    models = models_of_transformers
    tokenizer = MTScaffoldTokenizer(codes / f"{kind}.scaffold", **special(kind))
    config = models.BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    sentences = [["the", "small", "house"], ["das", "haus"]]
    found = tokenizer(sentences, is_split_into_words=True)
    features = []
    for number, words in enumerate(sentences):
        # Encoded as the text that they make, even if some have a space, and also by transformers' own code.
        ids, located = (
            tokenizer(" ".join(words))["input_ids"],
            tokenizer(words, return_offsets_mapping=True, **_WORDS),
        )
        spaced = [words[0], *(f" {word}" for word in words[1:])]
        own = tokenizer(words, return_overflowing_tokens=True, truncation=True, max_length=99, **_WORDS)
        assert found["input_ids"][number] == ids == tokenizer(spaced, **_WORDS)["input_ids"] == own["input_ids"]
        parts = zip(located.word_ids(), located["offset_mapping"], strict=True)
        assert "".join(words[word][begin:end] for word, (begin, end) in parts if word is not None) == "".join(words)
        assert [word for word in dict.fromkeys(found.word_ids(number)) if word is not None] == list(range(len(words)))
        labels = [-100 if word is None else word % 2 for word in found.word_ids(number)]
        features.append({"input_ids": found["input_ids"][number], "labels": labels})
    batch = models.DataCollatorForTokenClassification(tokenizer)(features)
    assert torch.isfinite(models.BertForTokenClassification(config)(**batch).loss)

    context, answer = "the small house is in the low land", "low land"
    found = tokenizer(
        "in the land",
        context,
        truncation="only_second",
        max_length=16,
        stride=2,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
        return_token_type_ids=True,
    )
    begin = context.index(answer)
    for number in range(len(found["input_ids"])):
        first, last = (found.char_to_token(number, at, 1) for at in (begin, begin + len(answer) - 1))
        if first is not None and last is not None:
            break
    spans = found["offset_mapping"][number]
    assert context[spans[first][0] : spans[last][1]].strip() == answer
    inputs = {name: torch.tensor(found[name]) for name in ("input_ids", "attention_mask", "token_type_ids")}
    places = torch.full((len(found["input_ids"]),), first), torch.full((len(found["input_ids"]),), last)
    model = models.BertForQuestionAnswering(config)
    assert torch.isfinite(model(**inputs, start_positions=places[0], end_positions=places[1]).loss)
    with pytest.raises(UsageError, match="give one that leaves more than the stride"):
        tokenizer(
            "the",
            context,
            truncation="only_second",
            max_length=6,
            stride=5,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
