"""Words → a Unigram model (Kudo 2018), learned by SentencePiece from the same counted words as codes are."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping

from mt_scaffold.corpus.count import count_words
from mt_scaffold.corpus.files import PathLike, open_output, refuse_overwriting
from mt_scaffold.errors import MTScaffoldError, UsageError

UNIGRAM = "unigram"
# Far beyond what differs from the best segmentation, and far from where its products with scores overflow.
_LARGEST_ALPHA = 1_000_000
# What every word begins with in SentencePiece: its pieces hold it in place of a space.
WORD_START = "\u2581"
# What SentencePiece gives a meaning of its own, so that no piece can hold it: tab in older versions, U+001F in newer
# ones. It takes CRs off the end of its lines.
_UNKNOWN = "\u2585"
RESERVED = (WORD_START, _UNKNOWN, "\t", "\x1f", "\0", "\r", "<unk>")
# <unk>
_META_PIECES = 1
# A token of BPE may be as long as a word, but the seed vocabulary grows with this length.
_LONGEST_PIECE = 64
_LONGEST_LINE = 1 << 30
_WORDS_PER_LINE = 20


def check_alpha(alpha: float) -> float:
    """Return the exponent of the probabilities in sampling; UsageError where it is out of range."""
    if not 0 < alpha <= _LARGEST_ALPHA:
        raise UsageError(
            f"the alpha of sampling must be above 0, and {_LARGEST_ALPHA:,} at most, not {alpha}; give 0.1, for example"
        )
    return alpha


class TooFewPieces(MTScaffoldError):
    """The words have fewer pieces than were asked for; ``most``: how many symbols they have, 0 for no model at all."""

    def __init__(self, symbols: int, most: int) -> None:
        fewer = f"give at most {most}" if most else "there are too few words; give more text"
        super().__init__(f"unigram: {symbols} symbols are more than SentencePiece finds in these words; {fewer}")
        self.most = most


def learn_unigram(
    output: PathLike,
    symbols: int,
    paths: Iterable[PathLike],
    total_symbols: bool = False,
    num_workers: int | None = None,
) -> None:
    """Write a SentencePiece model with ``symbols`` pieces of more than one character, learned from texts of words.

    symbols: U+2581, which every word begins with, counts as a character of a piece. Beside them the model has every
    single character of the text, U+2581 and ``<unk>``. With ``total_symbols`` the single characters are among them.
    num_workers: threads that count the words. SentencePiece itself learns with one thread: the order of its sums
    depends on their number, and the model on that order. It reads the whole text into memory, and more besides.

    Words with anything that SentencePiece reserves (RESERVED) are left out, and counted on stderr.

    Source: Kudo 2018, section 3.2. Raises MTScaffoldError where a text cannot be read or is not UTF-8, and where the
    words do not have as many pieces; UsageError for a number of symbols below 1, and for an output that is an input.
    """
    paths = [*paths]
    refuse_overwriting([output], paths)
    with open_output(output) as stream:
        stream.write(
            unigram_model(dict(count_words(paths=paths, num_workers=num_workers).items()), symbols, total_symbols)
        )


def unigram_model(counts: Mapping[str, int], symbols: int, total_symbols: bool = False) -> bytes:
    """Return a model of counted words, as SentencePiece stores it; otherwise as ``learn_unigram``."""
    if symbols < 1:
        raise UsageError(f"--symbols {symbols}: give 1 or more")
    reserved = {word for word in counts if any(each in word for each in RESERVED)}
    if reserved:
        print(
            f"warning: {len(reserved)} words hold what SentencePiece reserves (U+2581, U+2585, U+001F, tab, CR, NUL or "
            "<unk>); they are not learned from",
            file=sys.stderr,
        )
    characters = {WORD_START}.union(*counts.keys() - reserved)
    return _learned(_lines(counts, reserved), len(characters), symbols, total_symbols)


def _lines(counts: Mapping[str, int], without: Container[str]) -> Iterator[str]:
    """Yield each word as often as it occurs, on lines of its own.

    SentencePiece takes as its first pieces the substrings of lines that different characters follow. A word that is
    followed by a space every time, as in a text of words, would not be one; here, the end of a line follows it, too.
    """
    for word, count in counts.items():
        if word not in without:
            for start in range(0, count, _WORDS_PER_LINE):
                yield " ".join([word] * min(_WORDS_PER_LINE, count - start))


def _learned(lines: Iterator[str], characters: int, symbols: int, total_symbols: bool) -> bytes:
    """Return the model, as SentencePiece stores it."""
    from sentencepiece import SentencePieceTrainer

    # In an order of their own, which decides the last digits of sums.
    ordered = sorted(lines)
    if not ordered:
        raise MTScaffoldError("there are no words in the input, so there is nothing to learn")
    beside = _META_PIECES + (0 if total_symbols else characters)
    if total_symbols and symbols <= characters:
        raise MTScaffoldError(
            f"unigram: the words have {characters} characters, which are among the {symbols} symbols (total_symbols); "
            "raise symbols"
        )
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            # Not words with their counts (input_format: tsv), which SentencePiece counts once each when it chooses its
            # first pieces.
            sentence_iterator=iter(ordered),
            model_writer=model,
            model_type="unigram",
            vocab_size=symbols + beside,
            hard_vocab_limit=True,
            character_coverage=1.0,
            byte_fallback=False,
            normalization_rule_name="identity",
            add_dummy_prefix=True,
            remove_extra_whitespaces=False,
            # Any part of a word may become a piece, as it may become a token of BPE.
            split_by_unicode_script=False,
            split_by_number=False,
            max_sentencepiece_length=_LONGEST_PIECE,
            max_sentence_length=_LONGEST_LINE,
            num_threads=1,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        if most := re.search(r"value <= (\d+)", str(error)):
            found, least = int(most[1]) - beside, characters + 1 if total_symbols else 1
            raise TooFewPieces(symbols, found if found >= least else 0) from None
        raise MTScaffoldError(f"unigram: SentencePiece cannot learn {symbols} symbols: {error}") from None
    return model.getvalue()
