"""A training → how well each of its tokens was trained, as a table of one line per token.

The indicators are those of Land and Bartolo 2024 ("Fishing for Magikarp", arXiv 2405.05417): for tied embeddings, the
cosine distance from the mean of unused tokens (``cosine_distances``), for others the norm of the input row. The lower,
the less trained. Their verification, which prompts a model to repeat a token, needs larger models than ours. We add the
counts, the tokens known to be unused, and the bits of the occurrences in the test sets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike, open_input, write_text
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.data_folder import is_padding
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID
from mt_scaffold.experiment.evaluation.losses.loss_split import LossSplit
from mt_scaffold.experiment.report.embeddings import SymbolRows, cosine_distances, symbol_rows
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.segment.draw import Draw
from mt_scaffold.segment.segmenter import Segmenter

if TYPE_CHECKING:
    import numpy

# The columns before those of each test set, ``occurrences:TEST`` and ``bits:TEST``.
COLUMNS = (
    *("side", "id", "token", "per_epoch", "target_per_epoch", "unused", "indicator", "percentile"),
    *("output_cosine_distance", "output_l2_distance", "output_norm", "input_norm"),
)
# Random segmentations are counted over several epochs, up to about this many sentences: one has too few rare tokens.
_DRAWN_SENTENCES, _MOST_EPOCHS = 1_000_000, 100
# Symbols that a model neither reads nor writes: its input begins with </s>, and padding is masked.
_NEVER = frozenset({"<s>", "<pad>"})


@dataclass(frozen=True)
class SideTokens:
    """The dictionary of one side, and how often each entry occurs in the training text of that side.

    entries: its names and counts, as ``read_dictionary`` returns them. counts: in an epoch, as the model reads it.
    resampled: whether the text is segmented at random, so that a token with count 0 may have been seen. unknown:
    whether the text can contain ``<unk>``.
    """

    entries: Sequence[tuple[str, int]]
    counts: Mapping[str, float]
    resampled: bool = False
    unknown: bool = True

    @property
    def symbols(self) -> list[str]:
        """The names of all ids, fairseq's own first."""
        return [*SPECIAL_SYMBOLS, *(form for form, _ in self.entries)]

    def unused(self, also: Sequence[SideTokens] = ()) -> list[int]:
        """Return the ids that occur neither in this side's text nor in that of others with the same dictionary."""
        sides = (self, *also)
        never = _NEVER if any(side.unknown for side in sides) else _NEVER | {"<unk>"}
        found = [number for number, name in enumerate(SPECIAL_SYMBOLS) if name in never]
        seen = {form for side in sides for form, count in side.counts.items() if count}
        sure = not any(side.resampled for side in sides)
        for number, (form, count) in enumerate(self.entries, len(SPECIAL_SYMBOLS)):
            if is_padding(form, count) or (sure and form not in seen):
                found.append(number)
        return found


def count_drawn(text: PathLike, segmenter: Segmenter, ids: Mapping[str, int], draw: Draw) -> dict[str, float]:
    """Return how often each subword of a dictionary occurs in an epoch of a text that is segmented at random.

    text: words. ids: subword → id. draw: with a seed. The result is the mean of up to 100 epochs, fewer for a large
    text. Raises MTScaffoldError if the text cannot be read.
    """
    import numpy

    encoder = segmenter.encoder(ids, UNKNOWN_ID)
    counts, sentences, epoch = numpy.zeros(len(SPECIAL_SYMBOLS) + len(ids), numpy.int64), 0, 0
    while not epoch or (sentences < _DRAWN_SENTENCES and epoch < _MOST_EPOCHS):
        epoch, number = epoch + 1, 0
        with open_input(text) as stream:
            while lines := stream.readlines(1 << 20):
                indices = range(number, number + len(lines))
                found, _ = encoder.ids_of([line.rstrip(b"\n") for line in lines], draw.at(epoch), indices)
                counts += numpy.bincount(found, minlength=len(counts))
                number += len(lines)
        sentences += number
    return {form: float(counts[number]) / epoch for form, number in ids.items()}


def write_trained_tokens(
    checkpoint: PathLike, sides: Mapping[str, SideTokens], losses: Sequence[PathLike], output: PathLike
) -> list[str]:
    """Write one line of CSV per token and side of a model, and return a remark for each side without indicators.

    sides: ``decoder``, and ``encoder`` if there is one. losses: the files of the training's ``LossSplit``, one per test
    set.

    ``side`` is ``source``, ``target``, or ``both`` if the rows are shared; empty for a language model. ``per_epoch`` is
    the number of occurrences in an epoch of the training text of the side, empty for fairseq's symbols;
    ``target_per_epoch`` those that the model learns to write, empty for a source with separate rows; ``unused`` is 1
    for the tokens that the distances are measured from; ``percentile`` is the share of the side's tokens with a lower
    ``indicator``. The output's columns are empty for a source with separate rows, all columns of rows for a model
    without one row per symbol.

    Raises MTScaffoldError if the rows are not those of the dictionaries, or a file is damaged.
    """
    rows = symbol_rows(checkpoint)
    splits = [read_result(LossSplit, path) for path in losses]
    names = ["target", "source"] if "encoder" in sides else [""]
    lines: list[dict[str, object]] = []
    decoder, encoder = sides["decoder"], sides.get("encoder")
    both = encoder is not None and "encoder" in rows and rows["encoder"].tied
    if both and encoder is not None:
        counts = {form: decoder.counts.get(form, 0) + encoder.counts.get(form, 0) for form, _ in decoder.entries}
        lines += _side("both", checkpoint, decoder, counts, decoder.unused([encoder]), rows.get("decoder"), splits)
    else:
        lines += _side(names[0], checkpoint, decoder, decoder.counts, decoder.unused(), rows.get("decoder"), splits)
    for line in lines:
        known = line["per_epoch"] != ""
        line["target_per_epoch"] = _shown(decoder.counts.get(str(line["token"]), 0)) if known else ""
    if encoder is not None and not both:
        lines += _side(names[1], checkpoint, encoder, encoder.counts, encoder.unused(), rows.get("encoder"), [])
    stream = io.StringIO()
    tests = [f"{of}:{split.test_set}" for split in splits for of in ("occurrences", "bits")]
    writer = csv.DictWriter(stream, [*COLUMNS, *tests], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_text(output, stream.getvalue())
    lacking = [name for name in sides if name not in rows]
    return [f"the {name} has no matrix with one row per symbol, so that indicators are empty" for name in lacking]


def _shown(count: float) -> str:
    """Return a count, with two decimals if it is not whole."""
    return f"{count:.2f}".removesuffix(".00")


def _side(
    name: str,
    checkpoint: PathLike,
    tokens: SideTokens,
    counts: Mapping[str, float],
    unused: Collection[int],
    rows: SymbolRows | None,
    splits: Sequence[LossSplit],
) -> list[dict[str, object]]:
    """Return the lines of one side."""
    symbols = tokens.symbols
    if rows is not None and len(rows.read) != len(symbols):
        raise MTScaffoldError(
            f"{checkpoint}: has {len(rows.read):,} rows of embeddings, but its dictionary {len(symbols):,} symbols; "
            "give the dictionary that it was trained with"
        )
    figures = {} if rows is None else _figures(rows, sorted(unused))
    own = [
        {number: (times, bits) for number, times, bits in zip(found.ids, found.occurrences, found.bits, strict=True)}
        for found in (split.tokens for split in splits)
    ]
    lines, without_use = [], set(unused)
    for number, symbol in enumerate(symbols):
        special = number < len(SPECIAL_SYMBOLS)
        line: dict[str, object] = {"side": name, "id": number, "token": symbol, "unused": int(number in without_use)}
        line["per_epoch"] = "" if special else _shown(counts.get(symbol, 0))
        line |= {column: f"{values[number]:.6g}" for column, values in figures.items()}
        for split, found in zip(splits, own, strict=True):
            occurrences, bits = found.get(number, (0, 0.0))
            line |= {f"occurrences:{split.test_set}": occurrences, f"bits:{split.test_set}": f"{bits:.6g}"}
        lines.append(line)
    return lines


def _figures(rows: SymbolRows, unused: Sequence[int]) -> dict[str, numpy.ndarray[Any, Any]]:
    """Return the columns of one side that are computed from its rows."""
    import numpy

    found = {"input_norm": numpy.linalg.norm(rows.read, axis=1)}
    indicator = found["input_norm"]
    if rows.written is not None:
        found["output_norm"] = numpy.linalg.norm(rows.written, axis=1)
        found["output_cosine_distance"] = cosine_distances(rows.written, unused)
        away = rows.written - rows.written[unused].mean(axis=0)
        found["output_l2_distance"] = numpy.linalg.norm(away, axis=1)
        indicator = found["output_cosine_distance"] if rows.tied else indicator
    # Only tokens that the model can read or write: of fairseq's symbols, </s>.
    real = [END_ID, *range(len(SPECIAL_SYMBOLS), len(indicator))]
    ordered = numpy.sort(indicator[real])
    found["percentile"] = 100 * numpy.searchsorted(ordered, indicator) / len(ordered)
    return {"indicator": indicator} | found
