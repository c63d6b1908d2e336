"""A language model and binarised documents → bits per byte, in total and of each document."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from mt_scaffold.corpus.count import load_counts
from mt_scaffold.corpus.files import PathLike, refuse_overwriting
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, read_documents_folder, read_ids, text_offsets
from mt_scaffold.experiment.evaluation.losses.loss_split import (
    DECADES,
    FREQUENT,
    OTHER,
    LossSplit,
    WordFrequencies,
    Words,
    split_by_token,
    split_by_word,
    words_of_tokens,
)
from mt_scaffold.experiment.inference.language_model import (
    LanguageModel,
    batches,
    inputs_of,
    load_model,
    log_probabilities,
)
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.options_from_signature import File, Name, Option, OutputFile

NOT_COMPARABLE = "per token: not comparable between vocabularies"


@dataclass(frozen=True)
class Documents:
    """The bits of all tokens of each document, in order, and the bytes of its raw text."""

    bits: list[float]
    bytes: list[int]


@dataclass(frozen=True)
class LanguageModelScores:
    """How well one training of a system predicts one test set.

    bits: the sum of -log2 p over ``tokens``, the ``</s>`` of each document included. bytes: of the raw documents.
    bytes_per_token: ``bytes / tokens``, each ``</s>`` counted. perplexity_per_token: 2 ** (bits / tokens); ``note``
    states its limits. signature: must be equal in scores that are compared. data_sha256: of the documents. context: a
    description of each token's context.
    """

    system: str
    test_set: str
    seed: int
    synthetic: bool
    bits_per_byte: float
    bits: float
    bytes: int
    tokens: int
    documents: int
    bytes_per_token: float
    perplexity_per_token: float
    note: str
    signature: str
    context: str
    model_sha256: str
    data_sha256: str
    vocabulary: str
    n_vocab: int
    versions: dict[str, str]
    by_document: Documents = field(repr=False)

    def as_text(self) -> str:
        """Return the bits per byte, and the measures of tokens."""
        lines = ["synthetic data"] if self.synthetic else []
        lines.append(f"bits per byte: {self.bits_per_byte:.4f}  {self.signature}")
        counts = f"{self.bytes:,} bytes, {self.tokens:,} tokens with each </s>"
        lines.append(f"bytes per token: {self.bytes_per_token:.4f}  ({counts})")
        lines.append(f"perplexity per token: {self.perplexity_per_token:.2f}  (not comparable between vocabularies)")
        return "\n".join(lines)


@dataclass(frozen=True)
class Evaluation:
    """How documents are read, and the labels of the scores.

    context_window: tokens by which the windows of a long document overlap: each token is predicted with at least N
        tokens before it, if the document has them (default: half of the model's positions; 0: no overlap)
    max_tokens: tokens of a batch
    gpus: 1: require a GPU (default: use one if available)
    system: the system (default: the folder of the training)
    test_set: the test set (default: the data folder's name)
    seed: the training's random seed
    synthetic: label the scores as those of synthetic data
    """

    context_window: int | None = None
    max_tokens: int = 4096
    gpus: int = 0
    system: Annotated[str | None, Option("NAME")] = None
    test_set: Annotated[str | None, Option("NAME")] = None
    seed: int = 1
    synthetic: bool = False


def evaluate(
    checkpoint: File,
    data: Annotated[PathLike, Option("FOLDER", "-d")],
    output: OutputFile,
    split: Name = "test",
    settings: Evaluation = Evaluation(),
    *,
    counts: File | None = None,
    losses: File | None = None,
) -> LanguageModelScores:
    """Score a checkpoint on one split of a folder of ``binarise_documents``; write the scores as JSON to ``output``.

    Score a language model in bits per byte of a text (its tasks: lm-eval; translations: score): -log2 p of all tokens,
    the end of each document included, divided by the bytes of the raw documents. Each document is scored by itself,
    from </s>; one that is longer than the model's positions is read in windows that overlap (--context-window). The
    perplexity per token is not comparable between vocabularies.

    checkpoint: a checkpoint of the language model
    data: the data folder that binarise-documents made
    output: the scores, as JSON
    split: train, valid or test
    counts: with --losses: the counted words of the training text
    losses: write the loss by frequency of words and tokens to FILE as JSON

    Raises MTScaffoldError as ``load_model`` does, and if the folder or its split is missing or damaged; UsageError for
    a context window that leaves no room for a token, and for ``losses`` without ``counts`` or the reverse.
    """
    if (counts is None) != (losses is None):
        raise UsageError("evaluate: --counts and --losses go together; give both or neither")
    binarised = read_documents_folder(data)
    if split not in binarised.splits:
        raise UsageError(f"{data}: no split called {split}; choose one of {', '.join(binarised.splits)}")
    _check(settings)
    refuse_overwriting([output, losses], [checkpoint, counts])
    ids, offsets = read_ids(Path(data) / split)
    texts = text_offsets(data, split)
    described = binarised.splits[split]
    counted = described.documents + 1, described.tokens, described.bytes
    if len(offsets) != len(texts) or (len(texts), len(ids), int(texts[-1])) != counted:
        raise MTScaffoldError(f"{data}: {split}: its files do not belong together; run mt-scaffold binarise-documents")
    words = None if counts is None else WordsOfDocuments(counts, data)
    model = load_model(checkpoint, data, binarised, settings.gpus)
    overlap = _overlap(model, settings.context_window)
    bits = token_bits(model, ids, offsets, overlap, settings.max_tokens)
    scores = _scores(
        model,
        bits,
        offsets,
        [int(each) for each in texts[1:] - texts[:-1]],
        overlap,
        system=settings.system or training_name(checkpoint),
        test_set=settings.test_set or Path(data).resolve().name,
        seed=settings.seed,
        synthetic=settings.synthetic,
        data_sha256=binarised.sha256[split],
        vocabulary=binarised.vocabulary,
        n_vocab=binarised.n_vocab,
    )
    write_result(output, scores)
    if words is not None and losses is not None:
        write_result(losses, _split(scores, words, ids, offsets, bits))
    return scores


def _check(settings: Evaluation) -> None:
    if settings.max_tokens < 1:
        raise UsageError(f"--max-tokens {settings.max_tokens}: must be 1 or more")


def _overlap(model: LanguageModel, context_window: int | None) -> int:
    """Return the tokens by which windows overlap."""
    overlap = model.positions // 2 if context_window is None else context_window
    if not 0 <= overlap < model.positions:
        raise UsageError(
            f"--context-window {overlap}: the model has {model.positions} positions; give 0 to {model.positions - 1}"
        )
    return overlap


def _scores(
    model: LanguageModel,
    bits: Any,
    offsets: Any,
    sizes: list[int],
    overlap: int,
    **described: Any,
) -> LanguageModelScores:
    """Return the scores of documents of ``sizes`` bytes, from the bits of their tokens and the offset of each."""
    import numpy

    by_document = numpy.add.reduceat(bits, offsets[:-1]).tolist()
    total, size, tokens = math.fsum(by_document), sum(sizes), len(bits)
    from mt_scaffold import __version__

    return LanguageModelScores(
        **described,
        bits_per_byte=total / size,
        bits=total,
        bytes=size,
        tokens=tokens,
        documents=len(sizes),
        bytes_per_token=size / tokens,
        perplexity_per_token=2 ** (total / tokens) if total / tokens < 1000 else math.inf,
        note=NOT_COMPARABLE,
        signature=f"bpb|end:yes|positions:{model.positions}|context:{overlap}|version:{__version__}",
        context=(
            f"each document from </s>; each token with at least {overlap} tokens before it where the document has "
            f"them, and at most {model.positions}"
        ),
        model_sha256=model.sha256,
        versions=versions(),
        by_document=Documents(by_document, sizes),
    )


class WordsOfDocuments:
    """The words of a training text with their counts, and the vocabulary that maps documents to such words.

    counts: the file of counts. data: a data folder. Raises MTScaffoldError if either is missing or malformed, or the
    counts are of words between spaces.
    """

    def __init__(self, counts: PathLike, data: PathLike) -> None:
        counted, header = load_counts([counts])
        pretokeniser = header.make_pretokeniser()
        if pretokeniser is None:
            raise MTScaffoldError(f"{counts}: counts of words between spaces; count those of a pre-tokeniser")
        self._pretokeniser = pretokeniser
        self._vocabulary = Vocabulary(codes_of(data))
        self.frequencies = WordFrequencies(counted.byte_items())

    def of(self, ids: Any, offsets: Any) -> Iterator[Words]:
        """Yield the words of each document, from the ids of all and the offset of each."""
        sizes = self._vocabulary.token_bytes(self._vocabulary.symbols(1))
        for begin, end in itertools.pairwise(offsets.tolist()):
            text = self._vocabulary.decode(ids[begin:end].tolist())
            yield words_of_tokens(sizes[ids[begin:end]], self._pretokeniser.split(text))


def _split(scores: LanguageModelScores, words: WordsOfDocuments, ids: Any, offsets: Any, bits: Any) -> LossSplit:
    import numpy

    own, found = numpy.split(bits, offsets[1:-1]), [*words.of(ids, offsets)]
    return LossSplit(
        system=scores.system,
        test_set=scores.test_set,
        seed=scores.seed,
        synthetic=scores.synthetic,
        unit="document",
        bits=scores.bits,
        bytes=scores.bytes,
        sizes=scores.by_document.bytes,
        signature=scores.signature,
        data_sha256=scores.data_sha256,
        by_rank=split_by_word(own, found, words.frequencies.rank_class, [FREQUENT, OTHER]),
        by_count=split_by_word(own, found, words.frequencies.count_class, DECADES),
        tokens=split_by_token(ids, bits),
    )


def training_name(checkpoint: PathLike) -> str:
    """Return the name of the folder of the training that a checkpoint belongs to."""
    folder = Path(checkpoint).resolve().parent
    return folder.parent.name if folder.name == "checkpoints" else folder.name


@dataclass(frozen=True)
class _Window:
    """The tokens from ``begin`` up to ``end`` of a document; those from ``scored`` are scored."""

    document: int
    begin: int
    scored: int
    end: int


def token_bits(model: LanguageModel, ids: Any, offsets: Any, context_window: int, max_tokens: int) -> Any:
    """Return -log2 p of each token (float64), as ``evaluate`` reads documents.

    ids: of all documents, each ending in ``</s>``. offsets: the start of each, and the end of the last.
    """
    import numpy

    bits = numpy.zeros(len(ids))
    lengths = (offsets[1:] - offsets[:-1]).tolist()
    windows = [each for pair in enumerate(lengths) for each in _windows(*pair, model.positions, context_window)]
    for batch in batches(windows, lambda window: window.end - window.begin, max_tokens):
        pairs = []
        for window in batch:
            document = ids[offsets[window.document] : offsets[window.document + 1]].astype("int64")
            pairs.append((inputs_of(document)[window.begin : window.end], document[window.begin : window.end]))
        for window, found in zip(batch, log_probabilities(model, pairs), strict=True):
            scored = found[window.scored - window.begin :].astype("float64")
            first = offsets[window.document]
            bits[first + window.scored : first + window.end] = -scored / math.log(2)
    return bits


def _windows(document: int, length: int, positions: int, context_window: int) -> Iterator[_Window]:
    yield _Window(document, 0, 0, end := min(positions, length))
    while end < length:
        begin, scored = end - context_window, end
        end = min(begin + positions, length)
        yield _Window(document, begin, scored, end)
