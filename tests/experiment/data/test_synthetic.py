"""The generated corpus: the same bytes everywhere, and the morphology that makes subwords worthwhile."""

from __future__ import annotations

import collections
import hashlib
import itertools

from mt_scaffold.experiment.data.synthetic import (
    CASES,
    SOURCE_CONJUNCTIONS,
    SOURCE_THAT,
    TARGET_CONJUNCTIONS,
    TARGET_THAT,
    Language,
    Stem,
    _inflect,
    sentence_pairs,
)

PAIRS = list(itertools.islice(sentence_pairs(1), 12000))


def digest(pairs: list[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{source}\t{target}\n" for source, target in pairs).encode()).hexdigest()


def test_a_seed_gives_these_bytes_on_every_platform() -> None:
    """Figures of the demonstration are comparable only as long as its text is the same."""
    assert digest(PAIRS[:1000]) == "02320168a43720403601678ea00266e43c0fe18b372cb01988628973483deddb"


def test_another_seed_gives_another_language() -> None:
    """Two seeds share hardly a word."""
    others = list(itertools.islice(sentence_pairs(2), 1000))
    assert digest(others) != digest(PAIRS[:1000])
    words, other_words = ({word for source, _ in pairs for word in source.split()} for pairs in (PAIRS[:1000], others))
    assert len(words & other_words) < 0.1 * len(words)


def test_fewer_stems_are_another_language_of_fewer_words() -> None:
    """What makes the demonstration quick to learn; the default is the full lexicon, and few stems still suffice."""
    full, few, fewest = (list(itertools.islice(sentence_pairs(1, stems), 1000)) for stems in (740, 74, 37))
    assert full == PAIRS[:1000]
    words = [len({word for _, target in pairs for word in target.split()}) for pairs in (full, few, fewest)]
    assert words[0] > 2 * words[1] > 2 * words[2]
    assert digest(few) == "9d21285bfb7822d95022ec8eb9742fe4ed2a604bab808a7772d873541fdf42d8"


def test_a_sentence_of_one_clause_has_one_verb() -> None:
    """No conjunction and no subordinate clause, in either language."""
    joints = {*SOURCE_CONJUNCTIONS, *TARGET_CONJUNCTIONS, SOURCE_THAT, TARGET_THAT}
    simple = list(itertools.islice(sentence_pairs(1, clauses=1), 1000))
    assert not any(joints & set(text.split()) or "," in text for pair in simple for text in pair)
    assert any(joints & set(source.split()) for source, _ in PAIRS)


def test_no_source_sentence_is_repeated() -> None:
    """So no test sentence is among the training sentences."""
    assert len({source for source, _ in PAIRS}) == len(PAIRS)


def test_a_sentence_is_one_clean_line() -> None:
    """Capitalised, punctuated and with single spaces, as the tokeniser expects."""
    for text in itertools.chain.from_iterable(PAIRS):
        assert text == " ".join(text.split())
        assert text[-1] in ".?" and not text[0].islower()


def test_the_target_language_has_the_richer_morphology() -> None:
    """It has more word types, most of them rare: otherwise words would do and subwords would not matter."""
    source, target = (collections.Counter(word for pair in PAIRS for word in pair[side].split()) for side in (0, 1))
    assert len(target) > 1.5 * len(source)
    assert sum(count == 1 for count in target.values()) > 0.4 * len(target)
    test_words = [word for _, text in PAIRS[11000:] for word in text.split()]
    known = {word for _, text in PAIRS[:11000] for word in text.split()}
    assert 0.04 < sum(word not in known for word in test_words) / len(test_words) < 0.15


def test_frequent_nouns_are_much_more_frequent_than_rare_ones() -> None:
    """The lexicon follows Zipf's law: the tenth noun is drawn several times as often as the hundredth."""
    language = Language(3)
    counts = collections.Counter(language.nouns.draw(language.rng).source for _ in range(20000))
    tenth, hundredth = (counts[language.nouns.items[rank].source] for rank in (9, 99))
    assert 4 < tenth / hundredth < 16


def test_nouns_inflect_for_case_and_number_with_umlaut_in_the_plural() -> None:
    """Endings follow case and number, and some stems change their vowel."""
    masculine, feminine = Stem("stone", "krol", "m", umlaut=True), Stem("moon", "lan", "f")
    assert [_inflect(masculine, case, False) for case in range(len(CASES))] == ["krol", "krol", "krole"]
    assert [_inflect(masculine, case, True) for case in range(len(CASES))] == ["kröle", "kröle", "krölen"]
    assert [_inflect(feminine, case, True) for case in range(len(CASES))] == ["lanen", "lanen", "lanen"]


def test_a_word_of_the_lexicon_means_one_thing() -> None:
    """Translation is unique: no two stems share their form in either language."""
    language = Language(1)
    stems = [stem for kind in (language.nouns, language.verbs, language.adjectives) for stem in kind.items]
    assert len({stem.source for stem in stems}) == len({stem.target for stem in stems}) == len(stems)
