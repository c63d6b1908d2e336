"""The plain Python reference of the native core, to be read alongside the paper's Algorithms 1 and 2.

``mt_scaffold.analysis.reference_picky`` segments as PickyBPE does; tests/reference learns it and other methods.

Everything here is written to be checked by eye, not to be fast: the tests hold the native core to it.
Frequencies are recounted and the queue is rebuilt in every iteration, and a word is segmented one step at a time.

A symbol is a string. The last symbol of a word carries the suffix ``</w>``, as in subword-nmt's format 0.2, unless
words come from a pre-tokeniser (``end_of_word=False``). If symbols are bytes, a word is a string of the characters
U+0000 to U+00FF, each of which represents the byte of its value (``data.decode("latin-1")``); nothing else differs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from mt_scaffold.corpus.text import END_OF_WORD, LINE_MARGIN, SEPARATOR, is_base_symbol, words_of
from mt_scaffold.methods.trace import Step

Pair = tuple[str, str]


def base_symbols(word: str, end_of_word: bool = True) -> list[str]:
    """Return the characters of a word, the last one marked as word-final."""
    return [*word[:-1], word[-1] + END_OF_WORD] if end_of_word else list(word)


def replace_all(symbols: list[str], pair: Pair) -> list[str]:
    """Replace every occurrence of a pair by its concatenation, from the left and without overlap."""
    merged, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


# ---------------------------------------------------------------------------------------------------------
# Pre-tokenisation: documents to words
# ---------------------------------------------------------------------------------------------------------


def pretokenise(document: bytes, pattern: str, split_digits: bool = False) -> list[bytes]:
    """Cut a document into the matches of a pattern and the gaps between them; concatenated, they are the document.

    pattern: in the syntax of the package ``regex``, such as those of ``mt_scaffold.corpus.pretokenise.PATTERNS``.
    split_digits: every character of Unicode's class N becomes a separate word afterwards.

    >>> pretokenise(b"am 24. ", r"[0-9]+")
    [b'am ', b'24', b'. ']
    """
    import regex

    # Bytes that are not UTF-8 become characters of no class.
    text = document.decode("utf-8", "surrogateescape")
    words, end = [], 0
    for match in regex.finditer(pattern, text):
        if match.group():
            words += [text[end : match.start()], match.group()]
            end = match.end()
    words.append(text[end:])
    if split_digits:
        words = [part for word in words for part in regex.findall(r"\p{N}|\P{N}+", word)]
    return [word.encode("utf-8", "surrogateescape") for word in words if word]


# ---------------------------------------------------------------------------------------------------------
# Algorithm 1: learning
# ---------------------------------------------------------------------------------------------------------


@dataclass
class Learned:
    """The result of learning: the merges in order, every step, and the tokens that are scaffold at the end."""

    merges: list[Pair] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scaffold: set[str] = field(default_factory=set)
    restored: int = 0
    exhausted: bool = False  # no pair reached the minimum frequency before N was reached


def learn_merges(
    word_counts: Mapping[str, int],
    symbols: int,
    min_frequency: int = 2,
    algorithm: str = "scaffold",
    end_of_word: bool = True,
) -> Learned:
    """Learn merges from word counts with Algorithm 1 or, with ``algorithm="bpe"``, original BPE.

    ``symbols`` is N: the number of merges for BPE, of normal merged tokens for Scaffold-BPE.
    """
    text = [(base_symbols(word, end_of_word), count) for word, count in word_counts.items()]
    normal: set[str] = set()  # V without the base symbols
    waiting: dict[str, Pair] = {}  # S: scaffold token → the pair that first made it
    first_pair: dict[str, Pair] = {}
    learned = Learned()

    while (len(learned.merges) if algorithm == "bpe" else len(normal)) < symbols:
        head = _head(_queue(text, waiting))
        if head is None or head[0] < min_frequency:
            learned.exhausted = True
            break
        count, (a, b), token = head

        if token is not None:  # a scaffold token returned to the head: it is normal again
            del waiting[token]
            normal.add(token)
            learned.restored += 1
            learned.steps.append(Step("", "", 0, None, (), (token, count)))
            continue

        t = a + b
        learned.merges.append((a, b))
        text = [(replace_all(word, (a, b)), count) for word, count in text]
        if algorithm == "bpe":
            learned.steps.append(Step(a, b, count, None, (), None))
            continue

        first_pair.setdefault(t, (a, b))
        came_back = waiting.pop(t, None) is not None
        if not is_base_symbol(t, end_of_word):
            normal.add(t)

        frequency = token_frequencies(text)
        head = _head(_queue(text, waiting))
        head_frequency = head[0] if head else 0
        marked = []
        for child in (a, b):
            if child in normal and frequency[child] < head_frequency:
                normal.remove(child)
                waiting[child] = first_pair[child]
                marked.append((child, frequency[child]))
        returned = (t, frequency[t]) if came_back else None
        learned.steps.append(Step(a, b, count, head_frequency, tuple(marked), returned))

    learned.scaffold = set(waiting)
    return learned


# Words in their current segmentation, with their counts.
LearningText = list[tuple[list[str], int]]


def token_frequencies(text: LearningText) -> Counter[str]:
    """Return how often each token occurs in the text."""
    frequency: Counter[str] = Counter()
    for word, count in text:
        for symbol in word:
            frequency[symbol] += count
    return frequency


# A merged token has at most this many bytes of UTF-8, ``</w>`` included (docs/semantics.md); the paper has no limit.
LONGEST_TOKEN = 2048


def pair_frequencies(text: LearningText) -> Counter[Pair]:
    """Return how often each pair of adjacent tokens occurs, with overlap, unless it would make too long a token."""
    pairs: Counter[Pair] = Counter()
    for word, count in text:
        for pair in itertools.pairwise(word):
            pairs[pair] += count
    sizes = {pair: len("".join(pair).encode("utf-8", "surrogatepass")) for pair in pairs}
    return Counter({pair: count for pair, count in pairs.items() if sizes[pair] <= LONGEST_TOKEN})


QueueEntry = tuple[int, Pair, str | None]


def _queue(text: LearningText, waiting: Mapping[str, Pair]) -> list[QueueEntry]:
    """Return the queue Q: pairs, and scaffold tokens waiting to return, each with its frequency and tie-break."""
    frequency = token_frequencies(text)
    queue: list[QueueEntry] = [(count, pair, None) for pair, count in pair_frequencies(text).items()]
    queue += [(frequency[token], pair, token) for token, pair in waiting.items() if frequency[token] > 0]
    return queue


def _head(queue: list[QueueEntry]) -> QueueEntry | None:
    """Return the most frequent entry; ties go to the greatest pair of strings, then to the waiting token."""
    return max(queue, key=lambda entry: (entry[0], entry[1], entry[2] is not None), default=None)


# ---------------------------------------------------------------------------------------------------------
# Algorithm 2: applying
# ---------------------------------------------------------------------------------------------------------

Survives = Callable[[], bool]


def always() -> bool:
    """Return True: without dropout every merge survives."""
    return True


class ReferenceBPE:
    """Segments words with learned codes, one step at a time."""

    def __init__(
        self,
        merges: Iterable[Pair],
        scaffold: Iterable[str] = (),
        separator: str = SEPARATOR,
        vocabulary: set[str] | None = None,
        end_of_word: bool = True,
    ) -> None:
        listed = list(merges)
        self.scaffold = set(scaffold)
        self.separator = separator
        self.vocabulary = vocabulary
        self.end_of_word = end_of_word
        self.rank: dict[Pair, int] = {}
        self.derivations: dict[str, list[Pair]] = {}
        for position, pair in enumerate(listed):
            self.rank.setdefault(pair, position)
        # subword-nmt splits a string by the pair whose last mention in the file comes first.
        last_mention = {pair: position for position, pair in enumerate(listed)}
        for pair in sorted(self.rank, key=lambda pair: last_mention[pair]):
            self.derivations.setdefault(pair[0] + pair[1], []).append(pair)
        self._demolished: dict[str, list[str]] | None = None

    # -- scaffolding

    def scaffolding(self, symbols: list[str], survives: Survives = always) -> list[str]:
        """Merge until no pair is left: each step takes the lowest rank among the pairs that survive dropout."""
        while True:
            candidates = [(rank, i) for rank, i in self.pairs_in_codes(symbols) if survives()]
            if not candidates:
                return symbols
            symbols = self.step(symbols, candidates)

    def pairs_in_codes(self, symbols: list[str]) -> list[tuple[int, int]]:
        """Return the rank and position of each adjacent pair that is in the codes."""
        pairs = enumerate(itertools.pairwise(symbols))
        return [(self.rank[pair], i) for i, pair in pairs if pair in self.rank]

    def step(self, symbols: list[str], candidates: list[tuple[int, int]]) -> list[str]:
        """Replace the candidates of the lowest rank from the left, without overlap."""
        lowest, _ = min(candidates)
        merged: list[str] = []
        i = 0
        for rank, position in candidates:
            if rank == lowest and position >= i:
                merged += [*symbols[i:position], symbols[position] + symbols[position + 1]]
                i = position + 2
        return merged + symbols[i:]

    # -- demolishing

    def _cuts_end_of_word(self, pair: Pair) -> bool:
        """Return whether a pair splits the letters of ``</w>``: possible only in a text that spells out ``</w>``."""
        return self.end_of_word and (pair[0] + pair[1]).endswith(END_OF_WORD) and len(pair[1]) <= len(END_OF_WORD)

    def _is_base(self, symbol: str) -> bool:
        return len(symbol) == 1 or (self.end_of_word and len(symbol.removesuffix(END_OF_WORD)) == 1)

    def demolish(self, token: str) -> list[str]:
        """Return the shortest sequence of normal tokens and base symbols that a scaffold token's merges allow."""
        if token not in self.scaffold:
            return [token]
        if self._demolished is None:
            self._demolished = {}
            # From short to long, so that both children are known: recursion could exceed Python's stack.
            for each in sorted(self.scaffold & self.derivations.keys(), key=len):
                left, right = self.children(each)
                self._demolished[each] = self.demolish(left) + self.demolish(right)
        return self._demolished[token]

    def children(self, token: str) -> Pair:
        """Return the two symbols that a scaffold token is demolished into, one level down.

        If several merges make the string, the shortest result wins, then the earliest merge. A merge of a symbol that
        no merge makes, as codes by hand may have, comes last.
        """

        def preference(pair: Pair) -> tuple[bool, bool, int, int]:
            never = any(each not in self.derivations and not self._is_base(each) for each in pair)
            length = len(self.demolish(pair[0])) + len(self.demolish(pair[1]))
            return self._cuts_end_of_word(pair), never, length, self.rank[pair]

        return min(self.derivations[token], key=preference)

    # -- the vocabulary filter

    def _split(self, symbol: str, final: bool) -> Iterable[str]:
        """Undo merges until every piece is a normal token in the vocabulary, or cannot be split."""
        assert self.vocabulary is not None
        pieces, waiting = [], [(symbol, final)]
        while waiting:
            symbol, final = waiting.pop()
            surface = symbol.removesuffix(END_OF_WORD) if final else symbol + self.separator
            pairs = self.derivations.get(symbol, [])
            if final:
                pairs = [pair for pair in pairs if not self._cuts_end_of_word(pair)]
            if not pairs or (symbol not in self.scaffold and surface in self.vocabulary):
                pieces.append(symbol)
                continue
            left, right = pairs[0]
            waiting += [(right, final), (left, False)]
        return pieces

    # -- a word, a line

    def segment_word(self, word: str, survives: Survives = always) -> list[str]:
        """Return the surface forms of a word's subwords, without separators."""
        symbols = self.scaffolding(base_symbols(word, self.end_of_word), survives)
        symbols = [piece for symbol in symbols for piece in self.demolish(symbol)]
        if self.vocabulary and len(word) > 1:
            inner, last = symbols[:-1], symbols[-1]
            symbols = [piece for symbol in inner for piece in self._split(symbol, False)]
            symbols += self._split(last, True)
        return [*symbols[:-1], self.without_mark(symbols[-1])]

    def without_mark(self, symbol: str) -> str:
        """Return a word's last symbol as the text has it."""
        return symbol.removesuffix(END_OF_WORD) if self.end_of_word else symbol

    def segment(self, sentence: str, survives: Survives = always) -> str:
        """Return a sentence with its words segmented: all pieces except a word's last carry the separator."""
        pieces = []
        for word in words_of(sentence):
            *inner, last = self.segment_word(word, survives)
            pieces += [piece + self.separator for piece in inner] + [last]
        return " ".join(pieces)

    def process_line(self, line: str, survives: Survives = always) -> str:
        """As ``segment``, but keep the CRs, LFs and spaces at either end of the line."""
        stripped = line.strip(LINE_MARGIN)
        if not stripped:
            return line
        start = len(line) - len(line.lstrip(LINE_MARGIN))
        return line[:start] + self.segment(stripped, survives) + line[start + len(stripped) :]
