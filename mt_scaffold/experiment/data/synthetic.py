"""A synthetic parallel corpus of two invented languages, for demonstrations; results on it must be labelled synthetic.

Every sentence is sampled as a meaning (who does what to whom, when, where) and spelled out twice:

- The source language is analytic: articles, adjective before noun, subject-verb-object, prepositions, compounds
  in two words, plural and past by a suffix, future and negation by a particle.
- The target language is inflecting: noun after its article and before its adjectives, verb at the end,
  three genders, three cases, umlaut in some plurals, verbs with endings for tense, person and number,
  compounds in one word with a linking element, postpositions, a negation prefix.

Stems are built from syllables, their frequencies follow Zipf's law, and both languages derive nouns and adverbs from
verbs and adjectives, so that many word forms of a text occur once while their parts occur often, which is what
subwords are for. The translation of a meaning is unique, so a model can learn it.

Only ``Random.random`` is called, whose sequence Python guarantees for a seed: the same seed gives the same bytes on
every platform.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from mt_scaffold.experiment.configuration.data import STEMS

Item = TypeVar("Item")

# The stems of the full lexicon (STEMS in all): nouns, verbs, adjectives and names.
_SHARES = (400, 140, 120, 80)

GENDERS = ("m", "f", "n")
PERSONS = ("1sg", "2sg", "3sg", "1pl", "2pl", "3pl")

# The two languages have different syllables, so that they share few subwords beyond the names.
SOURCE_ONSETS = (
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "w",
    "br",
    "cl",
    "gr",
    "pl",
    "st",
    "th",
)
SOURCE_VOWELS = ("a", "e", "i", "o", "u", "ea", "oo")
SOURCE_CODAS = ("", "", "", "n", "r", "l", "m", "ck", "nd", "st", "sh")
TARGET_ONSETS = ("b", "d", "f", "g", "h", "k", "l", "m", "n", "r", "s", "t", "v", "z", "sch", "kr", "tr", "gl", "schw")
TARGET_VOWELS = ("a", "e", "i", "o", "u", "ei", "au", "ie")
TARGET_CODAS = ("", "", "n", "r", "l", "m", "g", "ß", "cht", "nk", "rt")

SOURCE_PRONOUNS = dict(zip(PERSONS, ("mi", "yu", "he", "wem", "yum", "hem"), strict=True))
TARGET_PRONOUNS = dict(zip(PERSONS, ("eg", "dun", "ser", "wis", "jur", "sen"), strict=True))
SOURCE_PREPOSITIONS = ("onna", "inna", "bai", "widh", "fro", "undra")
TARGET_POSTPOSITIONS = ("auv", "im", "bey", "mitt", "vonn", "untar")
SOURCE_CONJUNCTIONS = ("anda", "buth", "beco", "wen")
TARGET_CONJUNCTIONS = ("ond", "abur", "wel", "wan")
SOURCE_THAT, TARGET_THAT = "dat", "daß"
# Words that no stem may coincide with.
FUNCTION_WORDS = {
    "la",
    "un",
    "na",
    "wil",
    SOURCE_THAT,
    TARGET_THAT,
    *SOURCE_PRONOUNS.values(),
    *TARGET_PRONOUNS.values(),
}
FUNCTION_WORDS |= {*SOURCE_PREPOSITIONS, *TARGET_POSTPOSITIONS, *SOURCE_CONJUNCTIONS, *TARGET_CONJUNCTIONS}

# Endings of the target language by gender and case (nominative, accusative, dative).
CASES = ("nom", "acc", "dat")
NOUN_SINGULAR = {"m": ("", "", "e"), "f": ("", "", ""), "n": ("", "", "es")}
NOUN_PLURAL = {"m": ("e", "e", "en"), "f": ("en", "en", "en"), "n": ("er", "er", "ern")}
ARTICLE_SINGULAR = {"m": ("or", "on", "om"), "f": ("ia", "ia", "ir"), "n": ("os", "os", "om")}
ARTICLE_PLURAL = ("ia", "ia", "in")
ADJECTIVE_SINGULAR = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em")}
ADJECTIVE_PLURAL = ("e", "e", "en")
LINKING = {"m": "s", "f": "n", "n": ""}
UMLAUT = {"a": "ä", "o": "ö", "u": "ü"}

VERB_ENDINGS = dict(zip(PERSONS, ("o", "st", "t", "men", "tet", "nen"), strict=True))
TENSE_MARKS = {"present": "", "past": "te", "future": "ir"}


@dataclass(frozen=True)
class Stem:
    """One lexeme: its stem in both languages; gender and umlaut matter for nouns of the target language."""

    source: str
    target: str
    gender: str = "m"
    umlaut: bool = False


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase in both languages; ``target`` has a form for each case, in the order of CASES."""

    source: str
    target: tuple[str, str, str]
    person: str


class Zipf(Generic[Item]):
    """Draws items with probabilities proportional to 1 / (rank + 3)."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.cumulative = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(items))))

    def draw(self, rng: Random) -> Item:
        """Draw one item."""
        return self.items[
            bisect.bisect_right(self.cumulative, rng.random() * self.cumulative[-1], hi=len(self.items) - 1)
        ]


def _pick(rng: Random, items: Sequence[Item]) -> Item:
    """Return one of ``items``, all equally likely."""
    return items[int(rng.random() * len(items))]


class Language:
    """The lexicon and grammar of one seed: draws sentences and spells them out in both languages.

    ``stems``: how many each language has, about half of them nouns. ``clauses``: the most in one sentence, 1 or 2.
    The fewer of both, the sooner a model has learned the languages.
    """

    def __init__(self, seed: int, stems: int = STEMS, clauses: int = 2) -> None:
        self.clauses = clauses
        self.rng = Random(seed)
        self._taken = set(FUNCTION_WORDS)
        nouns, verbs, adjectives, names = (max(1, share * stems // STEMS) for share in _SHARES)
        self.nouns = Zipf([self._stem(2) for _ in range(nouns)])
        self.verbs = Zipf([self._stem(2) for _ in range(verbs)])
        self.adjectives = Zipf([self._stem(2) for _ in range(adjectives)])
        self.names = Zipf([self._name() for _ in range(names)])

    def sentence(self) -> tuple[str, str]:
        """Return a sentence and its translation, capitalised and punctuated."""
        kind = self.rng.random()
        source, target = self._clause()
        mark = "."
        if kind < 0.12:
            mark = "?"
        elif self.clauses == 1:
            pass
        elif kind < 0.32:
            number = int(self.rng.random() * len(SOURCE_CONJUNCTIONS))
            other_source, other_target = self._clause()
            source = f"{source}, {SOURCE_CONJUNCTIONS[number]} {other_source}"
            target = f"{target}, {TARGET_CONJUNCTIONS[number]} {other_target}"
        elif kind < 0.44:
            subject, verb = self._subject(), self.verbs.draw(self.rng)
            main_source, main_target = self._verb(verb, subject.person)
            source = f"{subject.source} {main_source} {SOURCE_THAT} {source}"
            target = f"{subject.target[0]} {main_target}, {TARGET_THAT} {target}"
        return source[0].upper() + source[1:] + mark, target[0].upper() + target[1:] + mark

    def _syllables(self, count: int, onsets: Sequence[str], vowels: Sequence[str], codas: Sequence[str]) -> str:
        return "".join(_pick(self.rng, onsets) + _pick(self.rng, vowels) + _pick(self.rng, codas) for _ in range(count))

    def _stem(self, most_syllables: int) -> Stem:
        """Return a new stem in both languages."""
        while True:
            source = self._syllables(
                1 + int(self.rng.random() * most_syllables), SOURCE_ONSETS, SOURCE_VOWELS, SOURCE_CODAS
            )
            target = self._syllables(
                1 + int(self.rng.random() * most_syllables), TARGET_ONSETS, TARGET_VOWELS, TARGET_CODAS
            )
            gender, umlaut = _pick(self.rng, GENDERS), self.rng.random() < 0.4
            if len(source) > 2 and len(target) > 2 and source not in self._taken and target not in self._taken:
                self._taken |= {source, target}
                return Stem(source, target, gender, umlaut)

    def _name(self) -> Stem:
        """Return a proper name, the same in both languages."""
        stem = self._stem(2)
        return Stem(stem.source.capitalize(), stem.source.capitalize())

    def _noun(self) -> Stem:
        """Return a noun: simple, compound, or derived from a verb (its agent) or an adjective (its quality)."""
        kind = self.rng.random()
        if kind < 0.08:
            verb = self.verbs.draw(self.rng)
            return Stem(verb.source + "er", verb.target + "lin", "m")
        if kind < 0.14:
            adjective = self.adjectives.draw(self.rng)
            return Stem(adjective.source + "ness", adjective.target + "schaf", "f")
        noun = self.nouns.draw(self.rng)
        if kind < 0.32:
            first = self.nouns.draw(self.rng)
            return Stem(
                f"{first.source} {noun.source}",
                first.target + LINKING[first.gender] + noun.target,
                noun.gender,
                noun.umlaut,
            )
        return noun

    def _noun_phrase(self) -> NounPhrase:
        kind = self.rng.random()
        if kind < 0.1:
            name = self.names.draw(self.rng)
            return NounPhrase(name.source, (name.target, name.target, name.target + "e"), "3sg")
        noun = self._noun()
        plural = self.rng.random() < 0.35
        definite = self.rng.random() < 0.65
        source_adjectives: list[str] = []
        target_adjectives: list[str] = []
        while self.rng.random() < 0.28 and len(source_adjectives) < 2:
            adjective = self.adjectives.draw(self.rng)
            negated = self.rng.random() < 0.12
            source_adjectives.append(("un" if negated else "") + adjective.source)
            target_adjectives.append(("on" if negated else "") + adjective.target)
        source = [*source_adjectives, noun.source + _source_plural(noun.source) if plural else noun.source]
        if definite:
            source.insert(0, "la")
        elif not plural:
            source.insert(0, "un")
        target = []
        for case in range(len(CASES)):
            words = [_inflect(noun, case, plural)]
            endings = ADJECTIVE_PLURAL if plural else ADJECTIVE_SINGULAR[noun.gender]
            words += [adjective + endings[case] for adjective in target_adjectives]
            article = (ARTICLE_PLURAL if plural else ARTICLE_SINGULAR[noun.gender])[case]
            if definite:
                words.insert(0, "d" + article)
            elif not plural:
                words.insert(0, "k" + article)
            target.append(" ".join(words))
        return NounPhrase(" ".join(source), (target[0], target[1], target[2]), "3pl" if plural else "3sg")

    def _subject(self) -> NounPhrase:
        if self.rng.random() < 0.3:
            person = _pick(self.rng, PERSONS)
            form = TARGET_PRONOUNS[person]
            return NounPhrase(SOURCE_PRONOUNS[person], (form, form, form), person)
        return self._noun_phrase()

    def _verb(self, verb: Stem, person: str) -> tuple[str, str]:
        """Return a finite verb: particles and a suffix in the source language, one word in the target language."""
        tense = ("present", "present", "past", "past", "future")[int(self.rng.random() * 5)]
        negated = self.rng.random() < 0.12
        source = verb.source
        if tense == "past":
            source += "ed"
        elif tense == "future":
            source = "wil " + source
        elif person == "3sg":
            source += "s"
        target = verb.target + TENSE_MARKS[tense] + VERB_ENDINGS[person]
        return ("na " + source, "ni" + target) if negated else (source, target)

    def _clause(self) -> tuple[str, str]:
        """Return a subject, a verb, and perhaps an object, a place and a manner, in the order of each language."""
        subject = self._subject()
        verb_source, verb_target = self._verb(self.verbs.draw(self.rng), subject.person)
        source, target = [subject.source, verb_source], [subject.target[0]]
        if self.rng.random() < 0.65:
            thing = self._noun_phrase()
            source.append(thing.source)
            target.append(thing.target[1])
        if self.rng.random() < 0.3:
            place = self._noun_phrase()
            number = int(self.rng.random() * len(SOURCE_PREPOSITIONS))
            source += [SOURCE_PREPOSITIONS[number], place.source]
            target += [place.target[2], TARGET_POSTPOSITIONS[number]]
        if self.rng.random() < 0.15:
            manner = self.adjectives.draw(self.rng)
            source.append(manner.source + "ly")
            target.append(manner.target + "wis")
        return " ".join(source), " ".join([*target, verb_target])


def _source_plural(noun: str) -> str:
    return "es" if noun.endswith(("s", "sh", "ck", "st")) else "s"


def _inflect(noun: Stem, case: int, plural: bool) -> str:
    """Return a noun of the target language in one case and number."""
    if not plural:
        return noun.target + NOUN_SINGULAR[noun.gender][case]
    stem = noun.target
    if noun.umlaut:
        last = max(stem.rfind(vowel) for vowel in UMLAUT)
        if last >= 0:
            stem = stem[:last] + UMLAUT[stem[last]] + stem[last + 1 :]
    return stem + NOUN_PLURAL[noun.gender][case]


def sentence_pairs(seed: int, stems: int = STEMS, clauses: int = 2) -> Iterator[tuple[str, str]]:
    """Yield (source sentence, target sentence) for ``seed`` without end, no source sentence twice.

    ``stems``: how many stems each language has. ``clauses``: the most in one sentence, 1 or 2.
    """
    language = Language(seed, stems, clauses)
    seen = set()
    while True:
        source, target = language.sentence()
        if source not in seen:
            seen.add(source)
            yield source, target
