"""The tokenizer for Hugging Face's transformers: ids, decoding, files, dropout, and a MarianMT that learns with it."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from mt_scaffold import BPE, MTScaffoldError, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.experiment.binarise.dictionary import NO_RESAMPLING, make_dictionaries, read_ids
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.data import Limits

tokenizers: Any = pytest.importorskip("tokenizers", reason="comes with the extra 'transformers'")
pytest.importorskip("transformers", reason="comes with the extra 'transformers'")

from mt_scaffold.integrations.sides import byte_tokens  # noqa: E402
from mt_scaffold.integrations.tokenizers import to_tokenizers  # noqa: E402
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer  # noqa: E402

DOCS = ROOT / "docs"
# Codes of bytes must reproduce margins, runs of spaces, line ends, other scripts, joined emoji and </w>.
TEXTS = [
    "",
    " ",
    "a small house",
    "  two  spaces \n and\r\n lines\t\n",
    "Größe 12345 — 東京 🙂👩‍👩‍👧 e\u0301",
    "it's </w> a</w>b @@ x@@ y",
    "\u2028 \x85\xa0\u3000end",
]
ODD = [" a  small house \r\n", "ЖЖ low", "low\tlower <unk", "东京 it's 12345  \n\n x"]


@pytest.fixture(scope="module")
def files(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Codes of every kind learned from a tiny parallel text, and fairseq's dictionaries, joint and of each side."""
    folder = tmp_path_factory.mktemp("codes")
    train = [tiny_words / "train.en", tiny_words / "train.de"]
    o200k = {"pretokenise": "o200k", "split_digits": True}
    kinds: Any = {"codes": {}, "gpt2": {"pretokenise": "gpt2"}, "o200k": o200k}
    for algorithm in ("scaffold", "bpe", "picky"):
        for kind, options in kinds.items():
            learn_bpe(
                paths=train, outfile=folder / f"{kind}.{algorithm}", num_symbols=150, algorithm=algorithm, **options
            )
    for language in ("en", "de"):
        learn_bpe(tiny_words / f"train.{language}", folder / f"codes.{language}", num_symbols=100)
    joint = Segmentation((str(folder / "codes.scaffold"),) * 2)
    make_dictionaries(tiny_words / "train", folder / "joint", "en", "de", joint)
    apart = Segmentation((str(folder / "codes.en"), str(folder / "codes.de")))
    make_dictionaries(tiny_words / "train", folder / "apart", "en", "de", apart, Limits(joined_dictionary=False))
    return folder


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def joint(files: Path) -> MTScaffoldTokenizer:
    """Scaffold codes and a joint dictionary of fairseq."""
    return MTScaffoldTokenizer(files / "codes.scaffold", files / "joint" / "dict.en.txt")


@pytest.fixture
def apart(files: Path) -> MTScaffoldTokenizer:
    """Separate codes and dictionaries for source and target."""
    return MTScaffoldTokenizer(
        files / "codes.en",
        files / "apart" / "dict.en.txt",
        target_codes_file=files / "codes.de",
        target_vocab_file=files / "apart" / "dict.de.txt",
        src_lang="en",
        tgt_lang="de",
    )


def expected(codes: Path, dictionary: Path, line: str) -> list[int]:
    """Return fairseq's ids of a line, from the subwords of apply-bpe."""
    ids = read_ids(dictionary)
    return [*(ids.get(subword, 3) for subword in BPE(codes).segment(line).split()), 2]


def test_ids_are_those_of_fairseq(files: Path, tiny_words: Path, joint: MTScaffoldTokenizer) -> None:
    """A model that fairseq trained, or its data, can be used with the tokenizer: every subword has fairseq's id."""
    assert [joint.convert_tokens_to_ids(t) for t in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]
    lines = [*lines_of(tiny_words / "valid.en"), *lines_of(tiny_words / "valid.de"), "ЖЖ unknown"]
    for line in lines:
        ids = joint(line).input_ids
        assert ids == expected(files / "codes.scaffold", files / "joint" / "dict.en.txt", line)
        assert "ЖЖ" in line or joint.decode(ids, skip_special_tokens=True) == line
    assert joint("ЖЖ").input_ids == [3, 3, 2]
    assert joint.decode(joint(lines[0]).input_ids) == f"{lines[0]} </s>"
    assert len(joint) == joint.vocab_size == len(read_ids(files / "joint" / "dict.en.txt")) + 4


def test_codes_alone_make_a_vocabulary(files: Path, tiny_words: Path) -> None:
    """Without a dictionary, no subword that the codes can make is unknown, even with dropout."""
    tokenizer = MTScaffoldTokenizer(files / "codes.bpe")
    given = set(BPE(files / "codes.bpe").surface_forms())
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3]) == ["<s>", "<pad>", "</s>", "<unk>"]
    for dropout in (0, 0.3, 1):
        tokenizer.set_dropout(dropout, seed=1)
        for line in lines_of(tiny_words / "valid.en"):
            tokens, ids = tokenizer.tokenize(line), tokenizer(line).input_ids
            assert [number == 3 for number in ids[:-1]] == [token not in given for token in tokens]
            assert tokenizer.convert_tokens_to_string(tokens) == line
            assert 3 in ids or tokenizer.decode(ids, skip_special_tokens=True) == line


def test_each_side_has_its_own_codes_and_ids(files: Path, tiny_words: Path, apart: MTScaffoldTokenizer) -> None:
    """``text_target`` is segmented with the target's codes, and decoded with its dictionary."""
    source, target = lines_of(tiny_words / "valid.en")[0], lines_of(tiny_words / "valid.de")[0]
    encoded = apart(source, text_target=target)
    assert encoded["input_ids"] == expected(files / "codes.en", files / "apart" / "dict.en.txt", source)
    assert encoded["labels"] == expected(files / "codes.de", files / "apart" / "dict.de.txt", target)
    assert apart.decode(encoded["labels"], skip_special_tokens=True) == target
    assert apart.decode(encoded["input_ids"], skip_special_tokens=True, use_source_tokenizer=True) == source
    assert apart(source).input_ids == encoded["input_ids"]
    assert (apart.vocab_size, apart.target_vocab_size) == tuple(
        len(read_ids(files / "apart" / f"dict.{language}.txt")) + 4 for language in ("en", "de")
    )
    with pytest.raises(UsageError, match="'<new>' needs one id in both vocabularies"):
        apart.add_tokens(["<new>"])


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
@pytest.mark.parametrize("kind", ["gpt2", "o200k"])
def test_codes_of_bytes_give_their_ids_and_the_text_back(files: Path, kind: str, algorithm: str) -> None:
    """The ids are those of BPE.encode, special tokens come after them, and every text comes back exactly."""
    codes = files / f"{kind}.{algorithm}"
    tokenizer = MTScaffoldTokenizer(codes, eos_token="<|end|>", pad_token="<|pad|>")
    bpe = BPE(codes)
    for text in TEXTS:
        ids = tokenizer(text).input_ids
        assert ids == bpe.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) == ids
    assert tokenizer.eos_token_id == bpe.n_vocab
    assert tokenizer(TEXTS[2] + "<|end|>").input_ids == [*bpe.encode(TEXTS[2]), bpe.n_vocab]
    assert tokenizer.decode([*bpe.encode("a b"), bpe.n_vocab], skip_special_tokens=True) == "a b"
    assert tokenizer.decode(bpe.encode("do n't , a .")) == "do n't , a ."  # transformers would clean it up
    assert tokenizer.decode(bpe.encode("é")[:1]) == "\ufffd"
    assert [token.encode() for token in byte_tokens(tokenizer._source.codes)[33:127]] == bpe.tokens[33:127]


def test_padding_truncation_and_tensors(joint: MTScaffoldTokenizer, tiny_words: Path) -> None:
    """Batches are treated as by every tokenizer of transformers."""
    pytest.importorskip("torch")
    lines = lines_of(tiny_words / "valid.en")[:5]
    each = [joint(line).input_ids for line in lines]
    batch = joint(lines, padding=True, return_tensors="pt")
    longest = max(map(len, each))
    assert batch.input_ids.tolist() == [ids + [1] * (longest - len(ids)) for ids in each]
    assert batch.attention_mask.sum(dim=1).tolist() == [len(ids) for ids in each]
    cut = joint(lines[0], truncation=True, max_length=3, return_special_tokens_mask=True)
    assert cut.input_ids == [*each[0][:2], 2]
    assert cut.special_tokens_mask == [0, 0, 1]
    assert joint(lines[0], add_special_tokens=False).input_ids == each[0][:-1]
    assert joint("a </s> b").input_ids.count(2) == 2
    assert (
        joint.tokenize("a </s> b", split_special_tokens=True)
        == BPE(joint._source.codes, vocab=None).segment("a </s> b").split()
    )
    assert joint.batch_decode(batch.input_ids, skip_special_tokens=True) == lines


def test_what_surrounds_a_text(files: Path, joint: MTScaffoldTokenizer) -> None:
    """``<s>`` and ``</s>`` as the model needs them, and neither around documents of a language model."""
    both = MTScaffoldTokenizer(files / "codes.scaffold", prepend_bos=True)
    ids = both("low").input_ids
    assert (ids[0], ids[-1]) == (0, 2)
    assert both("low", return_special_tokens_mask=True).special_tokens_mask[0] == 1
    bytes_ = MTScaffoldTokenizer(files / "gpt2.bpe", eos_token="<|end|>", append_eos=True)
    assert bytes_("a").input_ids == [97, bytes_.eos_token_id]
    with pytest.raises(UsageError, match="prepend_bos needs bos_token"):
        MTScaffoldTokenizer(files / "gpt2.bpe", prepend_bos=True)


def test_settings_of_apply_bpe(files: Path, tiny_words: Path) -> None:
    """merges, glossaries and the filter by a vocabulary segment as apply-bpe does with them."""
    codes, dictionary = files / "codes.scaffold", files / "joint" / "dict.en.txt"
    known = set(read_ids(dictionary))
    some = sorted(known)[::2]
    (files / "some.json").write_text(json.dumps(["<s>", "<pad>", "</s>", "<unk>", *some]))
    lines = lines_of(tiny_words / "valid.en")
    for options, bpe in (
        ({"vocab_file": files / "some.json", "split_unknown": True}, BPE(codes, vocab=some)),
        ({"vocab_file": dictionary, "merges": 40}, BPE(codes, merges=40)),
        ({"vocab_file": dictionary, "glossaries": ["[aeiou]"]}, BPE(codes, glossaries=["[aeiou]"])),
        ({"separator": "￭"}, BPE(codes, separator="￭")),
    ):
        tokenizer = MTScaffoldTokenizer(codes, **options)
        segmented = [bpe.segment(line).split() for line in lines]
        assert [tokenizer.tokenize(line) for line in lines] == segmented
        assert segmented != [BPE(codes).segment(line).split() for line in lines]
        assert [tokenizer.convert_tokens_to_string(tokens) for tokens in segmented] == lines
    # The strings that they isolate would have no id.
    with pytest.raises(UsageError, match="do not list what glossaries isolate; pass a vocabulary"):
        MTScaffoldTokenizer(codes, glossaries=["X"])


@pytest.mark.parametrize("header", ["#version: 0.2", "#version: 0.3 bytes gpt2"])
def test_a_saved_setting_that_is_no_longer_known_is_refused(tmp_path: Path, header: str) -> None:
    """Transformers would keep it without a word, and the ids would be others than those of the saved tokenizer."""
    (tmp_path / "codes").write_text(f"{header}\nb c\na b\n")
    tokenizer = MTScaffoldTokenizer(tmp_path / "codes")
    tokenizer.save_pretrained(tmp_path / "saved")
    path = tmp_path / "saved" / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "inference": "merges"}))  # as earlier versions saved it
    loaded = MTScaffoldTokenizer.from_pretrained(tmp_path / "saved")
    assert loaded.tokenize("abcd") == tokenizer.tokenize("abcd") and "inference" not in loaded.init_kwargs
    path.write_text(json.dumps({**config, "inference": "fewest"}))
    for wrong, says in (({"padding_sid": "left"}, "mean padding_side"), ({"prepend_boss": True}, "mean prepend_bos")):
        with pytest.raises(UsageError, match=f"there is no argument {next(iter(wrong))}; did you {says}"):
            MTScaffoldTokenizer(path.parent / "codes.txt", **wrong)
    with pytest.raises(UsageError, match="add_prefix_space: text is encoded as it is"):
        MTScaffoldTokenizer(path.parent / "codes.txt", add_prefix_space=True)
    with pytest.raises(UsageError, match="MTScaffoldTokenizer: inference: removed; codes segment with their merges"):
        MTScaffoldTokenizer.from_pretrained(tmp_path / "saved")


@pytest.mark.parametrize("kind", ["joint", "apart", "gpt2", "o200k", "alone", "glossaries"])
def test_a_saved_folder_loads_as_the_same_tokenizer(
    files: Path, kind: str, tiny_words: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Ids, special and added tokens and settings survive; nothing is left of a tokenizer saved there before."""
    from transformers import AutoTokenizer

    made = {
        "gpt2": lambda: MTScaffoldTokenizer(files / "gpt2.scaffold", eos_token="<|end|>", pad_token="<|pad|>"),
        "o200k": lambda: MTScaffoldTokenizer(files / "o200k.scaffold", eos_token="<|end|>", merges=50),
        "alone": lambda: MTScaffoldTokenizer(files / "codes.bpe", split_unknown=True, prepend_bos=True, merges=100),
        "glossaries": lambda: MTScaffoldTokenizer(
            files / "codes.bpe", files / "joint" / "dict.en.txt", glossaries=["house"]
        ),
    }
    tokenizer = made[kind]() if kind in made else request.getfixturevalue(kind)
    if kind != "apart":
        request.getfixturevalue("apart").save_pretrained(tmp_path)
        tokenizer.add_special_tokens({"additional_special_tokens": ["<2de>"]})
    tokenizer.set_dropout(0.5)
    tokenizer.save_pretrained(tmp_path)
    tokenizer.set_dropout(0)
    texts = [*lines_of(tiny_words / "valid.en")[:5], "housekeeping <2de> low", "x  y"]
    for loaded in (MTScaffoldTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)):
        assert type(loaded) is MTScaffoldTokenizer
        assert len(loaded) == len(tokenizer)
        assert loaded.get_vocab() == tokenizer.get_vocab()
        assert loaded(texts, text_target=texts) == tokenizer(texts, text_target=texts)
        assert (loaded.src_lang, loaded.tgt_lang) == (tokenizer.src_lang, tokenizer.tgt_lang)
        assert loaded.special_tokens_map == tokenizer.special_tokens_map
        again = tmp_path / "again"
        loaded.save_pretrained(again)
        names = sorted(path.name for path in again.iterdir())
        assert names == sorted(path.name for path in tmp_path.iterdir() if path.is_file())
        for name in names:
            if name != "tokenizer_config.json":
                assert (again / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_auto_tokenizer_in_a_program_that_knows_nothing_of_us(
    joint: MTScaffoldTokenizer, tiny_words: Path, tmp_path: Path
) -> None:
    """With ``trust_remote_code``, the folder brings the module that finds the class, even next to a model's config."""
    joint.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "marian"}))
    line = lines_of(tiny_words / "valid.en")[0]
    program = f"""
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("model", trust_remote_code=True)
print(type(tokenizer).__name__, tokenizer({line!r}).input_ids)
tokenizer.save_pretrained("again")
import mt_scaffold.integrations.transformers
print(AutoTokenizer.from_pretrained("again")({line!r}).input_ids)
print(AutoTokenizer.from_pretrained("model")({line!r}).input_ids)
"""
    environment = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin"}
    package = str(DOCS.parent)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    ids = str(joint(line).input_ids)
    assert done.stdout.splitlines() == [f"MTScaffoldTokenizer {ids}", ids, ids]
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == sorted(
        path.name for path in (tmp_path / "model").iterdir() if path.name != "config.json"
    )


def test_dropout_depends_on_seed_epoch_and_text_alone(joint: MTScaffoldTokenizer, tiny_words: Path) -> None:
    """A training can be repeated, whatever its batches; each epoch differs; evaluation never varies."""
    lines = lines_of(tiny_words / "valid.en")
    plain = joint(lines).input_ids
    joint.set_dropout(0.3, seed=1, epoch=1)
    first = joint(lines).input_ids
    assert first != plain
    assert [joint(line).input_ids for line in reversed(lines)] == first[::-1]
    assert all(
        3 in ids or joint.decode(ids, skip_special_tokens=True) == line for ids, line in zip(first, lines, strict=True)
    )
    joint.set_dropout(0.3, seed=1, epoch=2)
    assert joint(lines).input_ids != first
    joint.set_dropout(0.3, seed=2, epoch=1)
    assert joint(lines).input_ids != first
    joint.set_dropout(0.3, 0, seed=1, epoch=1)
    encoded = joint(lines, text_target=lines)
    assert (encoded["input_ids"], encoded["labels"]) == (first, plain)
    joint.set_dropout(0.3)
    assert joint(lines).input_ids != joint(lines).input_ids
    joint.set_dropout(0)
    assert joint(lines).input_ids == plain
    for wrong in ({"dropout": 2}, {"dropout": 0.1, "epoch": 1}, {"dropout": 0.1, "seed": 2**70}):
        with pytest.raises(UsageError):
            joint.set_dropout(**wrong)


def test_dropout_merges_pairs_as_often_as_it_should(tmp_path: Path) -> None:
    """The index by digest keeps the distribution: one merge is left out of a share p of different words."""
    (tmp_path / "codes").write_text("#version: 0.2\na b\n")
    tokenizer = MTScaffoldTokenizer(tmp_path / "codes")
    tokenizer.set_dropout(0.3, seed=5)
    apart = sum("a@@ b@@" in " ".join(tokenizer.tokenize(f"ab{number}")) for number in range(4000))
    assert abs(apart / 4000 - 0.3) < 4 * (0.3 * 0.7 / 4000) ** 0.5


def test_it_can_be_pickled_copied_and_forked(apart: MTScaffoldTokenizer, tiny_words: Path) -> None:
    """Copies and the forked workers of a DataLoader segment as this process does, even with dropout."""
    torch = pytest.importorskip("torch")
    lines = lines_of(tiny_words / "valid.en")
    apart.set_dropout(0.3, seed=1)
    ids = apart(lines, text_target=lines)
    for other in (pickle.loads(pickle.dumps(apart)), copy.deepcopy(apart)):
        assert other(lines, text_target=lines) == ids
        assert other.decode(ids["labels"][0], skip_special_tokens=True)
    loader = torch.utils.data.DataLoader(
        lines, 4, num_workers=2, multiprocessing_context="fork", collate_fn=lambda batch: apart(batch).input_ids
    )
    assert [each for batch in loader for each in batch] == ids["input_ids"]


def test_errors_say_what_to_do(files: Path, joint: MTScaffoldTokenizer, tmp_path: Path) -> None:
    """Invalid input gives one line with the file and the remedy."""
    codes, dictionary = files / "codes.scaffold", files / "joint" / "dict.en.txt"
    with pytest.raises(UsageError, match="codes of bytes define their own ids; omit the vocabulary"):
        MTScaffoldTokenizer(files / "gpt2.bpe", dictionary)
    with pytest.raises(UsageError, match="the symbols of only one are bytes"):
        MTScaffoldTokenizer(codes, target_codes_file=files / "gpt2.bpe")
    with pytest.raises(UsageError, match="must be the same on both sides"):
        MTScaffoldTokenizer(files / "gpt2.bpe", target_codes_file=files / "gpt2.scaffold")
    (tmp_path / "byte.codes").write_bytes(b"#version: 0.2 byte\na b\n")
    with pytest.raises(UsageError, match="codes of bytes with </w> have no ids; learn codes with --pretokenise"):
        MTScaffoldTokenizer(tmp_path / "byte.codes")
    (tmp_path / "dict.txt").write_text("a 1\nb\n")
    with pytest.raises(MTScaffoldError, match=r"dict\.txt: line 2: expected a subword"):
        MTScaffoldTokenizer(codes, tmp_path / "dict.txt")
    for content, message in (
        ("{}", "expected a list of tokens"),
        ("[1]", "expected a list"),
        ("[\n?", "line 2: not JSON"),
    ):
        (tmp_path / "vocabulary.json").write_text(content)
        with pytest.raises(MTScaffoldError, match=rf"vocabulary\.json: {message}"):
            MTScaffoldTokenizer(codes, tmp_path / "vocabulary.json")
    (tmp_path / "dict.txt").write_text("a 1\nb 1\na 1\n")
    with pytest.raises(MTScaffoldError, match="has 'a' twice"):
        MTScaffoldTokenizer(codes, tmp_path / "dict.txt")
    with pytest.raises(UsageError, match=f"id {len(joint)} is out of range"):
        joint.decode([len(joint)])
    with pytest.raises(MTScaffoldError, match="lone surrogate"):
        joint("\udc80")


def test_a_subword_spelled_like_a_special_token_keeps_its_id(tmp_path: Path) -> None:
    """fairseq marks such an entry: the ids after it must not move, nor the special token's own."""
    (tmp_path / "codes").write_text("#version: 0.2\na b\n")
    (tmp_path / "dict.txt").write_text("<unk> 5 #fairseq:overwrite\nab@@ 2\nab 1\n")
    tokenizer = MTScaffoldTokenizer(tmp_path / "codes", tmp_path / "dict.txt")
    assert tokenizer("abab").input_ids[-1:] == [2]
    assert tokenizer.convert_tokens_to_ids(["<unk>", "ab@@", "ab"]) == [3, 5, 6]
    assert tokenizer.decode([4, 6]) == "<unk> ab"
    assert (len(tokenizer), len(tokenizer.get_vocab())) == (7, 7)


@pytest.fixture
def marian(models_of_transformers: Any) -> Any:
    """MarianMTModel."""
    return models_of_transformers.MarianMTModel


def test_the_documented_example_trains_a_marian(
    tiny_words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marian: Any
) -> None:
    """docs/transformers.md runs unchanged: a MarianMT learns, generates and is decoded; the folder loads again."""
    from transformers import AutoTokenizer

    monkeypatch.chdir(tmp_path)
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_bytes((tiny_words / f"train.{language}").read_bytes())
    text = (DOCS / "transformers.md").read_text(encoding="utf-8")
    example, of_language_model = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/transformers.md", "exec"), names)
    losses = names["losses"]
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4])
    assert len(names["translation"]) == 1
    assert "@@" not in names["translation"][0]
    assert "</s>" not in names["translation"][0]
    tokenizer, model = AutoTokenizer.from_pretrained("model"), marian.from_pretrained("model").eval()
    batch = tokenizer([names["pairs"][0][0]], return_tensors="pt")
    again = tokenizer.batch_decode(model.generate(**batch, max_new_tokens=20), skip_special_tokens=True)
    assert again == names["translation"]
    (tmp_path / "train.txt").write_bytes((tiny_words / "train.en").read_bytes())
    exec(compile(of_language_model, "docs/transformers.md", "exec"), names)
    assert names["model"].lm_head.weight.grad is not None and (names["batch"]["labels"] == -100).any()


def test_codes_of_code_points_have_the_ids_of_the_other_tokenizer(
    files: Path, tiny_words: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The fast and the slow tokenizer can replace each other: ids, </s>, unknown characters, margins, decoding."""
    from transformers import PreTrainedTokenizerFast

    text = tiny_words / "valid.en"
    output = tmp_path / "tokenizer.json"
    assert main(f"export-tokenizers --codes {files}/codes.bpe --output {output} --check {text}".split()) == 0
    assert f"the same as the codes on all 20 lines of {text}" in capfd.readouterr().err
    fast, slow = tokenizers.Tokenizer.from_file(str(output)), MTScaffoldTokenizer(files / "codes.bpe")
    wrapped = PreTrainedTokenizerFast(
        tokenizer_file=str(output), pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    for line in [*TEXTS, *ODD, *text.read_text(encoding="utf-8").splitlines(), "a </s> low"]:
        assert fast.encode(line).ids == wrapped(line).input_ids == slow(line).input_ids, line
    known = [line for line in text.read_text(encoding="utf-8").splitlines() if 3 not in slow(line).input_ids]
    assert len(known) > 5
    assert [fast.decode(fast.encode(line).ids) for line in known] == known
    assert wrapped.batch_decode(wrapped(known).input_ids, skip_special_tokens=True) == known
    assert fast.get_vocab_size() == len(slow)


def test_a_dictionary_must_have_every_token(files: Path, tiny_words: Path, tmp_path: Path) -> None:
    """fairseq's dictionary lists the subwords of segmented text; tokenizers also needs the tokens they are made of."""
    codes = str(files / "codes.bpe")
    for dropout in (False, True):
        segmentation = Segmentation((codes, codes))
        sides = segmentation.resamplings if dropout else NO_RESAMPLING
        make_dictionaries(tiny_words / "train", tmp_path / str(dropout), "en", "de", segmentation, resamplings=sides)
    with pytest.raises(MTScaffoldError, match=r"dict\.en\.txt: no id for '.*', which tokenizers needs to make"):
        to_tokenizers(codes, vocabulary=tmp_path / "False" / "dict.en.txt")
    complete = tmp_path / "True" / "dict.en.txt"
    fast, slow = to_tokenizers(codes, vocabulary=complete), MTScaffoldTokenizer(codes, complete)
    for line in (tiny_words / "valid.de").read_text(encoding="utf-8").splitlines():
        assert fast.encode(line).ids == slow(line).input_ids


def test_importing_the_package_does_not_import_transformers() -> None:
    """It is an extra, and takes seconds to import."""
    program = "import sys, mt_scaffold.cli, mt_scaffold.integrations; assert 'transformers' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_folder_without_codes_says_what_to_give(tmp_path: Path) -> None:
    """For such a folder, transformers calls the class without files."""
    with pytest.raises(UsageError, match="pass codes_file, or load a folder that save_pretrained wrote"):
        MTScaffoldTokenizer.from_pretrained(tmp_path)


def test_a_saved_folder_that_lacks_a_file_is_refused(files: Path, apart: MTScaffoldTokenizer, tmp_path: Path) -> None:
    """Without a vocabulary or the target's codes, the others would give other ids."""
    from transformers import AutoTokenizer

    apart.save_pretrained(tmp_path / "whole")
    for name in ("vocabulary.json", "target_codes.txt", "target_vocabulary.json"):
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        (tmp_path / name / name).unlink()
        with pytest.raises(UsageError, match=f"{re.escape(name)} is missing, but was saved with it"):
            AutoTokenizer.from_pretrained(tmp_path / name, trust_remote_code=True)
    made = MTScaffoldTokenizer(files / "gpt2.scaffold", eos_token="<e>")
    made.save_pretrained(tmp_path / "whole")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "whole", trust_remote_code=True)
    assert loaded("a house").input_ids == made("a house").input_ids


def test_decoding_in_one_thread_leaves_the_side_of_others(
    apart: MTScaffoldTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server decodes with the target's codes while another request is encoded with the source's."""
    text, source, target = "the house", apart("the house").input_ids, apart(text_target="das haus").input_ids
    assert source != apart(text_target=text).input_ids
    seen = []
    join = apart.convert_tokens_to_string

    def slow(tokens: list[str]) -> str:
        with ThreadPoolExecutor() as pool:
            seen.append(pool.submit(lambda: apart(text).input_ids).result())
        return join(tokens)

    expected = apart.decode(target)
    monkeypatch.setattr(apart, "convert_tokens_to_string", slow)
    assert apart.decode(target) == expected and seen and all(ids == source for ids in seen)
    assert apart(text).input_ids == source
