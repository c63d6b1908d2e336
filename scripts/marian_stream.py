"""Write parallel text for ``marian --train-sets stdin``, reordered and resampled with BPE-dropout in every epoch.

    python scripts/marian_stream.py --codes codes --input train.en train.de --dropout 0.1 --seed 1 |
        marian --train-sets stdin --shuffle batches ...

Each line is a source sentence, a tab and its target sentence. The source sentences of epoch E are those of
``mt-scaffold apply-bpe --epoch E --dropout D --seed 2S``, the target sentences those with the seed 2S + 1, so that a
word on both sides is not segmented alike. The order depends only on S and E.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from mt_scaffold import apply_bpe
from mt_scaffold.errors import MTScaffoldError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and write the stream to standard output; return the exit status."""
    parser = argparse.ArgumentParser(description="Write parallel text for `marian --train-sets stdin`.")
    parser.add_argument("--input", "-i", nargs=2, required=True, metavar="PATH", help="source and target, tokenised")
    parser.add_argument("--codes", "-c", nargs="+", required=True, metavar="PATH", help="joint codes, or each side's")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P", help="of BPE-dropout (default: none)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of order and dropout (default: 1)")
    parser.add_argument("--first-epoch", type=int, default=1, metavar="E", help="to resume a training (default: 1)")
    parser.add_argument("--epochs", type=int, metavar="N", help="stop after N epochs (default: when Marian ends)")
    options = parser.parse_args(arguments)
    try:
        if len(options.codes) > 2:
            raise UsageError(f"--codes: give one joint file, or one per side, not {len(options.codes)} files")
        if options.epochs is not None and options.epochs < 1:
            raise UsageError(f"the number of epochs must be positive, not {options.epochs}")
        numbers = itertools.count(options.first_epoch)
        for epoch in itertools.islice(numbers, options.epochs):
            pairs = epoch_pairs(options.input, options.codes, options.dropout, options.seed, epoch)
            sys.stdout.buffer.writelines(pairs)
            sys.stdout.buffer.flush()
    except MTScaffoldError as error:
        print(f"marian_stream.py: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # Marian has ended, which is normal, and its status counts; this keeps Python from flushing stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"marian_stream.py: standard output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def epoch_pairs(
    texts: Sequence[str | Path], codes: Sequence[str | Path], dropout: float, seed: int, epoch: int
) -> Iterator[bytes]:
    """Return the lines of one epoch, in its order: the subwords of source and target with a tab between them.

    texts: source and target, a sentence per line. codes: a joint codes file, or one per side. The segmented text of the
    epoch is held in memory, as Marian holds text that it shuffles itself.

    Raises MTScaffoldError if the texts differ in length, contain a tab or are empty, and as ``apply_bpe`` does.
    """
    sides = []
    for side, text in enumerate(texts):
        segmented = BytesIO()
        number = epoch if dropout else 0
        apply_bpe(codes[side % len(codes)], text, segmented, dropout=dropout, seed=2 * seed + side, epoch=number)
        sides.append(_lines(segmented.getvalue(), text))
    source, target = sides
    if len(source) != len(target):
        raise MTScaffoldError(
            f"{texts[0]} has {len(source)} lines, {texts[1]} has {len(target)}; they must be parallel"
        )
    if not source:
        raise MTScaffoldError(f"{texts[0]} and {texts[1]}: no sentences, and Marian would wait for one; give text")
    # Python guarantees the same sequence in every version only for random().
    draws = random.Random(f"{seed} {epoch}")
    keys = [draws.random() for _ in source]
    return (b"%b\t%b\n" % (source[line], target[line]) for line in sorted(range(len(keys)), key=keys.__getitem__))


def _lines(segmented: bytes, text: str | Path) -> list[bytes]:
    lines = segmented.removesuffix(b"\n").split(b"\n") if segmented else []
    # Marian strips CR at the end of a line, but not before the tab.
    lines = [line.removesuffix(b"\r") for line in lines]
    if b"\t" in segmented:
        number = next(number for number, line in enumerate(lines, 1) if b"\t" in line)
        raise MTScaffoldError(f"{text}: line {number}: a tab, which separates source and target; replace it")
    return lines


if __name__ == "__main__":
    sys.exit(main())
