"""Read the embeddings of trained models, project them for a figure, and measure how spread and how trained they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.data_folder import is_padding
from mt_scaffold.experiment.binarise.dictionary import read_dictionary

if TYPE_CHECKING:
    import numpy

ALL_TOKENS = "all tokens"
# Names of input and output modules with one row per symbol, in models of fairseq and of transformers.
_READ, _WRITTEN = ("embed_tokens", "embed_in"), ("output_projection", "lm_head", "embed_out")
# Rows of the cosine matrix in memory at once: 80 MB instead of 6 GB for 40,000 tokens.
_BLOCK = 512


@dataclass(frozen=True)
class Embeddings:
    """The embeddings of one model.

    tokens: as in segmented text, in the order of the rows of ``vectors`` (tokens × dimensions).
    marked: label → tokens to highlight.
    """

    tokens: Sequence[str]
    vectors: numpy.ndarray[Any, Any]
    marked: Mapping[str, frozenset[str]]


def read_embeddings(checkpoint: PathLike, dictionary: PathLike, marked: Mapping[str, frozenset[str]]) -> Embeddings:
    """Read the embeddings of the source of a trained fairseq model, with the dictionary of the source.

    Rows of padding, which no text uses, are left out.

    Raises MTScaffoldError if the checkpoint is unsafe or damaged, or does not match the dictionary.
    """
    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    model = load_checkpoint(checkpoint)["model"]
    name = "encoder.embed_tokens.weight"
    if name not in model:
        raise MTScaffoldError(f"{checkpoint}: no parameter {name}; give a checkpoint of a transformer")
    weights = model[name].float().numpy()
    tokens = read_dictionary(dictionary)
    special = len(SPECIAL_SYMBOLS)
    if len(weights) - len(tokens) != special:
        raise MTScaffoldError(
            f"{checkpoint}: has {len(weights)} embeddings, but {dictionary} has {len(tokens)} tokens "
            f"(and {special} fairseq symbols); give the dictionary that it was trained with"
        )
    used = [number for number, (token, count) in enumerate(tokens) if not is_padding(token, count)]
    return Embeddings([tokens[number][0] for number in used], weights[special:][used], marked)


@dataclass(frozen=True)
class SymbolRows:
    """The embedding rows of one side of a model (symbols × dimensions).

    read: of the input. written: of the output; None for an encoder. tied: whether ``read`` equals ``written`` or, for
    an encoder, the decoder's ``read``.
    """

    read: numpy.ndarray[Any, Any]
    written: numpy.ndarray[Any, Any] | None
    tied: bool


def symbol_rows(checkpoint: PathLike) -> dict[str, SymbolRows]:
    """Return the rows of each side of a trained fairseq model (``encoder``, ``decoder``).

    A side without a matrix of one row per symbol, as with adaptive inputs, is left out. Raises MTScaffoldError if the
    checkpoint is unsafe or damaged.
    """
    import numpy

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    model = load_checkpoint(checkpoint)["model"]

    def matrix(side: str, modules: Sequence[str]) -> numpy.ndarray[Any, Any] | None:
        for name, weights in model.items():
            parts = name.split(".")
            if parts[0] == side and parts[-1] == "weight" and parts[-2] in modules and weights.dim() == 2:
                return numpy.asarray(weights.float().numpy())
        return None

    found = {}
    if (read := matrix("decoder", _READ)) is not None:
        # A tied output may not be stored separately.
        written = matrix("decoder", _WRITTEN)
        written = read if written is None else written
        found["decoder"] = SymbolRows(read, written, numpy.array_equal(read, written))
    if (encoded := matrix("encoder", _READ)) is not None:
        found["encoder"] = SymbolRows(encoded, None, read is not None and numpy.array_equal(read, encoded))
    return found


def cosine_distances(vectors: numpy.ndarray[Any, Any], unused: Sequence[int]) -> numpy.ndarray[Any, Any]:
    """Return 1 - the cosine of each row with the mean of the rows known to be unused; 1 for a row of zeros.

    Training pushes all output rows that are never the right answer in one direction, so that a low distance marks a
    token that was hardly trained.

    Source: Land and Bartolo 2024, "Fishing for Magikarp" (arXiv 2405.05417), as their code computes it for models with
    tied embeddings (cohere-ai/magikarp, 0d466b2), without the variants that first remove a direction or the mean.
    """
    import numpy

    mean = vectors[unused].mean(axis=0)
    lengths = numpy.linalg.norm(vectors, axis=1) * numpy.linalg.norm(mean)
    return numpy.asarray(1 - vectors @ mean / numpy.maximum(lengths, 1e-6))


def project(vectors: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Project the rows of ``vectors``, minus their mean, onto the first two right singular vectors (tokens × 2).

    The sign of each direction is fixed by its largest entry, so that the same vectors always give the same picture.
    """
    import numpy

    centred = vectors - vectors.mean(axis=0)
    _, _, directions = numpy.linalg.svd(centred, full_matrices=False)
    directions = directions[:2]
    largest = numpy.take_along_axis(directions, numpy.abs(directions).argmax(axis=1)[:, None], axis=1)
    return numpy.asarray(centred @ (directions * numpy.sign(largest)).T)


@dataclass(frozen=True)
class Spread:
    """How evenly the embeddings of some tokens of a system are spread over the directions of the space.

    tokens: the label of the group. count: the size of the group. uniformity, mean_cosine: see the functions of these
    names; None for fewer than two tokens.
    """

    system: str
    tokens: str
    count: int
    uniformity: float | None
    mean_cosine: float | None


def spread(system: str, model: Embeddings) -> list[Spread]:
    """Measure the embeddings of all tokens of a model, and of each marked group."""
    groups = {ALL_TOKENS: model.vectors}
    for label, chosen in model.marked.items():
        groups[label] = model.vectors[[row for row, token in enumerate(model.tokens) if token in chosen]]
    return [
        Spread(system, label, len(vectors), uniformity(vectors), mean_cosine(vectors))
        for label, vectors in groups.items()
    ]


def uniformity(vectors: numpy.ndarray[Any, Any]) -> float | None:
    """Return log of the mean of exp(-2 ‖x - y‖²) over all pairs of rows, scaled to length 1; None without a pair.

    0 if all point in the same direction; the lower, the more evenly they are spread. vectors: tokens × dimensions.

    Source: Wang and Isola 2020, "Understanding Contrastive Representation Learning through Alignment and Uniformity on
    the Hypersphere", with their t = 2. Raises MTScaffoldError for a row of zeros.
    """
    import numpy

    if len(vectors) < 2:
        return None
    units = _units(vectors)
    total = 0.0
    for begin in range(0, len(units), _BLOCK):
        rows = units[begin : begin + _BLOCK]
        potentials = rows @ units[begin:].T
        # ‖x - y‖² is 2 - 2 cos(x, y). In place, because this is the one large array.
        potentials *= 4
        potentials -= 4
        numpy.exp(potentials, out=potentials)
        among_themselves = potentials[:, : len(rows)]
        total += float(among_themselves.sum(dtype=float) - among_themselves.trace(dtype=float)) / 2
        total += float(potentials[:, len(rows) :].sum(dtype=float))
    return math.log(total / math.comb(len(units), 2))


def mean_cosine(vectors: numpy.ndarray[Any, Any]) -> float | None:
    """Return the mean cosine over all pairs of rows (tokens × dimensions); None without a pair.

    Raises MTScaffoldError for a row of zeros.
    """
    count = len(vectors)
    if count < 2:
        return None
    # The squared length of the sum is the sum of the cosines of all ordered pairs, including each row with itself.
    resultant = _units(vectors).sum(axis=0, dtype=float)
    return float((resultant @ resultant - count) / (count * (count - 1)))


def _units(vectors: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    import numpy

    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise MTScaffoldError(f"embedding {int(lengths.argmin())} is zero and has no direction; check the training")
    return numpy.asarray(vectors / lengths)
