"""Learning more merges from given codes: equal to plain Python, and ids stay."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from learning import learn_with
from reference.picky import learn_picky
from segmenting import reference_of

from mt_scaffold import BPE, Codes, UsageError, learn_bpe
from mt_scaffold.analysis.reference import learn_merges
from mt_scaffold.analysis.reference_picky import Event, ReferencePickyBPE
from mt_scaffold.cli import main
from mt_scaffold.corpus.text import surface_form
from mt_scaffold.methods.extending import extend
from mt_scaffold.segment.id_maps import subword_map

Merges = list[tuple[str, str, bool]]


def replaced(word: list[str], left: str, right: str) -> list[str]:
    """Return a word with all places of a pair merged, from the left."""
    result: list[str] = []
    at = 0
    while at < len(word):
        both = word[at : at + 2] == [left, right]
        result.append(left + right if both else word[at])
        at += 1 + both
    return result


def extended(given: Merges, words: dict[str, int], more: int, algorithm: str) -> Merges:
    """Run BPE or Algorithm 1 in plain Python after all given merges; only new tokens are marked and counted."""
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


def random_words(chance: random.Random) -> list[str]:
    return ["".join(chance.choices("abc", k=chance.randrange(1, 7))) for _ in range(chance.randrange(2, 30))]


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
def test_extending_equals_plain_python_on_random_corpora(algorithm: str) -> None:
    """400 corpora: the first codes from one text, the rest from another."""
    chance = random.Random(algorithm)
    for _ in range(400):
        texts = [random_words(chance) for _ in range(2)]
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


def test_the_plain_python_is_algorithm_1() -> None:
    """With no given merges, it learns what the reference of Algorithm 1 learns, to which the core is held as well."""
    chance, marked = random.Random(5), 0
    for _ in range(200):
        words = Counter(random_words(chance))
        for algorithm in ("bpe", "scaffold"):
            learned = learn_merges(words, 9, algorithm=algorithm)
            wanted = [(left, right, left + right in learned.scaffold) for left, right in learned.merges]
            assert extended([], words, 9, algorithm) == wanted
            marked += bool(learned.scaffold)
    assert marked > 50


def events_of(codes: Codes) -> list[Event]:
    """Return the merges and splits of PickyBPE's codes in order."""
    reference = reference_of(codes.text)
    assert isinstance(reference, ReferencePickyBPE)
    return reference.events


def test_extending_pickybpe_equals_plain_python_on_random_corpora() -> None:
    """600 corpora: merges and splits; no token of the given codes is removed."""
    chance, splits, again = random.Random("picky"), 0, 0
    for _ in range(600):
        texts = [random_words(chance) for _ in range(2)]
        options: dict[str, Any] = {"algorithm": "picky", "threshold": chance.choice([0.4, 0.6, 0.9])}
        first = learn_with(lines=[" ".join(texts[0])], num_symbols=chance.randrange(1, 9), **options).codes
        if not first.merges:
            continue
        given, more = events_of(first), chance.randrange(1, 8)
        found = extend(first, lines=[" ".join(texts[1])], num_symbols=more, **options).codes
        wanted = learn_picky(Counter(texts[1]), more, options["threshold"], given=given)
        assert events_of(found) == wanted.events, (texts, first.text, more)
        assert first.normal <= found.normal
        splits += len(found.splits) > len(first.splits)
        again += bool(first.scaffold & found.normal)
    assert splits > 60 and again > 5


def test_the_algorithm_is_that_of_the_codes(tmp_path: Path) -> None:
    """PickyBPE's merges depend on what was removed before; those of BPE have no order in time."""
    with pytest.raises(UsageError, match=r"codes of PickyBPE.*choose picky"):
        extend(b"#version: 0.4 picky\na n\n", lines=["an an"])
    with pytest.raises(UsageError, match=r"codes of BPE.*choose bpe or scaffold"):
        extend(b"#version: 0.2\na n\n", lines=["an an"], algorithm="picky")
    (tmp_path / "codes").write_bytes(b"#version: 0.2\na n\n")
    (tmp_path / "text").write_bytes(b"an ban ban\n")
    command = ["extend", f"{tmp_path}/codes", "--input", f"{tmp_path}/text", "--threshold", "0.5"]
    assert main([*command, "-o", f"{tmp_path}/new"]) == 2


def test_a_map_of_words_between_spaces_has_subwords(tmp_path: Path) -> None:
    """As in a fairseq dictionary: new subwords are made of old ones, removed ones of those that remain."""
    (tmp_path / "codes").write_bytes(b"#version: 0.2\na n\nb an\nan a</w>\n")
    (tmp_path / "text").write_text("banana banana bandana ban\n", encoding="utf-8")
    refilled = ["trim", f"{tmp_path}/codes", "--ratio", "0.9", "--refill", "same", "--input", f"{tmp_path}/text"]
    assert main([*refilled, "--output", f"{tmp_path}/new", "--map", f"{tmp_path}/map.json"]) == 0
    found = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    old, new = Codes.read(tmp_path / "codes"), Codes.read(tmp_path / "new")
    assert {*found["removed"]} == {surface_form(token) for token in old.normal - new.normal} != set()
    assert {*found["added"]} == {surface_form(token) for token in new.normal - old.normal} != set()
    for subword, parts in [*found["removed"].items(), *found["added"].items()]:
        assert subword.removesuffix("@@") == "".join(part.removesuffix("@@") for part in parts)


def test_a_map_of_a_long_chain_of_merges() -> None:
    """A token of 1,200 nested merges took as many nested Python calls."""
    chain = Codes(("#version: 0.2\n" + "".join(f"{'a' * number} a\n" for number in range(1, 1200))).encode(), "chain")
    none = Codes(b"#version: 0.2\n", "none")
    parts = subword_map(none, chain).added[f"{'a' * 1200}@@"]
    assert parts == ["a@@"] * 1200
