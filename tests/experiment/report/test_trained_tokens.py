"""How well tokens were trained: models that the test trains, with tokens that are never seen."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from split_losses import write_split

from mt_scaffold import BPE, Codes, MTScaffoldError
from mt_scaffold.segment.draw import Draw

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from mt_scaffold.experiment.report.embeddings import cosine_distances, symbol_rows  # noqa: E402
from mt_scaffold.experiment.report.trained_tokens import SideTokens, count_drawn, write_trained_tokens  # noqa: E402
from studies.undertrained import read_trained_tokens  # noqa: E402

# The ids after fairseq's four: two thirds occur, the last third never does.
SEEN, NEVER = 20, 10
NAMES = [f"t{number}" for number in range(SEEN + NEVER)]
COUNTS = {name: 100 if number < SEEN else 0 for number, name in enumerate(NAMES)}


def train(tied: bool) -> dict[str, Any]:
    """Train a model that predicts the next token of a cycle; return its matrices by fairseq's names."""
    generator = torch.Generator().manual_seed(1)
    size, width = 4 + SEEN + NEVER, 16
    read = torch.nn.Parameter(torch.randn(size, width, generator=generator) * width**-0.5)
    written = read if tied else torch.nn.Parameter(torch.randn(size, width, generator=generator) * width**-0.5)
    inner = torch.nn.Linear(width, width)
    with torch.no_grad():
        inner.weight.copy_(torch.eye(width))
        inner.bias.fill_(0.1)
    optimiser = torch.optim.Adam([*{read, written}, *inner.parameters()], lr=0.02, weight_decay=0.0)
    ids = 4 + torch.arange(SEEN)
    for _ in range(400):
        optimiser.zero_grad()
        logits = torch.tanh(inner(read[ids])) @ written.T
        torch.nn.functional.cross_entropy(logits, ids.roll(-1)).backward()
        optimiser.step()
    return {"decoder.embed_tokens.weight": read.detach(), "decoder.output_projection.weight": written.detach()}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("tied", [True, False])
def test_tokens_that_were_never_seen_rank_as_least_trained(tmp_path: Path, tied: bool) -> None:
    """Although only fairseq's symbols are known to be unused, because the text is resampled."""
    torch.save({"model": train(tied)}, tmp_path / "model.pt")
    tokens = SideTokens([(name, COUNTS[name]) for name in NAMES], COUNTS, resampled=True)
    assert write_trained_tokens(tmp_path / "model.pt", {"decoder": tokens}, [], tmp_path / "tokens.csv") == []
    rows = table(tmp_path / "tokens.csv")
    assert [row["token"] for row in rows if row["unused"] == "1"] == ["<s>", "<pad>"]
    ranked = sorted((row for row in rows if row["token"] in COUNTS), key=lambda row: float(row["indicator"]))
    assert {row["token"] for row in ranked[:NEVER]} == {*NAMES[SEEN:]}
    expected = "output_cosine_distance" if tied else "input_norm"
    assert all(row["indicator"] == row[expected] for row in rows)
    assert max(float(row["percentile"]) for row in ranked[:NEVER]) < min(
        float(row["percentile"]) for row in ranked[NEVER:]
    )


def test_distances_worked_by_hand() -> None:
    """The mean of the unused rows is (1, 0), and a row of zeros has no direction: a distance of 1."""
    vectors = numpy.array([[2.0, 1.0], [0.0, -1.0], [3.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [0.0, 0.0]])
    assert cosine_distances(vectors, [0, 1]).tolist() == pytest.approx([1 - 2 / 5**0.5, 1, 0, 1, 2, 1])


def test_a_line_has_the_counts_and_the_losses_of_its_token(tmp_path: Path) -> None:
    """With tied sides, both texts count; padding and tokens that are in neither text are known to be unused."""
    rows = torch.arange(24.0).reshape(8, 3)
    names = ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection")
    torch.save({"model": {f"{name}.weight": rows for name in names}}, tmp_path / "model.pt")
    entries = [("a", 7), ("b,", 2), ("c", 0), ("madeupword0000", 0)]
    sides = {"encoder": SideTokens(entries, {"a": 3, "b,": 2}), "decoder": SideTokens(entries, {"a": 4})}
    split = write_split(tmp_path / "split.json", "bpe", 1, [4.0, 6.0], [8.0])
    write_trained_tokens(tmp_path / "model.pt", sides, [split], tmp_path / "tokens.csv")
    found = {row["token"]: row for row in table(tmp_path / "tokens.csv")}
    assert [*found] == ["<s>", "<pad>", "</s>", "<unk>", "a", "b,", "c", "madeupword0000"]
    assert [row["side"] for row in found.values()] == ["both"] * 8
    assert [row["per_epoch"] for row in found.values()] == ["", "", "", "", "7", "2", "0", "0"]
    assert [row["target_per_epoch"] for row in found.values()] == ["", "", "", "", "4", "0", "0", "0"]
    assert [name for name, row in found.items() if row["unused"] == "1"] == ["<s>", "<pad>", "c", "madeupword0000"]
    # Of ids 2, 4 and 5, as write_split has them.
    assert (found["a"]["occurrences:test"], found["a"]["bits:test"]) == ("3", "10")
    assert (found["c"]["occurrences:test"], found["c"]["bits:test"]) == ("0", "0")


def test_text_with_dropout_is_counted_as_the_model_reads_it(tmp_path: Path) -> None:
    """Merges that are skipped leave their parts, so that these occur far more often than without dropout."""
    (tmp_path / "text").write_text("ab\n" * 1000, encoding="utf-8")
    bpe = BPE(Codes(b"#version: 0.2\na b</w>\n"))
    ids = {"ab": 4, "a@@": 5, "b": 6, "never": 7}
    found = count_drawn(tmp_path / "text", bpe, ids, Draw("dropout", 0.25, 0))
    assert found["a@@"] == found["b"] == pytest.approx(1000 - found["ab"]) and found["never"] == 0
    # 100 epochs: a standard deviation of 1.4.
    assert 243 < found["b"] < 257
    (tmp_path / "text").write_text("", encoding="utf-8")
    assert set(count_drawn(tmp_path / "text", bpe, ids, Draw("dropout", 0.25, 0)).values()) == {0}


def test_means_are_written_with_two_decimals(tmp_path: Path) -> None:
    """A count that is whole has none; a file with other columns, as an earlier version wrote, is refused."""
    torch.save({"model": {"decoder.embed_tokens.weight": torch.eye(6)}}, tmp_path / "model.pt")
    sides = {"decoder": SideTokens([("y", 2), ("z", 1)], {"y": 12345.0, "z": 1234567.26}, True)}
    write_trained_tokens(tmp_path / "model.pt", sides, [], tmp_path / "tokens.csv")
    assert [row["per_epoch"] for row in table(tmp_path / "tokens.csv")[4:]] == ["12345", "1234567.26"]
    assert [row["token"] for row in read_trained_tokens(tmp_path / "tokens.csv")[4:]] == ["y", "z"]
    earlier = (tmp_path / "tokens.csv").read_text(encoding="utf-8").replace("per_epoch", "count")
    (tmp_path / "tokens.csv").write_text(earlier, encoding="utf-8")
    with pytest.raises(MTScaffoldError, match="remove it and run the experiment again"):
        read_trained_tokens(tmp_path / "tokens.csv")


def test_sides_with_their_own_rows(tmp_path: Path) -> None:
    """An encoder has no output, so that its indicator is the norm of its rows, and it has no losses."""
    model = {"encoder.embed_tokens.weight": torch.ones(6, 2), "decoder.embed_tokens.weight": torch.eye(5)}
    torch.save({"model": model}, tmp_path / "model.pt")
    sides = {"encoder": SideTokens([("x", 1), ("y", 1)], {"x": 1, "y": 1}), "decoder": SideTokens([("z", 1)], {"z": 1})}
    write_trained_tokens(tmp_path / "model.pt", sides, [], tmp_path / "tokens.csv")
    rows = table(tmp_path / "tokens.csv")
    assert [row["side"] for row in rows] == ["target"] * 5 + ["source"] * 6
    assert [row["target_per_epoch"] for row in rows] == ["", "", "", "", "1"] + [""] * 6
    assert [row["token"] for row in read_trained_tokens(tmp_path / "tokens.csv")] == [row["token"] for row in rows[:5]]
    assert {row["indicator"] for row in rows[5:]} == {"1.41421"}
    assert {row["output_cosine_distance"] for row in rows[5:]} == {""}
    # Tied to the output, which is not stored separately.
    assert symbol_rows(tmp_path / "model.pt")["decoder"].tied


def test_a_model_without_a_row_per_symbol_has_counts_only(tmp_path: Path) -> None:
    """An experiment with adaptive inputs still completes; a wrong dictionary is an error."""
    torch.save({"model": {"decoder.embed_tokens.embeddings.0.0.weight": torch.eye(5)}}, tmp_path / "model.pt")
    sides = {"decoder": SideTokens([("z", 1)], {"z": 1}, unknown=False)}
    (problem,) = write_trained_tokens(tmp_path / "model.pt", sides, [], tmp_path / "tokens.csv")
    assert problem.startswith("the decoder has no matrix with one row per symbol")
    rows = table(tmp_path / "tokens.csv")
    assert [(row["token"], row["per_epoch"], row["indicator"]) for row in rows[4:]] == [("z", "1", "")]
    assert [row["token"] for row in rows if row["unused"] == "1"] == ["<s>", "<pad>", "<unk>"]
    torch.save({"model": {"decoder.embed_tokens.weight": torch.eye(6)}}, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match=r"has 6 rows of embeddings, but its dictionary 5 symbols"):
        write_trained_tokens(tmp_path / "model.pt", sides, [], tmp_path / "tokens.csv")
