"""A finished experiment with language models → how its vocabularies divide the training documents, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mt_scaffold.analysis.stats import RARE, RENYI_POWERS, entropy, redundancy, renyi_efficiency
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike, make_folder, open_input, write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.data_folder import DICTIONARY, codes_of, read_documents_folder
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.evaluation.comparison import SYNTHETIC_NOTE
from mt_scaffold.experiment.report.figures import token_frequencies
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.tables import format_table


@dataclass(frozen=True)
class VocabularySummary:
    """How one codes file divides the training documents (docs/statistics.md has the formulas).

    tokens: without the ends of documents and without BPE-dropout. vocabulary_size: the 256 bytes (512 for codes with
    ``</w>``) and the normal merged tokens. renyi_efficiency: power → efficiency.
    """

    codes: str
    documents: int
    bytes: int
    tokens: int
    vocabulary_size: int
    scaffold_tokens: int
    bytes_per_token: float
    entropy_bits: float
    redundancy: float
    renyi_efficiency: dict[float, float]
    frequency_0: int
    frequency_under_100: int


@dataclass(frozen=True)
class LanguageModelStatistics:
    """The measurements of an experiment beside its bits per byte. figures: relative to its folder."""

    experiment: str
    synthetic: bool
    vocabularies: list[VocabularySummary]
    figures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=versions)


def statistics(experiment: PathLike) -> LanguageModelStatistics:
    """Measure the vocabularies of an experiment (a folder of the workflow), by the counts in its data folders.

    Writes ``statistics.json``, ``statistics.txt`` and ``figures/``, and returns the content of the first. Raises
    MTScaffoldError where a data folder is missing or malformed.
    """
    layout = LanguageModelLayout.read(experiment)
    config = layout.config
    folders = {config.codes_of(system).name: layout.binarised_of(system) for system in config.systems}
    frequencies = {name: token_counts(folder) for name, folder in folders.items()}
    make_folder(layout.figures)
    note = SYNTHETIC_NOTE if config.synthetic else ""
    figure = token_frequencies(frequencies, layout.figures / "token-frequencies", note)
    result = LanguageModelStatistics(
        experiment=config.name,
        synthetic=config.synthetic,
        vocabularies=[summarise(name, folder, frequencies[name]) for name, folder in folders.items()],
        figures=[figure.relative_to(layout.folder).as_posix()],
    )
    write_text(layout.vocabulary_table, f"{note}\n\n" * config.synthetic + format_table(table(result.vocabularies)))
    write_result(layout.statistics, result)
    return result


def token_counts(folder: PathLike) -> list[int]:
    """Return how often each token of the codes occurs in the training documents of a data folder, by its id.

    Raises MTScaffoldError where the folder or its dictionary is not as binarise-documents wrote it.
    """
    size = read_documents_folder(folder).n_vocab
    path = Path(folder) / DICTIONARY
    counts = []
    with open_input(path) as stream:
        for line in stream.read().decode("utf-8").splitlines()[:size]:
            parts = line.split(" ")
            if len(parts) < 2 or not parts[1].isdecimal():
                raise MTScaffoldError(f"{path}: not as binarise-documents wrote it; run mt-scaffold binarise-documents")
            counts.append(int(parts[1]))
    return counts


def summarise(name: str, folder: PathLike, frequencies: Sequence[int]) -> VocabularySummary:
    """Return the figures of one codes file, from the frequencies of its tokens."""
    split = read_documents_folder(folder).splits["train"]
    tokens, bits = sum(frequencies), entropy(frequencies)
    return VocabularySummary(
        codes=name,
        documents=split.documents,
        bytes=split.bytes,
        tokens=tokens,
        vocabulary_size=len(frequencies),
        scaffold_tokens=len({merge.token for merge in Codes.read(codes_of(folder)).merges if merge.scaffold}),
        bytes_per_token=split.bytes / tokens,
        entropy_bits=bits,
        redundancy=redundancy(bits, len(frequencies)),
        renyi_efficiency={power: renyi_efficiency(frequencies, power) for power in RENYI_POWERS},
        frequency_0=sum(1 for frequency in frequencies if not frequency),
        frequency_under_100=sum(1 for frequency in frequencies if frequency < RARE),
    )


_LABELS = {
    "documents": "training documents",
    "bytes": "bytes",
    "tokens": "tokens",
    "vocabulary_size": "vocabulary |V|",
    "scaffold_tokens": "scaffold tokens",
    "bytes_per_token": "bytes per token, no </s>",
    "entropy_bits": "entropy H, bits",
    "redundancy": "redundancy",
    "frequency_0": "tokens of frequency 0",
    "frequency_under_100": f"tokens under {RARE}",
}


def table(summaries: Sequence[VocabularySummary]) -> list[list[str]]:
    """Return the figures as rows of text, one column per codes file; the first row is the heading."""
    rows = [["", *(summary.codes for summary in summaries)]]
    for key, label in _LABELS.items():
        values = [getattr(summary, key) for summary in summaries]
        rows.append([label, *(f"{value:,}" if isinstance(value, int) else f"{value:.4f}" for value in values)])
        if key == "redundancy":
            for power in RENYI_POWERS:
                shown = [f"{summary.renyi_efficiency[power]:.4f}" for summary in summaries]
                rows.append([f"Rényi efficiency, power {power:g}", *shown])
    return rows
