"""Leaf pruning: tokens on which no merge builds go first, the rarest of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segmenting import MODE_NAMES, MODES, Mode, rich_text

from mt_scaffold import BPE, Codes, UsageError, count_words, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import is_base_symbol
from mt_scaffold.methods.leaves import prune_leaves, removed_leaves
from mt_scaffold.segment.frequencies import use_of_vocabulary

# low. 3, low 0, lo 0, lower. 1, er. 1 and inside tokens: lo in low. and low, low and er. in lower.
CODES = b"#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\nlow er</w>\n"
TEXT = ["low low low lower her"]


def plainly(codes: Codes, frequencies: dict[str, int], number: int) -> list[str]:
    """Prune leaves in plain Python, searching for them again in every round; return the removed tokens."""
    left = [(merge.left, merge.right) for merge in codes.merges]
    frequency, removed = Counter(frequencies), list[str]()
    while sum(token not in codes.scaffold for token in removed) < number:
        used = {part for pair in left for part in pair}
        made = dict.fromkeys(a + b for a, b in left)
        leaves = [t for t in made if t not in used and not is_base_symbol(t, codes.header.end_of_word)]
        if not leaves:
            break
        first = {token: next(i for i, m in enumerate(codes.merges) if m.token == token) for token in leaves}
        token = min(leaves, key=lambda each: (frequency[each], -first[each]))
        removed.append(token)
        for part in codes.merges[first[token]][:2]:
            frequency[part] += frequency[token]
        left = [pair for pair in left if "".join(pair) != token]
    return removed


def test_by_hand() -> None:
    """The rarest leaf goes and its parts gain its frequency; a part becomes a leaf once nothing builds on it."""
    codes, words = Codes(CODES), count_words(lines=TEXT)
    # Leaves are low. (3) and lower. (1); then low has 1 and er. 2, both leaves now.
    assert removed_leaves(codes, words, 5) == ["lower</w>", "low", "er</w>", "low</w>", "lo"]
    pruned = prune_leaves(CODES, 2, lines=TEXT)
    assert pruned.text == b"#version: 0.2\nl o\nlo w</w>\ne r</w>\n"
    assert BPE(pruned).segment("low lower her") == "low lo@@ w@@ er h@@ er"


def checked(codes: Codes, lines: list[str], number: int) -> None:
    header = codes.header
    words = count_words(lines=lines, pretokenise=header.pretokeniser, any_bytes=header.bytes)
    number = min(number, len(codes.normal))
    found = removed_leaves(codes, words, number)
    assert found == plainly(codes, use_of_vocabulary(codes, words).frequencies, number)
    left = codes.without(set(found))
    made = {merge.token for merge in left.merges}
    parts = {part for merge in left.merges for part in (merge.left, merge.right)}
    assert all(part in made or is_base_symbol(part, header.end_of_word) or part not in found for part in parts)


@pytest.mark.parametrize("mode", MODES, ids=MODE_NAMES)
def test_equal_to_plain_python(mode: Mode) -> None:
    """On random corpora, for BPE and Scaffold-BPE; the parts of every remaining merge also remain."""
    for seed in range(6):
        lines = rich_text(seed, 100, [*"abcde", "ä"])
        learned = learn_bpe(lines=lines, num_symbols=25, algorithm=("bpe", "scaffold")[seed % 2], **mode.options)
        for number in (1, 7, 25):
            checked(Codes(learned.text), lines, number)


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(
    words=st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=12),
    merges=st.integers(1, 20),
    number=st.integers(1, 20),
)
def test_equal_to_plain_python_on_any_words(words: list[str], merges: int, number: int) -> None:
    """With many ties, and tokens that several pairs make."""
    lines = [" ".join(words)]
    learned = learn_bpe(lines=lines, num_symbols=merges, algorithm="bpe", min_frequency=1)
    if learned.codes.normal:
        checked(learned.codes, lines, number)


def test_the_command_writes_codes_that_other_programs_read(tmp_path: Path) -> None:
    """Nothing is marked as scaffold, ids close the gaps, and invalid requests are refused."""
    (tmp_path / "text").write_text("banana banana bandana band\n", encoding="utf-8")
    learn_bpe(tmp_path / "text", tmp_path / "codes", 6, algorithm="bpe", pretokenise="gpt2")
    command = ["trim", f"{tmp_path}/codes", "--leaves", "2", "--input", f"{tmp_path}/text"]
    assert main([*command, "-o", f"{tmp_path}/new", "--map", f"{tmp_path}/map.json"]) == 0
    found = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    old, new = BPE(tmp_path / "codes"), BPE(tmp_path / "new")
    assert (found["old_ids"], found["new_ids"]) == (len(old.tokens), len(new.tokens)) and not found["pieces"]
    assert found["new_ids"] == found["old_ids"] - 2 and not Codes.read(tmp_path / "new").scaffold
    for number, moved in enumerate(found["ids"]):
        assert moved is None or new.tokens[moved] == old.tokens[number]
    assert main([*command, "--below", "2"]) == 2
    with pytest.raises(UsageError, match="cannot remove 9 of its "):
        prune_leaves(CODES, 9, lines=TEXT)
    with pytest.raises(UsageError, match="codes of PickyBPE"):
        prune_leaves(b"#version: 0.4 picky\na n\n", 1, lines=["an"])
