"""A comparison of language models: what ``compare_models`` writes, and its tables and the report read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from mt_scaffold.experiment.evaluation.comparison import Spread, Training, notes_on_tests
from mt_scaffold.experiment.evaluation.comparison_tables import laid_out
from mt_scaffold.experiment.evaluation.document_tests import PairedSeeds
from mt_scaffold.experiment.evaluation.significance import Difference, p_columns, shown_p

_FEW_DOCUMENTS = 20


@dataclass(frozen=True)
class ModelTest:
    """A system against its baseline, in bits per byte; a negative difference is an improvement.

    over_all: over documents and trainings together. randomisation_p: over documents alone. over_seeds: paired by seed;
    None for fewer than three seeds that both systems have.
    """

    over_all: Difference
    randomisation_p: float
    over_seeds: PairedSeeds | None


@dataclass(frozen=True)
class ModelRow:
    """One system on one test set, in one group of systems that are compared (such as "equal tokens").

    baseline: what it was compared with; None for the baseline itself. tokens, bytes, documents: of the test set.
    perplexity: per token, not comparable between vocabularies. test: None for the baseline, and for a test set of one
    document, which says nothing about others.
    """

    group: str
    test_set: str
    system: str
    baseline: str | None = field(metadata={"omit_none": True})
    seeds: list[int]
    n_vocab: int
    tokens: int
    bytes: int
    documents: int
    bytes_per_token: float
    bits_per_byte: Spread
    perplexity: Spread
    test: ModelTest | None = field(metadata={"omit_none": True})


@dataclass(frozen=True)
class ModelTraining(Training):
    """What one training cost and saw; subwords are tokens."""

    group: str


@dataclass(frozen=True)
class ModelComparison:
    """All systems on all test sets. comparisons: how many tests there are."""

    title: str
    synthetic: bool
    baseline: str
    samples: int
    random_seed: int
    comparisons: int
    rows: list[ModelRow]
    trainings: list[ModelTraining]
    signatures: dict[str, str]
    versions: dict[str, str]

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the scores and the tests, as sentences."""
        seeds = sorted({seed for row in self.rows for seed in row.seeds})
        what = "-log2 p of all tokens, the end of each document included, by the bytes of the raw documents"
        spread = "; mean ± standard deviation over the seeds" if len(seeds) > 1 else "; one training per system"
        notes = [f"Bits per byte (↓: lower is better): {what}. Seeds: {', '.join(map(str, seeds))}{spread}."]
        notes.append("*: per token, not comparable between vocabularies.")
        notes.append("†: the end of each document (</s>) is a token here; statistics and the paper leave it out.")
        few = {row.test_set: row.documents for row in self.rows if row.documents < _FEW_DOCUMENTS}
        for name, documents in few.items():
            what = f"{name} has {documents} document{'s' if documents > 1 else ''}"
            notes.append(f"{what}: {'tests are rough' if documents > 1 else 'no test over documents'}.")
        tests = [row.test for row in self.rows if row.test is not None]
        fewest = min(len(row.seeds) for row in self.rows)
        over_all = [test.over_all for test in tests]
        notes += notes_on_tests(over_all, "bits per byte", self.samples, fewest, digits=4, units="documents")
        if tests:
            notes.append(
                "p, documents: approximate randomisation (Noreen 1989) of each document's mean over the trainings."
            )
        if any(test.over_seeds for test in tests):
            notes.append("By seed: mean ± standard deviation of the differences of equal seeds; p of Student's t-test.")
        return notes


def as_text(comparison: ModelComparison, markdown: bool = False) -> str:
    """Return the comparison as tables for people, with the notes they need to interpret it."""
    parts: list[str | Sequence[Sequence[str]]] = [scores_table(comparison), tokens_table(comparison)]
    if comparison.trainings:
        parts += ["Trainings:", trainings_table(comparison)]
    return laid_out(comparison.title, comparison.synthetic, parts, comparison.notes, comparison.signatures, markdown)


def scores_table(comparison: ModelComparison) -> list[list[str]]:
    """Return the rows of the table of bits per byte, with the tests; the first is the heading."""
    by_seed = any(row.test and row.test.over_seeds for row in comparison.rows)
    columns = p_columns((row.test.over_all for row in comparison.rows if row.test), "documents")
    heading = ["bits per byte ↓", "against", "difference", "95 % interval", *columns, "p, documents"]
    table = [[*_names(comparison), *heading, *(["by seed", "p, seeds"] if by_seed else [])]]
    for row in comparison.rows:
        line = [*_names_of(row, comparison), shown(row.bits_per_byte, 4), row.baseline or ""]
        if row.test is None:
            table.append(line + [""] * (len(table[0]) - len(line)))
            continue
        test, seeds = row.test.over_all, row.test.over_seeds
        line += [f"{test.difference:+.4f}", f"{test.low:+.4f} to {test.high:+.4f}"]
        line += [shown_p(getattr(test, attribute)) for attribute in columns.values()]
        line.append(shown_p(row.test.randomisation_p))
        if by_seed:
            line += [f"{seeds.mean:+.4f} ± {seeds.sd:.4f}", shown_p(seeds.p)] if seeds else ["", ""]
        table.append(line)
    return table


def tokens_table(comparison: ModelComparison) -> list[list[str]]:
    """Return the rows of the table of what the test set is in each system's tokens."""
    table = [
        [
            *_names(comparison),
            "vocabulary",
            "documents",
            "tokens",
            "bytes",
            "bytes per token †",
            "perplexity per token *",
        ]
    ]
    for row in comparison.rows:
        counts = [f"{count:,}" for count in (row.n_vocab, row.documents, row.tokens, row.bytes)]
        table.append([*_names_of(row, comparison), *counts, f"{row.bytes_per_token:.4f}", shown(row.perplexity, 2)])
    return table


def trainings_table(comparison: ModelComparison) -> list[list[str]]:
    """Return the rows of the table of the trainings."""
    grouped = any(row.group for row in comparison.rows)
    table = [["group"] * grouped + ["system", "seed", "parameters", "updates", "epochs", "tokens seen"]]
    table[0] += ["text seen, MB", "stopped by", "hours"]
    for each in comparison.trainings:
        counts = (each.parameters, each.updates, each.epochs, each.subwords)
        # A demonstration reads less than a megabyte.
        digits = 1 if (each.text_bytes or 0) >= 10_000_000 else 3
        megabytes = "" if each.text_bytes is None else f"{each.text_bytes / 1e6:,.{digits}f}"
        line = [each.group] * grouped + [each.system, str(each.seed)]
        line += ["" if count is None else f"{count:,}" for count in counts]
        table.append([*line, megabytes, each.stop or "", f"{each.hours:.2f}"])
    return table


def as_csv(comparison: ModelComparison) -> str:
    """Return the comparison as CSV: one line per group, test set and system, with every figure."""
    figures = [entry.name for entry in fields(Difference) if entry.name != "sacrebleu_p"]
    heading = [
        "group",
        "test_set",
        "system",
        "baseline",
        "synthetic",
        "seeds",
        "n_vocab",
        "documents",
        "tokens",
        "bytes",
    ]
    heading += ["bytes_per_token", "bits_per_byte_mean", "bits_per_byte_sd", "perplexity_per_token_mean", *figures]
    heading += ["randomisation_p", "seeds_mean", "seeds_sd", "seeds_p"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    for row in comparison.rows:
        line: list[object] = [row.group, row.test_set, row.system, row.baseline, comparison.synthetic]
        line += [" ".join(map(str, row.seeds)), row.n_vocab, row.documents, row.tokens, row.bytes]
        line += [row.bytes_per_token, row.bits_per_byte.mean, row.bits_per_byte.sd, row.perplexity.mean]
        test = row.test
        line += [None if test is None else getattr(test.over_all, name) for name in figures]
        line.append(None if test is None else test.randomisation_p)
        seeds = None if test is None else test.over_seeds
        line += [None] * 3 if seeds is None else [seeds.mean, seeds.sd, seeds.p]
        writer.writerow(["" if entry is None else entry for entry in line])
    return stream.getvalue()


def shown(spread: Spread, digits: int) -> str:
    """Return a mean with its standard deviation as the tables show it."""
    return f"{spread.mean:.{digits}f}" + ("" if spread.sd is None else f" ± {spread.sd:.{digits}f}")


def _names(comparison: ModelComparison) -> list[str]:
    return ["group"] * any(row.group for row in comparison.rows) + ["test set", "system"]


def _names_of(row: ModelRow, comparison: ModelComparison) -> list[str]:
    return [row.group] * any(each.group for each in comparison.rows) + [row.test_set, row.system]
