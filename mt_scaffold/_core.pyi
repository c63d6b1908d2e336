"""The native core of mt_scaffold (built from mt_scaffold/core/)."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypedDict

from typing_extensions import disjoint_base

from mt_scaffold.segment.draw import Draw

# The size in bytes of the longest token that learning makes, with its end-of-word marker.
LONGEST_TOKEN: int

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

class _Documents(Protocol):
    # Returns None at the end.
    def read_documents(self) -> list[bytes] | None: ...

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

# nanobind's metaclass.
class _Class(type): ...

# A name for error messages, with a file descriptor, the bytes already read from a descriptor and the descriptor, the
# input's bytes, or an object to read from.
_Input = tuple[str, int | tuple[bytes, int] | bytes | _Readable | _Documents]
_Output = tuple[str, int | _Writable]
# Called with the number of bytes read or merges learned so far.
_Progress = Callable[[int], object] | None

class _Learned(TypedDict):
    codes: bytes
    restored: int
    exhausted: bool
    # A pair was passed over because its token would have more than LONGEST_TOKEN bytes.
    limited: bool

@disjoint_base
class WordCounts(metaclass=_Class):
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def total(self) -> int: ...
    # Lines with at least one word; 0 unless a text was counted.
    def lines(self) -> int: ...
    # The UTF-8 bytes of all words.
    def word_bytes(self) -> int: ...
    # The distinct base symbols: word-internal, word-final. Without an end-of-word marker, all bytes and 0.
    def base_symbols(self, bytes: bool = False, end_of_word: bool = True) -> tuple[int, int]: ...
    def items(self) -> list[tuple[str, int]]: ...
    # The words as bytes, which a pre-tokeniser's words are.
    def byte_items(self) -> list[tuple[bytes, int]]: ...
    def add(self, other: WordCounts) -> None: ...
    def format_vocabulary(self) -> bytes: ...

@disjoint_base
class Pretokeniser(metaclass=_Class):
    # split returns where the words of a document end; without it, name is one of the core's.
    def __init__(
        self, name: str, split_digits: bool = False, split: Callable[[bytes], list[int]] | None = None
    ) -> None: ...
    def split(self, document: bytes) -> list[bytes]: ...
    # Where any document that begins with `text` may be cut in two without changing its words; 0: nowhere.
    def last_certain_cut(self, text: bytes, searched: int = 0) -> int: ...

# Counts the words between spaces that end in a separator; first: the file and line of the first, empty for none.
@disjoint_base
class WordEndings(metaclass=_Class):
    def __init__(self, separator: str | bytes) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def first(self) -> str: ...

# Words counted or read from count files, in memory or on disk.
@disjoint_base
class CountedWords(metaclass=_Class):
    def __init__(self, max_memory: int, folder: str) -> None: ...
    def bytes_on_disk(self) -> int: ...
    # Opens count files, which must stay open until one of the calls below uses them up; returns their headers.
    def open(self, inputs: Sequence[_Input]) -> list[_Header]: ...
    # Merges the open count files into one on disk, so that they can be closed.
    def set_aside(self, progress: _Progress = None) -> None: ...
    # Writes a count file; returns the numbers of word types and of words.
    def write(self, output: _Output, header: _Header, progress: _Progress = None) -> tuple[int, int]: ...
    # Uses up the words; returns the kept ones and, of the dropped ones, types, occurrences and the error of a pair.
    def load(
        self, header: _Header, prune: int = 1, max_memory: int = 0, progress: _Progress = None
    ) -> tuple[WordCounts, tuple[int, int, int]]: ...

def count_words(
    inputs: Sequence[_Input],
    workers: int = 1,
    progress: _Progress = None,
    # Cuts each line, without its LF, into words, which may be any bytes.
    pretokeniser: Pretokeniser | None = None,
    # Words need not be UTF-8.
    any_bytes: bool = False,
    # Each input is one document, LFs included.
    whole_inputs: bool = False,
    endings: WordEndings | None = None,
    # About as many bytes (0: no limit), with temporary files in `folder`.
    max_memory: int = 0,
    folder: str = "",
) -> CountedWords: ...
def read_word_counts(inputs: Sequence[_Input], progress: _Progress = None, any_bytes: bool = False) -> WordCounts: ...

# Called after each step of learning with left and right (empty if nothing was merged), the frequency of the pair, that
# of the queue's head, those of left and right if they became scaffold or were removed, and the token that came back.
_OnStep = Callable[[str, str, int, int | None, int | None, int | None, tuple[str, int] | None], object] | None

# Whether symbols are bytes, the pre-tokeniser ("spaces", a name or a pattern), whether digits are split.
_Header = tuple[bool, str, bool]

# Uses up the counts, which frees their memory.
def learn(
    counts: WordCounts,
    algorithm: str,
    symbols: int,
    min_frequency: int,
    on_step: _OnStep = None,
    progress: _Progress = None,
    header: _Header = ...,
    threshold: float = 0.9,
    # A codes file whose merges come first, with the splits of PickyBPE; for BPE they count among the symbols. The marks
    # of its scaffold tokens are dropped.
    given: bytes | None = None,
) -> _Learned: ...

# Symbols that are bytes are in GPT-2's notation, here and in what learn() reports.
def parse_codes(text: bytes, name: str = "codes", merges: int = -1) -> list[tuple[str, str, bool]]: ...

# The number of merges before each split, the token and its pieces.
def parse_splits(text: bytes, name: str = "codes", merges: int = -1) -> list[tuple[int, str, list[str]]]: ...

# The header, and whether the codes are of PickyBPE.
def parse_header(text: bytes, name: str = "codes") -> tuple[bool, str, bool, bool]: ...
def bytes_to_notation(bytes: bytes) -> str: ...
def notation_to_bytes(notation: str) -> bytes: ...

@disjoint_base
class Segmenter(metaclass=_Class):
    def __init__(
        self,
        codes: bytes,
        separator: str,
        name: str = "codes",
        merges: int = -1,
        vocabulary: set[str] | set[bytes] | None = None,
    ) -> None: ...
    # Without an end-of-word marker: the notation of the 256 bytes in order, then of the normal merged tokens by rank.
    def surface_forms(self, isolates: bool = False) -> list[str]: ...

@disjoint_base
class Applier(metaclass=_Class):
    def __init__(
        self,
        segmenter: Segmenter,
        isolate: Callable[[str], list[tuple[str, bool]]] | Callable[[bytes], list[tuple[bytes, bool]]] | None = None,
        # Subwords with the separator; without an end-of-word marker, the bytes of tokens.
        dictionary: dict[str, int] | dict[bytes, int] | None = None,
        unknown: int = 0,
        max_words: int = ...,
        max_bytes: int = ...,
        # Needed with codes whose pre-tokeniser is a pattern.
        pretokeniser: Pretokeniser | None = None,
    ) -> None: ...
    def apply(
        self,
        input: _Input,
        output: _Output,
        workers: int = 1,
        draw: Draw | None = None,
        progress: _Progress = None,
        endings: WordEndings | None = None,
    ) -> None: ...
    # Without draws and keyword arguments, to save time.
    def segment_plain(self, arg0: str | bytes, arg1: bool, /) -> str: ...
    def segment_line(
        self,
        line: str | bytes,
        keep_margins: bool = True,
        draw: Draw | None = None,
        index: int = 0,
    ) -> str: ...
    # Each word as it is, neither split at spaces nor pre-tokenised.
    def segment_words(
        self,
        words: Sequence[str] | Sequence[bytes],
        draw: Draw | None = None,
    ) -> str: ...
    # The ids (int32) and, for each line, the index of its first id (int64); the last is the number of ids.
    def ids(
        self,
        lines: Sequence[str] | Sequence[bytes],
        indices: Sequence[int] = ...,
        draw: Draw | None = None,
    ) -> tuple[bytes, bytes]: ...
    def count_subwords(self, counts: WordCounts) -> WordCounts: ...
    # In no particular order.
    def reachable(self, counts: WordCounts, draw: Draw | None = None) -> list[str]: ...

# A text that is not empty, as Ids with `metaspace` and this `prefix` encode it.
def with_spaces(text: bytes, prefix: int) -> bytes: ...

# The ids of codes whose symbols are bytes. `special` has a byte for each special token, a Special of
# mt_scaffold.segment.ids.
@disjoint_base
class Ids(metaclass=_Class):
    def __init__(
        self,
        segmenter: Segmenter,
        pretokeniser: Pretokeniser | None,
        special_tokens: Sequence[str] = ...,
        multiple: int = 1,
        # The ids of bytes, normal merged tokens and special tokens, -1 for none; empty for their order.
        numbers: Sequence[int] = ...,
        # Ids that only decoding knows.
        others: Sequence[tuple[int, bytes]] = ...,
        # The id of subwords without one.
        unknown: int = -1,
        # U+2581 means a space; `prefix`: 1, a space comes before the text, 2, unless it begins with one; `prefix_each`:
        # also before what follows a special token; `after_prefix`: the ids of special tokens that it comes before if a
        # text begins with one.
        metaspace: bool = False,
        prefix: int = 0,
        prefix_each: bool = False,
        after_prefix: Sequence[int] = ...,
    ) -> None: ...
    @property
    def n_vocab(self) -> int: ...
    @property
    def special_ids(self) -> list[int]: ...
    def tokens(self) -> list[bytes]: ...
    # All special tokens are refused, nothing is drawn.
    def encode_plain(self, arg: str | bytes, /) -> list[int]: ...
    # The ids as uint32; without `special`, all special tokens are refused.
    def encode_bytes(
        self, text: str | bytes, special: bytes | None = None, draw: Draw | None = None, index: int = 0
    ) -> bytearray: ...
    def encode(self, text: str | bytes, special: bytes, draw: Draw | None = None, index: int = 0) -> list[int]: ...
    # The ids, of `width` bytes, and their offsets as in Applier.ids() (int64). `append`: an id after each text.
    def encode_batch(
        self,
        texts: Sequence[str] | Sequence[bytes],
        special: bytes,
        indices: Sequence[int] = ...,
        draw: Draw | None = None,
        workers: int = 1,
        width: int = 4,
        append: int = -1,
    ) -> tuple[memoryview, bytearray]: ...
    # Writes the ids of each line, and the number of ids of each (int32); returns the numbers of
    # lines and ids, and the bytes of the lines.
    def encode_lines(
        self,
        input: _Input,
        ids: _Output,
        sizes: _Output,
        special: bytes,
        first: int = 0,
        width: int = 4,
        append: int = -1,
        draw: Draw | None = None,
        workers: int = 1,
        progress: _Progress = None,
    ) -> tuple[int, int, int]: ...
    # Ids are a sequence of integers or a buffer of them.
    def decode(self, ids: Any) -> bytes: ...
    def decode_with_starts(self, ids: Any) -> tuple[bytes, list[int]]: ...
    # `sizes`: the number of ids of each document; `end` follows each; a final id `strip` is left out.
    def decode_documents(
        self, ids: Any, sizes: Sequence[int], end: bytes = ..., strip: int = -1, number: int = 1
    ) -> bytes: ...

# Lists of `before`, values[offsets[i]:offsets[i + 1]] (uint32 or int64), and `after`; equal integers are one object.
def list_rows(values: Any, offsets: Any, before: Sequence[int], after: Sequence[int]) -> list[list[int]]: ...
