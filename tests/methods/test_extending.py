"""Learning on from given codes: equal to plain Python, and ids stay."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from mt_scaffold import BPE, UsageError, learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.methods.extending import extend

Merges = list[tuple[str, str, bool]]


def replaced(word: list[str], left: str, right: str) -> list[str]:
    """All places of a word, from the left."""
    result: list[str] = []
    at = 0
    while at < len(word):
        both = word[at : at + 2] == [left, right]
        result.append(left + right if both else word[at])
        at += 1 + both
    return result


def extended(given: Merges, words: dict[str, int], more: int, algorithm: str) -> Merges:
    """BPE and Algorithm 1 in plain Python, after all given merges; only new tokens are marked and counted."""
    text = {(*word[:-1], word[-1] + "</w>"): count for word, count in words.items()}
    old = {left + right for left, right, _ in given}
    merges = [(left, right) for left, right, _ in given]

    def merge(left: str, right: str) -> None:
        nonlocal text
        text = {tuple(replaced(list(word), left, right)): count for word, count in text.items()}

    def pairs() -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for word, count in text.items():
            for pair in itertools.pairwise(word):
                found[pair] += count
        return found

    def frequency(token: str) -> int:
        return sum(count * word.count(token) for word, count in text.items())

    for left, right in merges:
        merge(left, right)
    normal: set[str] = set()
    waiting: dict[str, tuple[str, str]] = {}
    made: dict[str, tuple[str, str]] = {}
    learned = 0
    while (learned if algorithm == "bpe" else len(normal)) < more:
        queue: list[tuple[int, tuple[str, str], str | None]] = [
            (count, pair, None) for pair, count in pairs().items() if count >= 2
        ]
        queue += [(frequency(token), pair, token) for token, pair in waiting.items() if frequency(token) >= 2]
        if not queue:
            break
        _, (left, right), token = max(queue, key=lambda each: (each[0], each[1], each[2] is not None))
        if token is not None:
            del waiting[token]
            normal.add(token)
            continue
        merge(left, right)
        merges.append((left, right))
        learned += 1
        token = left + right
        if token not in old:
            made.setdefault(token, (left, right))
            waiting.pop(token, None)
            normal.add(token)
        if algorithm == "scaffold":
            head = max([*pairs().values(), *map(frequency, waiting), 0])
            for child in (left, right):
                if child in normal and frequency(child) < head:
                    normal.remove(child)
                    waiting[child] = made[child]
    marked = {left + right for left, right, scaffold in given if scaffold} | set(waiting)
    return [(left, right, left + right in marked) for left, right in merges]


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
def test_extending_equals_plain_python_on_random_corpora(algorithm: str) -> None:
    """1,000 corpora: the first codes from one text, the rest from another."""
    chance = random.Random(algorithm)
    for _ in range(500):
        texts = [
            [("".join(chance.choices("abc", k=chance.randrange(1, 7)))) for _ in range(chance.randrange(2, 30))]
            for _ in range(2)
        ]
        first = learn_bpe(lines=[" ".join(texts[0])], num_symbols=chance.randrange(1, 6), algorithm="scaffold").codes
        if not first.merges:
            continue
        more = chance.randrange(1, 8)
        found = extend(first, lines=[" ".join(texts[1])], num_symbols=more, algorithm=algorithm).codes
        wanted = extended([(left, right, out) for left, right, out in first.merges], Counter(texts[1]), more, algorithm)
        assert [tuple(merge) for merge in found.merges] == wanted, (texts, first.text, more)


def test_old_ids_stay_and_the_map_says_what_new_tokens_were(tmp_path: Path) -> None:
    """A model's rows keep their places, and a new row has pieces to be the mean of."""
    (tmp_path / "codes").write_bytes(b"#version: 0.3 bytes gpt2\na n\nb an\n")
    (tmp_path / "text").write_text("banana banana bandana\n", encoding="utf-8")
    arguments = ["extend", f"{tmp_path}/codes", "--symbols", "2", "--input", f"{tmp_path}/text"]
    assert main([*arguments, "--output", f"{tmp_path}/new", "--map", f"{tmp_path}/map.json"]) == 0
    found = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    assert found["ids"] == list(range(258)) and (found["old_ids"], found["new_ids"]) == (258, 260)
    old, new = BPE(tmp_path / "codes"), BPE(tmp_path / "new")
    for number, pieces in found["pieces"].items():
        assert new.tokens[int(number)] == b"".join(old.tokens[piece] for piece in pieces)


def test_codes_of_pickybpe_are_refused() -> None:
    """Their merges depend on what was removed before."""
    with pytest.raises(UsageError, match="codes of PickyBPE"):
        extend(b"#version: 0.4 picky\na n\n", lines=["an an"])
