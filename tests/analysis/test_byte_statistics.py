"""stats, compare-vocab and explain with codes of bytes: figures checked on the segmented text."""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from segmenting import hard_text

from mt_scaffold import BPE, UsageError, learn_bpe
from mt_scaffold.analysis.compare_vocab import compare_sizes, compare_vocab, format_sizes
from mt_scaffold.analysis.explain import Explainer, explain
from mt_scaffold.analysis.stats import stats
from mt_scaffold.cli import main
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.text import bytes_to_notation

BYTES = {bytes_to_notation(bytes([byte])) for byte in range(256)}
ARIZONA = ["The Arizona desert is in Arizona; arizona zona 2023 12.", "Wörter über Größe, zona zona"]
ZONA = b"#version: 0.3 bytes gpt2\nz o scaffold\nzo n\nzon a scaffold\nr i\nri zona\n\xc4\xa0 zona\n"


def hard_bytes(seed: int, lines: int) -> bytes:
    """Return text with runs of spaces, spelt-out markers, parts of characters and bytes that are not UTF-8."""
    generator = random.Random(seed)
    found = hard_text(seed, lines).encode().split(b"\n")
    for number in generator.sample(range(len(found)), len(found) // 10):
        found[number] += b" " * generator.randrange(4) + bytes(generator.choices(range(256), k=9)).replace(b"\n", b"")
    return b"\n".join(found) + b"\n"


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
@pytest.mark.parametrize("options", [{"pretokenise": "gpt2", "split_digits": True}, {"pretokenise": r"\w+| +"}])
def test_figures_with_a_pretokeniser(options: dict[str, object], algorithm: str, tmp_path: Path) -> None:
    """They are those of the segmented documents: all bytes count except the LFs between them, and V has all 256."""
    if options["pretokenise"] != "gpt2":
        pytest.importorskip("regex", reason="a pattern needs the package regex")
    text = hard_bytes(5, 800)
    path = tmp_path / "text"
    path.write_bytes(text)
    codes = Codes(learn_bpe(path, num_symbols=150, algorithm=algorithm, **options).text)  # type: ignore[arg-type]
    (row,) = stats([codes], path, num_workers=2)

    documents = text.removesuffix(b"\n").split(b"\n")
    bpe = BPE(codes)
    segmented = Counter(token for document in documents for token in bpe.segment(document).decode().split())
    scaffold = {merge.token for merge in codes.merges if not merge.normal}
    vocabulary = BYTES | {merge.token for merge in codes.merges} - scaffold
    assert set(segmented) <= vocabulary
    assert (row.tokens, row.types) == (segmented.total(), len(segmented))
    assert (row.bytes, row.lines) == (len(text) - len(documents), sum(map(bool, documents)))
    assert row.bytes_per_token == row.bytes / row.tokens
    assert (row.vocabulary_size, row.scaffold_tokens) == (len(vocabulary), len(scaffold))
    shares = [count / segmented.total() for count in segmented.values()]
    bits = -math.fsum(share * math.log2(share) for share in shares)
    assert row.entropy_bits == pytest.approx(bits, rel=1e-12)
    assert row.redundancy == pytest.approx(1 - bits / math.log2(len(vocabulary)), rel=1e-12)
    renyi = math.log2(math.fsum(share**2.5 for share in shares)) / -1.5 / math.log2(len(shares))
    assert row.renyi_efficiency[2.5] == pytest.approx(renyi, rel=1e-12)
    assert row.frequency_at_rank[1] == max(segmented.values())


def test_figures_of_bytes_with_spaces(tmp_path: Path) -> None:
    """subword-nmt's --byte: words between spaces, one space counted between two, separate symbols for final bytes."""
    path = tmp_path / "text"
    path.write_bytes(hard_bytes(6, 800))
    codes = learn_bpe(path, num_symbols=150, byte_level=True).text
    (row,) = stats([codes], path)
    # A separator that is not in the text distinguishes tokens inside a word from word-final ones.
    assert b"\x01\x02" not in path.read_bytes()
    bpe = BPE(codes, separator="\x01\x02")
    words = [[word for word in line.strip(b"\r ").split(b" ") if word] for line in path.read_bytes().split(b"\n")]
    segmented = Counter(token for line in words if line for token in bpe.segment(b" ".join(line)).split(b" "))
    assert (row.words, row.lines) == (sum(map(len, words)), sum(map(bool, words)))
    assert row.bytes == sum(len(b" ".join(line)) for line in words)
    # A word can spell </w>, so that two of these are one token.
    assert row.tokens == segmented.total()
    assert row.types <= len(segmented) <= row.types + 2
    assert row.vocabulary_size == len(row_vocabulary(codes, segmented))


def row_vocabulary(codes: bytes, segmented: Counter[bytes]) -> set[str]:
    """Return V: the normal tokens, and the bytes in merges or in the text, inside words and at their ends."""
    merges = Codes(codes).merges
    scaffold = {merge.token for merge in merges if not merge.normal}
    found = {merge.token for merge in merges} - scaffold
    for merge in merges:
        found |= {symbol for symbol in merge[:2] if len(symbol.removesuffix("</w>")) == 1}
    for token in segmented:
        inner = bytes_to_notation(token.removesuffix(b"\x01\x02"))
        found |= set(inner) if token.endswith(b"\x01\x02") else {*inner[:-1], inner[-1] + "</w>"}
    return found


def test_codes_of_several_kinds_side_by_side(tmp_path: Path) -> None:
    """Each reads the text as its own first line says; a stream, which can be read only once, is refused."""
    path = tmp_path / "text"
    path.write_text("\n".join(ARIZONA) + "\n", encoding="utf-8")
    kinds = [{}, {"byte_level": True}, {"pretokenise": "gpt2"}]
    codes = [learn_bpe(path, num_symbols=10, **kind).text for kind in kinds]  # type: ignore[arg-type]
    together = stats(codes, path)
    assert together == [stats([each], path)[0] for each in codes]
    assert len({row.words for row in together}) == 2
    with pytest.raises(UsageError, match="different pre-tokenisers"):
        stats(codes, io.BytesIO(path.read_bytes()))


def test_sizes_with_a_pretokeniser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row equals the figures of two codes files of that size; with --total-symbols, N is |V|, as in the paper."""
    path = tmp_path / "text"
    path.write_bytes(hard_bytes(7, 3000))
    (row,) = compare_sizes([340], path, total_symbols=True, pretokenise="gpt2", split_digits=True)
    bpe, scaffold = (
        learn_bpe(path, num_symbols=340 - 256, algorithm=name, pretokenise="gpt2", split_digits=True).text
        for name in ("bpe", "scaffold")
    )
    found, figures = compare_vocab(bpe, scaffold, path), stats([bpe, scaffold], path)
    assert (row.removed, row.new, row.gain) == (len(found.removed), len(found.new), found.gain)
    assert row.removed > 0 and row.scaffold_share_of_bpe == sum(entry.scaffold for entry in found.removed) / 340
    for measured, summary in zip((row.bpe, row.scaffold), figures, strict=True):
        assert measured is not None
        assert measured.vocabulary_size == summary.vocabulary_size == 340
        assert measured.bytes_per_token == summary.bytes_per_token
        assert (measured.entropy_bits, measured.redundancy) == (summary.entropy_bits, summary.redundancy)

    arguments = ["compare-vocab", "--sizes", "340", "-t", "--pretokenise", "gpt2", "--split-digits", "-i", str(path)]
    assert main([*arguments, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row.to_dict()]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown == format_sizes([row]) and f"{figures[1].entropy_bits:.4f}" in shown
    with pytest.raises(UsageError, match="256 base symbols"):
        compare_sizes([256], path, total_symbols=True, pretokenise="gpt2")


def test_only_codes_of_one_kind_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens of other kinds differ as strings; and codes files themselves define how text is cut into words."""
    words = ZONA.replace(b"0.3 bytes gpt2", b"0.2")
    with pytest.raises(UsageError, match="pre-tokeniser"):
        compare_vocab(words, ZONA, lines=ARIZONA)
    assert main(["compare-vocab", "bpe.codes", "scaffold.codes", "--pretokenise", "gpt2"]) == 2
    assert "codes files say" in capsys.readouterr().err


def test_explained_words_of_a_pretokeniser() -> None:
    """A text is explained word by word, in GPT-2's notation, and the result is that of apply-bpe."""
    explainer = Explainer(ZONA)
    assert explainer.words("rizona zona") == ["rizona", " zona"]
    zona = explainer.explain("zona")
    assert (zona.scaffolding, zona.subwords) == (["zona"], ["zon", "a"])
    with_space = explainer.explain(" zona")
    assert (with_space.word, with_space.base) == ("Ġzona", ["Ġ", "z", "o", "n", "a"])
    assert with_space.subwords == ["Ġzona"] and not with_space.demolitions
    text = explain(ZONA, ["rizona zona"])
    assert [line.split(" ", 1)[0] for line in text.splitlines() if line and line[0] != " "] == ["rizona", "Ġzona"]
    with pytest.raises(UsageError, match="has no words"):
        explainer.words("")


def test_an_end_of_word_that_is_text() -> None:
    """With a pre-tokeniser, </w> is a string like any other: it is demolished the shortest way, as in applying."""
    pytest.importorskip("regex", reason="a pattern needs the package regex")
    merges = ["w >", "/ w>", "< /w>", "b </w> scaffold", "a b", "a b</w> scaffold", "ab </w> scaffold"]
    codes = "\n".join(["#version: 0.3 bytes pattern=.+", *merges, ""]).encode()
    subwords = Explainer(codes).explain("ab</w>").subwords
    assert subwords == ["ab", "</w>"] == BPE(codes).segment("ab</w>").split(" ")


@pytest.mark.parametrize("options", [{"byte_level": True}, {"pretokenise": "gpt2", "split_digits": True}])
def test_the_explained_result_is_that_of_applying(options: dict[str, object]) -> None:
    """On hard words, with scaffold tokens and parts of characters."""
    lines = hard_text(8, 400).split("\n")
    codes = learn_bpe(lines=lines, num_symbols=80, **options).text  # type: ignore[arg-type]
    explainer, bpe = Explainer(codes), BPE(codes)
    demolished = 0
    for line in lines[:60]:
        if not line.strip(" \r"):
            continue
        words = explainer.words(line) if "pretokenise" in options else line.strip(" \r").split(" ")
        explained = [explainer.explain(word) for word in words if word]
        subwords = [subword for each in explained for subword in each.subwords]
        demolished += sum(len(each.demolitions) for each in explained)
        expected = bpe.segment(re.sub(" +", " ", line.strip(" \r"))) if "byte_level" in options else bpe.segment(line)
        if "byte_level" in options:
            expected = " ".join(
                bytes_to_notation(part.encode("utf-8", "surrogateescape")) for part in expected.split(" ")
            )
        assert " ".join(subwords) == expected
    assert demolished
