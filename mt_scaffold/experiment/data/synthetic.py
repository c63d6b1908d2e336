"""Generated English and German sentences, for demonstrations and tests; results on them must be labelled synthetic.

A small grammar draws a meaning (who does what to whom, how, when and where) and spells it out twice, correct in both
languages: German has genders, cases, plurals with umlaut, endings of adjectives, compounds in one word
("Gartentorschlüssel"), verbs with separable prefixes, and the verb at the end of subordinate clauses. A few hundred
stems, whose frequencies follow Zipf's law, make many forms that occur only once but have frequent parts: the case that
subwords are made for. Each English sentence has one translation, so that a model can learn it.

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
from mt_scaffold.experiment.data import lexicon

Item = TypeVar("Item")

NOMINATIVE, ACCUSATIVE, DATIVE = CASES = range(3)
# By gender and case; p is the plural.
DEFINITE = {
    "m": ("der", "den", "dem"),
    "f": ("die", "die", "der"),
    "n": ("das", "das", "dem"),
    "p": ("die", "die", "den"),
}
# Endings of "ein", "mein", "unser".
INDEFINITE = {"m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em"), "p": ("e", "e", "en")}
# Endings of an adjective after each of these, and in the plural without an article.
AFTER_DEFINITE = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en"), "p": ("en", "en", "en")}
AFTER_INDEFINITE = {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en"), "p": ("en", "en", "en")}
BARE_PLURAL = ("e", "e", "en")
NUMBERS = (("two", "zwei"), ("three", "drei"), ("four", "vier"), ("five", "fünf"), ("twelve", "zwölf"))
POSSESSIVES = (("my", "mein"), ("our", "unser"), ("his", "sein"))
# English, German, person.
PRONOUNS = (("I", "ich", "1"), ("he", "er", "3"), ("she", "sie", "3"), ("we", "wir", "p"), ("they", "sie", "p"))
OFTEN = (("often", "oft"), ("always", "immer"), ("never", "nie"), ("rarely", "selten"), ("sometimes", "manchmal"))
WHEN = {
    "present": (("today", "heute"), ("every day", "jeden Tag"), ("on Sundays", "sonntags")),
    "past": (("yesterday", "gestern"), ("last year", "letztes Jahr"), ("a week ago", "vor einer Woche")),
    "future": (("tomorrow", "morgen"), ("next year", "nächstes Jahr"), ("in two days", "in zwei Tagen")),
}
WHERE = (("behind", "hinter"), ("next to", "neben"), ("in front of", "vor"))
# The last two take the present for the future.
SUBORDINATE = (("because", "weil"), ("although", "obwohl"), ("while", "während"), ("before", "bevor"))
COORDINATE = (("and", "und"), ("but", "aber"))
IF, WHEN_ONCE, THAT = ("if", "wenn"), ("when", "als"), ("that", "dass")
_WILL = {"1": "werde", "3": "wird", "p": "werden"}


@dataclass(frozen=True)
class Noun:
    """A noun: singular and plural in English; in German singular, gender (m, f, n), plural, and whether it is weak."""

    english: str
    englishes: str
    german: str
    gender: str
    germans: str
    weak: bool = False

    def form(self, case: int, plural: bool) -> str:
        """Return the German form for a case."""
        if plural:
            return self.germans + ("n" if case == DATIVE and not self.germans.endswith(("n", "s")) else "")
        return self.germans if self.weak and case != NOMINATIVE else self.german


@dataclass(frozen=True)
class Verb:
    """A verb: base, third person, past and particle in English; in German stem, third person, past and prefix."""

    base: str
    third: str
    past: str
    particle: str
    stem: str
    german_third: str
    german_past: str
    prefix: str

    def english(self, tense: str, person: str) -> str:
        """Return the finite verb without its particle."""
        if tense == "future":
            return f"will {self.base}"
        return self.past if tense == "past" else self.third if person == "3" else self.base

    @property
    def infinitive(self) -> str:
        """The German infinitive."""
        return self.prefix + self.stem + ("n" if _unstressed(self.stem) else "en")

    def german(self, tense: str, person: str) -> str:
        """Return the German finite verb, present or past, without its prefix."""
        if tense == "past":
            plural = "n" if self.german_past.endswith("e") else "en"
            return self.german_past + (plural if person == "p" else "")
        if person == "3":
            return self.german_third
        if person == "p":
            return self.infinitive.removeprefix(self.prefix)
        return (self.stem[:-2] + "l" if self.stem.endswith("el") and _unstressed(self.stem) else self.stem) + "e"


@dataclass(frozen=True)
class Adjective:
    """An adjective: English, its comparative ("" for none), and the stems of both in German."""

    english: str
    comparative: str
    german: str
    german_comparative: str


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase: English, German in each case, and the person of the verb."""

    english: str
    german: tuple[str, str, str]
    person: str
    # m, f, n or p (plural); "" for names and pronouns.
    gender: str = ""


@dataclass(frozen=True)
class Clause:
    """A clause: English, also as a question; the parts of the German one, whose verb has three possible places."""

    english: str
    english_question: str
    first: str
    verb: str
    rest: str
    last: str
    infinite: str

    @property
    def german(self) -> str:
        """The main clause: the verb comes second."""
        return _words(self.first, self.verb, self.rest, self.infinite)

    @property
    def inverted(self) -> str:
        """The clause after another element, or as a question: the verb comes first."""
        return _words(self.verb, self.first, self.rest, self.infinite)

    @property
    def subordinate(self) -> str:
        """The clause after a conjunction: the verb comes last."""
        return _words(self.first, self.rest, self.last)


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


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


# -- the lexicon


def entries(text: str) -> list[tuple[str, str, list[str]]]:
    """Return the entries of a text of the lexicon: English, the form after its "/", and the German words."""
    found = []
    for entry in text.replace("\n", ";").split(";"):
        if entry.strip():
            english, german = entry.split("=")
            base, _, other = english.strip().partition("/")
            found.append((base, other, german.split()))
    return found


def nouns(text: str) -> list[Noun]:
    """Return the nouns of a text of the lexicon."""
    return [
        Noun(base, other or _with_s(base), german, gender[0], germans, gender.endswith("*"))
        for base, other, (german, gender, germans) in entries(text)
    ]


def verbs(text: str) -> list[Verb]:
    """Return the verbs of a text of the lexicon."""
    found = []
    for english, other, german in entries(text):
        base, _, particle = english.partition(" ")
        past, _, after = other.partition(" ")
        prefix = german.pop()[1:] if german[-1].startswith("+") else ""
        stem, third, german_past = [*german, "", ""][:3]
        linked = stem + ("e" if _needs_e(stem) else "")
        found.append(
            Verb(
                base,
                _with_s(base),
                past or _with_ed(base),
                particle or after,
                stem,
                third or f"{linked}t",
                german_past or f"{linked}te",
                prefix,
            )
        )
    return found


def adjectives(text: str) -> list[Adjective]:
    """Return the adjectives of a text of the lexicon, with opposites in "un-"."""
    found = []
    for base, comparative, german in entries(text):
        found.append(Adjective(base, comparative, german[0], german[-1] + "er"))
        if base in lexicon.NEGATABLE:
            found.append(Adjective(f"un{base}", "", f"un{german[0]}", ""))
    return found


def _with_s(english: str) -> str:
    """Return a regular plural, or a verb in the third person."""
    if english.endswith("y") and english[-2] not in "aeiou":
        return f"{english[:-1]}ies"
    return english + ("es" if english.endswith(("s", "x", "ch", "sh", "tato")) else "s")


def _with_ed(english: str) -> str:
    """Return the past of a regular verb."""
    if english.endswith("y") and english[-2] not in "aeiou":
        return f"{english[:-1]}ied"
    return english + ("d" if english.endswith("e") else "ed")


def _needs_e(stem: str) -> bool:
    """Return whether a German verb has an e before its endings, as in "arbeitet" and "zeichnet"."""
    return stem.endswith(("t", "d", "chn"))


def _unstressed(stem: str) -> bool:
    """Return whether a German verb ends in "-ern" or "-eln"."""
    return stem.endswith(("er", "el")) and stem[-3] != "i"


def _compound(first: str, noun: Noun, english: str) -> Noun:
    return Noun(
        f"{english} {noun.english}",
        f"{english} {noun.englishes}",
        first + noun.german.lower(),
        noun.gender,
        first + noun.germans.lower(),
    )


# -- the grammar


class Language:
    """Draws sentences with the words of one seed, and spells them out in English and German.

    ``stems``: the size of the lexicon. ``clauses``: the most in one sentence, 1 or 2. A model learns the text sooner
    the smaller these are.
    """

    def __init__(self, seed: int, stems: int = STEMS, clauses: int = 2) -> None:
        self.clauses, self.share = clauses, min(1.0, stems / STEMS)
        self.rng = Random(seed)
        self.people = self._chosen(nouns(lexicon.PERSONS))
        self.beings = Zipf([*self.people.items, *self._chosen(nouns(lexicon.ANIMALS)).items])
        self.food, self.readable = (self._chosen(nouns(text)) for text in (lexicon.FOOD, lexicon.READABLE))
        self.containers = self._chosen(nouns(lexicon.CONTAINERS))
        self.things = self._chosen(nouns(lexicon.THINGS))
        self.places = self._chosen(nouns(lexicon.PLACES))
        self.sites, self.materials = (
            self._chosen([(base, german[0]) for base, _, german in entries(text)])
            for text in (lexicon.SITES, lexicon.MATERIALS)
        )
        self.openings = [(base, german[0]) for base, _, german in entries(lexicon.OPENINGS)]
        self.heads = {
            kind: self._chosen(nouns(text))
            for kind, text in (
                ("site", lexicon.SITE_HEADS),
                ("opening", lexicon.OPENING_HEADS),
                ("material", lexicon.MATERIAL_HEADS),
            )
        }
        self.verbs = {
            kind: self._chosen(verbs(getattr(lexicon, kind)))
            for kind in ("HANDLE", "EAT", "READ", "OPEN", "MEET", "HELP", "GIVE", "ACT", "THINK")
        }
        shared = self._chosen(adjectives(lexicon.ANY_ADJECTIVES)).items
        self.adjectives = {
            being: Zipf([*self._chosen(adjectives(text)).items, *shared])
            for being, text in ((True, lexicon.BEING_ADJECTIVES), (False, lexicon.THING_ADJECTIVES))
        }
        self.names = self._chosen(lexicon.NAMES)

    def _chosen(self, items: Sequence[Item]) -> Zipf[Item]:
        """Return the share of these words that the language has, in an order drawn from the seed."""
        left = list(items)
        return Zipf(
            [left.pop(int(self.rng.random() * len(left))) for _ in range(max(1, round(self.share * len(items))))]
        )

    def sentence(self) -> tuple[str, str]:
        """Return a sentence and its translation, capitalised and punctuated."""
        kind = self.rng.random()
        tense = ("present", "present", "past", "past", "future")[int(self.rng.random() * 5)]
        clause, mark = self._clause(tense), "."
        english, german = clause.english, clause.german
        if kind < 0.1:
            english, german, mark = clause.english_question, clause.inverted, "?"
        elif kind < 0.25:
            when = _pick(self.rng, WHEN[tense])
            english, german = f"{when[0]} {clause.english}", f"{when[1]} {clause.inverted}"
        elif self.clauses == 1:
            pass
        elif kind < 0.38:
            word = _pick(self.rng, SUBORDINATE)
            other = self._clause("present" if word in SUBORDINATE[2:] and tense == "future" else tense)
            english, german = f"{english} {word[0]} {other.english}", f"{german}, {word[1]} {other.subordinate}"
        elif kind < 0.46:
            word = WHEN_ONCE if tense == "past" else IF
            other = self._clause("past" if tense == "past" else "present")
            english = f"{word[0]} {other.english}, {clause.english}"
            german = f"{word[1]} {other.subordinate}, {clause.inverted}"
        elif kind < 0.56:
            word, other = _pick(self.rng, COORDINATE), self._clause(tense)
            english, german = f"{english}, {word[0]} {other.english}", f"{german}, {word[1]} {other.german}"
        elif kind < 0.66:
            main = self._predicate("THINK", self._subject(), tense)
            english = f"{main.english} {THAT[0]} {clause.english}"
            german = f"{main.german}, {THAT[1]} {clause.subordinate}"
        # A relative clause at the end has one comma only.
        german = german.replace(",,", ",").removesuffix(",")
        return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark

    def _noun(self, kind: str) -> Noun:
        """Draw a noun of a kind; containers and other things include compounds."""
        rng = self.rng
        if kind == "place":
            return self.places.draw(rng)
        if kind in ("people", "beings"):
            return (self.people if kind == "people" else self.beings).draw(rng)
        if kind in ("food", "readable"):
            return (self.food if kind == "food" else self.readable).draw(rng)
        sort = rng.random()
        if kind == "container":
            # Only doors, windows and gates of a site open.
            if sort < 0.4:
                english, german = self.sites.draw(rng)
                heads = [head for head in self.heads["site"].items if head.english in ("door", "window", "gate")]
                return _compound(german, _pick(rng, heads), english) if heads else self.containers.draw(rng)
            return self.containers.draw(rng)
        if sort < 0.16:
            english, german = self.sites.draw(rng)
            return _compound(german, self.heads["site"].draw(rng), english)
        if sort < 0.26:
            english, german = self.sites.draw(rng)
            opening, first = _pick(rng, self.openings)
            return _compound(german + first.lower(), self.heads["opening"].draw(rng), f"{english} {opening}")
        if sort < 0.36:
            english, german = self.materials.draw(rng)
            return _compound(german, self.heads["material"].draw(rng), english)
        return (self.containers if sort < 0.5 else self.things).draw(rng)

    def _noun_phrase(self, kind: str) -> NounPhrase:
        if kind in ("people", "beings") and self.rng.random() < 0.15:
            name = self.names.draw(self.rng)
            return NounPhrase(name, (name, name, name), "3")
        noun, plural, sort = self._noun(kind), self.rng.random() < 0.3, self.rng.random()
        english, stems = self._adjectives(being=kind in ("people", "beings"))
        gender = "p" if plural else noun.gender
        article, determiner, endings = "", ("", "", ""), AFTER_INDEFINITE[gender]
        if sort < 0.6:
            article, determiner, endings = "the", DEFINITE[gender], AFTER_DEFINITE[gender]
        elif sort < 0.75:
            article, mine = _pick(self.rng, POSSESSIVES)
            determiner = _three(mine + ending for ending in INDEFINITE[gender])
        elif not plural:
            article = "an" if (english or noun.english)[0] in "aeiou" else "a"
            determiner = _three("ein" + ending for ending in INDEFINITE[gender])
        else:
            endings = BARE_PLURAL
            if sort < 0.9:
                article, number = _pick(self.rng, NUMBERS)
                determiner = (number, number, number)
        german = (
            _words(determiner[case], *(stem + endings[case] for stem in stems), noun.form(case, plural))
            for case in CASES
        )
        form = noun.englishes if plural else noun.english
        return NounPhrase(_words(article, english, form), _three(german), "p" if plural else "3", gender)

    def _adjectives(self, being: bool) -> tuple[str, list[str]]:
        """Return up to two adjectives: in English, and their stems in German."""
        english: list[str] = []
        german: list[str] = []
        while self.rng.random() < 0.3 and len(english) < 2:
            adjective, compared = self.adjectives[being].draw(self.rng), self.rng.random() < 0.15
            if compared and adjective.comparative and not english:
                return adjective.comparative, [adjective.german_comparative]
            if adjective.english not in english:
                english.append(adjective.english)
                german.append(adjective.german)
        return " ".join(english), german

    def _subject(self) -> NounPhrase:
        if self.rng.random() < 0.25:
            english, german, person = _pick(self.rng, PRONOUNS)
            return NounPhrase(english, (german, german, german), person)
        return self._noun_phrase("people" if self.rng.random() < 0.75 else "beings")

    def _clause(self, tense: str) -> Clause:
        """Return a clause: a subject, a verb with its objects, and perhaps how often and where."""
        subject = self._subject()
        if self.clauses > 1 and subject.gender and self.rng.random() < 0.06:
            subject = self._with_relative_clause(subject)
        kinds = (
            "HANDLE",
            "HANDLE",
            "HANDLE",
            "OPEN",
            "OPEN",
            "MEET",
            "MEET",
            "HELP",
            "GIVE",
            "ACT",
            "ACT",
            "EAT",
            "READ",
        )
        return self._predicate(_pick(self.rng, kinds), subject, tense)

    def _with_relative_clause(self, subject: NounPhrase) -> NounPhrase:
        """Return "the baker who arrived", "der Bäcker, der ankam,"."""
        pronoun = DEFINITE[subject.gender][NOMINATIVE]
        relative = self._predicate("ACT", NounPhrase("who", (pronoun,) * 3, subject.person), "past")
        return NounPhrase(
            f"{subject.english} {relative.english}",
            _three(f"{german}, {relative.subordinate}," for german in subject.german),
            subject.person,
        )

    def _predicate(self, kind: str, subject: NounPhrase, tense: str) -> Clause:
        rng = self.rng
        verb = self.verbs[kind].draw(rng)
        objects: list[str] = []
        german_objects: list[str] = []
        if kind in ("MEET", "HELP"):
            person = self._noun_phrase("beings")
            objects, german_objects = [person.english], [person.german[ACCUSATIVE if kind == "MEET" else DATIVE]]
        elif kind in ("HANDLE", "OPEN", "EAT", "READ", "GIVE"):
            if kind == "GIVE":
                person = self._noun_phrase("people")
                objects, german_objects = [person.english], [person.german[DATIVE]]
            sort = {"OPEN": "container", "EAT": "food", "READ": "readable"}.get(kind, "thing")
            thing = self._noun_phrase(sort)
            objects.append(thing.english)
            german_objects.append(thing.german[ACCUSATIVE])
        often = _pick(rng, OFTEN) if kind != "THINK" and rng.random() < 0.12 else ("", "")
        # "gibt dem Kind oft das Buch"
        german_objects.insert(len(german_objects) - 1 if len(german_objects) > 1 else 0, often[1])
        where = self._where() if kind not in ("THINK", "GIVE") and rng.random() < 0.25 else ("", "")
        particle = verb.particle
        # "looks for the key", "gives the key back"
        after = particle in ("for", "at", "to", "over") and verb.prefix != "um"
        tail = [particle, *objects] if after else [*objects, particle]
        finite = verb.english(tense, subject.person)
        auxiliary, _, base = finite.rpartition(" ")
        english = _words(subject.english, auxiliary, often[0], base, *tail, where[0])
        does = auxiliary or ("did" if tense == "past" else "does" if subject.person == "3" else "do")
        question = _words(does, subject.english, often[0], verb.base, *tail, where[0])
        rest = _words(*german_objects, where[1])
        if tense == "future":
            will = _WILL[subject.person]
            return Clause(
                english, question, subject.german[0], will, rest, f"{verb.infinitive} {will}", verb.infinitive
            )
        form = verb.german(tense, subject.person)
        return Clause(english, question, subject.german[0], form, rest, verb.prefix + form, verb.prefix)

    def _where(self) -> tuple[str, str]:
        """Return a place or company: "in the garden", "im Garten"."""
        sort = self.rng.random()
        if sort < 0.5:
            place = self._noun_phrase("place")
            german = f"in {place.german[DATIVE]}"
            return f"in {place.english}", f"im{german[6:]}" if german.startswith("in dem ") else german
        if sort < 0.75:
            place, (english, german) = self._noun_phrase("place"), _pick(self.rng, WHERE)
            return f"{english} {place.english}", f"{german} {place.german[DATIVE]}"
        person = self._noun_phrase("people")
        if sort < 0.9:
            return f"with {person.english}", f"mit {person.german[DATIVE]}"
        return f"without {person.english}", f"ohne {person.german[ACCUSATIVE]}"


def _three(forms: Iterator[str] | Sequence[str]) -> tuple[str, str, str]:
    nominative, accusative, dative = forms
    return nominative, accusative, dative


def sentence_pairs(seed: int, stems: int = STEMS, clauses: int = 2) -> Iterator[tuple[str, str]]:
    """Yield (English sentence, German sentence) for ``seed`` without end, no English sentence twice.

    ``stems``, ``clauses``: as in Language.
    """
    language = Language(seed, stems, clauses)
    seen = set()
    while True:
        source, target = language.sentence()
        if source not in seen:
            seen.add(source)
            yield source, target
