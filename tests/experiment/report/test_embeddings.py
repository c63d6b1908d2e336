"""Embeddings of trained models: read with their tokens, projected, and measured as defined in the sources."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mt_scaffold import MTScaffoldError

numpy = pytest.importorskip("numpy")

from mt_scaffold.experiment.report import embeddings  # noqa: E402
from mt_scaffold.experiment.report.embeddings import (  # noqa: E402
    Embeddings,
    Spread,
    mean_cosine,
    project,
    read_embeddings,
    spread,
    uniformity,
)


def test_spread_of_vectors_worked_by_hand() -> None:
    """Two opposite directions are 2 apart, orthogonal ones √2; the length of a vector does not matter."""
    opposite = numpy.array([[3.0, 0.0], [-0.5, 0.0]])
    assert uniformity(opposite) == pytest.approx(-8)
    assert mean_cosine(opposite) == pytest.approx(-1)
    cross = numpy.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -4.0]])
    # Of the six pairs four are orthogonal (squared distance 2) and two opposite (4).
    assert uniformity(cross) == pytest.approx(math.log((4 * math.exp(-4) + 2 * math.exp(-8)) / 6))
    assert mean_cosine(cross) == pytest.approx(-2 / 6)
    same = numpy.ones((5, 3))
    assert uniformity(same) == pytest.approx(0, abs=1e-12)
    assert mean_cosine(same) == pytest.approx(1)


@pytest.mark.parametrize("count", [2, 7, 8, 9, 16, 61])
def test_blocks_cover_every_pair_once(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The same as pair by pair, whether or not the last block is full."""
    monkeypatch.setattr(embeddings, "_BLOCK", 8)
    vectors = numpy.random.default_rng(count).normal(size=(count, 5)).astype(numpy.float32)
    units = [vector / numpy.linalg.norm(vector) for vector in vectors.astype(float)]
    pairs = [(x, y) for number, x in enumerate(units) for y in units[:number]]
    potentials = [math.exp(-2 * float(((x - y) ** 2).sum())) for x, y in pairs]
    assert uniformity(vectors) == pytest.approx(math.log(sum(potentials) / len(pairs)), rel=1e-5)
    assert mean_cosine(vectors) == pytest.approx(sum(float(x @ y) for x, y in pairs) / len(pairs), abs=1e-6)


def test_spread_of_the_marked_tokens() -> None:
    """One row for all tokens and one per group; a group without a pair has a count and no figures."""
    vectors = numpy.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [-1.0, 0.0]])
    model = Embeddings(["a", "b@@", "c", "d"], vectors, {"two": frozenset({"a", "d"}), "one": frozenset({"c", "x"})})
    everything, two, one = spread("bpe", model)
    assert (everything.tokens, everything.count) == ("all tokens", 4)
    # Cosines: 0, 1, -1, 0, 0, -1.
    assert everything.mean_cosine == pytest.approx(-1 / 6)
    assert (two.tokens, two.count) == ("two", 2)
    assert two.uniformity == pytest.approx(-8)
    assert two.mean_cosine == pytest.approx(-1)
    assert one == Spread("bpe", "one", 1, None, None)


def test_a_zero_vector_is_reported() -> None:
    """It has no direction, and dividing by its length would spoil every mean."""
    vectors = numpy.array([[1.0, 0.0], [0.0, 0.0]])
    for measure in (uniformity, mean_cosine):
        with pytest.raises(MTScaffoldError, match="embedding 1 is zero"):
            measure(vectors)


def test_projection_keeps_the_two_largest_directions() -> None:
    """Points in a plane keep their distances, and the first direction has the largest variance."""
    generator = numpy.random.default_rng(3)
    plane = generator.normal(size=(40, 2)) * [5, 2]
    turn, _ = numpy.linalg.qr(generator.normal(size=(10, 10)))
    points = project(numpy.hstack([plane, numpy.zeros((40, 8))]) @ turn + 7)
    centred = plane - plane.mean(axis=0)
    assert numpy.allclose(numpy.linalg.norm(points, axis=1), numpy.linalg.norm(centred, axis=1))
    assert points[:, 0].var() > points[:, 1].var()


def test_embeddings_must_fit_the_dictionary(tmp_path: Path) -> None:
    """Rows belong to the dictionary's tokens after fairseq's four; a different number is an error, not a shift."""
    torch = pytest.importorskip("torch")
    weights = torch.arange(21.0).reshape(7, 3)
    torch.save({"model": {"encoder.embed_tokens.weight": weights}}, tmp_path / "model.pt")
    (tmp_path / "dict.txt").write_text("the 9\nzon@@ 5\n<s> 2 #fairseq:overwrite\n")
    read = read_embeddings(tmp_path / "model.pt", tmp_path / "dict.txt", {})
    assert read.tokens == ["the", "zon@@", "<s>"]
    assert read.vectors.tolist() == weights[4:].tolist()
    (tmp_path / "dict.txt").write_text("the 9\nmadeupword0000 0\nzon@@ 5\n")
    read = read_embeddings(tmp_path / "model.pt", tmp_path / "dict.txt", {})
    # No text uses a row of padding.
    assert read.tokens == ["the", "zon@@"] and read.vectors.tolist() == weights[[4, 6]].tolist()
    (tmp_path / "dict.txt").write_text("the 9\nzon@@ \u00b2\n", encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"dict\.txt: line 2: expected a subword, one space and its count"):
        read_embeddings(tmp_path / "model.pt", tmp_path / "dict.txt", {})
    (tmp_path / "dict.txt").write_text("the 9\n")
    with pytest.raises(MTScaffoldError, match="7 embeddings"):
        read_embeddings(tmp_path / "model.pt", tmp_path / "dict.txt", {})
    torch.save({"model": {}}, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match="no parameter encoder"):
        read_embeddings(tmp_path / "model.pt", tmp_path / "dict.txt", {})
