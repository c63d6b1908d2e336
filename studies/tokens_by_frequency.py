"""Count the tokens of words by the words' frequency in the training text, for every system of language models.

python -m studies.tokens_by_frequency EXPERIMENT

EXPERIMENT is a folder that mt-scaffold run has finished, with codes of bytes; run this in the same directory. For each
test set and each decade of a word's count in the training text, the tables show the words of the test set and, for each
system, the percentage of them that are one token and the mean tokens per word. Words are the pre-tokeniser's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from mt_scaffold import BPE
from mt_scaffold.corpus.count import load_counts
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.evaluation.losses.loss_split import DECADES, WordFrequencies
from mt_scaffold.tables import format_table
from studies import exit_status


def main() -> None:
    """Print a table for each test set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", type=Path, metavar="EXPERIMENT")
    layout = LanguageModelLayout.read(parser.parse_args().experiment)
    codes = {system: BPE(layout.codes(layout.segmentation_of(system))) for system in layout.config.systems}
    pretokeniser = next(iter(codes.values())).pretokeniser
    if pretokeniser is None:
        parser.error("codes without a pre-tokeniser have no words to compare")
    counts, _ = load_counts([layout.counts])
    frequencies = WordFrequencies(counts.byte_items())
    for test_set in layout.config.test_sets:
        words = Counter[bytes]()
        for document in Documents(layout.patterns(test_set), *layout.format):
            words.update(pretokeniser.split(document))
        classes: dict[str, Counter[bytes]] = {name: Counter() for name in DECADES}
        for word, count in words.items():
            classes[frequencies.count_class(word)][word] = count
        rows = [["occurrences", "words", *(f"{name}, {of}" for name in codes for of in ("one token, %", "tokens"))]]
        for name, members in classes.items():
            if (total := members.total()) == 0:
                continue
            row = [name, f"{total:,}"]
            for bpe in codes.values():
                sizes = {word: len(bpe.encode(word)) for word in members}
                one = sum(count for word, count in members.items() if sizes[word] == 1)
                tokens = sum(count * sizes[word] for word, count in members.items())
                row += [f"{100 * one / total:.1f}", f"{tokens / total:.3f}"]
            rows.append(row)
        print(f"{test_set}\n\n{format_table(rows)}")


if __name__ == "__main__":
    sys.exit(exit_status("studies.tokens_by_frequency", main))
