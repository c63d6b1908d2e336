"""Measure how loose the bits per byte of the reference are: one segmentation against the sum over several.

python -m studies.reference_bound EXPERIMENT [--test-set NAME] [--sentences 200] [--samples 64] [--dropout 0.1]

-log2 of the probability of one segmentation is an upper bound of that of the text, whose probability is the sum over
all segmentations. The sum over some of them, drawn with BPE-dropout, lies in between, so that the printed difference is
a lower bound of the looseness. Sentences with <unk> in any system are left out for all.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy

from mt_scaffold.corpus.text import read_lines
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import END_ID, UNKNOWN_ID, read_ids
from mt_scaffold.experiment.binarise.segmentation import segmentation_in
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.inference.forced_decoding import forced_decode
from mt_scaffold.segment.apply import BPE
from mt_scaffold.tables import format_table
from studies import exit_status


def targets_of(
    layout: TranslationLayout, system: str, test: str, sentences: int, samples: int, dropout: float
) -> list[list[list[int]]]:
    """Return the distinct segmentations of each sentence as ids, the system's own first, others only without <unk>.

    Raises UsageError if the system's method has no dropout.
    """
    segmenter = segmentation_in(layout, layout.segmentation_of(system)).segmenters()[1]
    if not isinstance(segmenter, BPE):
        raise UsageError(f"{system}: its method has no dropout; give other systems with --systems")
    ids = read_ids(layout.binarised_test_of(system, test) / f"dict.{layout.target}.txt")
    found = []
    for number, line in enumerate(read_lines(layout.words(test, layout.target))[:sentences]):
        drawn = [segmenter.segment(line, dropout, seed, number) for seed in range(samples)]
        own = segmenter.segment(line)
        as_ids = [
            [*(ids.get(subword, UNKNOWN_ID) for subword in each.split()), END_ID]
            for each in dict.fromkeys([own, *drawn])
        ]
        # With <unk>, a sampled segmentation is of another text.
        found.append([each for place, each in enumerate(as_ids) if place == 0 or UNKNOWN_ID not in each])
    return found


def main() -> None:
    """Print a row for each system, with its first seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", metavar="FOLDER")
    parser.add_argument("--test-set", metavar="NAME", help="default: the first")
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    layout = TranslationLayout.read(options.experiment)
    test = options.test_set or layout.config.test_sets[0]
    sizes = [len(line.encode()) for line in read_lines(layout.raw(test, layout.target))[: options.sentences]]
    systems = options.systems or list(layout.config.systems)
    seed = layout.config.seeds[0]
    drawn = {
        system: targets_of(layout, system, test, options.sentences, options.samples, options.dropout)
        for system in systems
    }
    known = [place for place in range(len(sizes)) if not any(UNKNOWN_ID in drawn[name][place][0] for name in systems)]
    rows = [["system", "one segmentation", "segmentations", "their sum", "looser by, %"]]
    for system in systems:
        targets = [(place, ids) for place in known for ids in drawn[system][place]]
        model, data = layout.averaged(Run(system, seed)), layout.binarised_test_of(system, test)
        decoded = forced_decode(model, data, test, targets=targets)
        scores = numpy.array([each.sum() for each in decoded.log2_probabilities])
        ends = numpy.cumsum([len(drawn[system][place]) for place in known])
        each = numpy.split(scores, ends[:-1])
        size = sum(sizes[place] for place in known)
        one = -sum(float(own[0]) for own in each) / size
        several = -sum(float(numpy.logaddexp2.reduce(own)) for own in each) / size
        count = len(scores) / len(known)
        rows.append([system, f"{one:.4f}", f"{count:.1f}", f"{several:.4f}", f"{100 * (one / several - 1):.2f}"])
    print(format_table(rows), end="")
    print(
        f"\nBits per byte of {len(known)} references of {len(sizes)} of {test}, {Path(options.experiment).name}, seed "
        f"{seed}; segmentations: the mean of different ones of a sentence, of {options.samples} drawn with dropout "
        f"{options.dropout:g} and the system's own."
    )


if __name__ == "__main__":
    sys.exit(exit_status("studies.reference_bound", main))
