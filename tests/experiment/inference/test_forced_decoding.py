"""Forced decoding of the references: known answers, and the probabilities that fairseq-generate prints."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import torch

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.dictionary import read_symbols
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.evaluation.losses import references
from mt_scaffold.experiment.evaluation.losses.loss_split import LossSplit
from mt_scaffold.experiment.evaluation.losses.references import ForcedDecoding, forced_decode, reference_losses
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.fairseq import run_tool, user_dir
from mt_scaffold.experiment.runtime.results import read_result


def test_a_model_that_knows_nothing_gives_all_symbols_the_same(
    tiny_data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """The known answer: with embeddings of zero, every token of every reference costs log2 of the symbols."""
    state = load_checkpoint(tiny_model / "checkpoints" / "checkpoint_last.pt")
    symbols = len(state["model"]["decoder.embed_tokens.weight"])
    for name in state["model"]:
        if "embed_tokens" in name or "output_projection" in name:
            state["model"][name] = torch.zeros_like(state["model"][name])
    torch.save(state, tmp_path / "zero.pt")
    found = forced_decode(tmp_path / "zero.pt", tiny_data, "odd.1", max_tokens=50)
    assert len(found.ids) == len(found.log2_probabilities) == 13
    for ids, probabilities in zip(found.ids, found.log2_probabilities, strict=True):
        assert ids[-1] == 2 and len(ids) == len(probabilities)
        assert probabilities == pytest.approx([-math.log2(symbols)] * len(ids), rel=1e-6)


def test_the_probabilities_are_those_of_score_reference(tiny_data: Path, tiny_model: Path, tmp_path: Path) -> None:
    """Token by token, for any batches."""
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    arguments = [str(tiny_data), "--path", str(model), "--gen-subset", "odd.1", "--score-reference", "--cpu"]
    arguments += ["--source-lang", "en", "--target-lang", "de", "--task", "translation", "--no-progress-bar"]
    arguments += ["--required-batch-size-multiple", "1", "--results-path", str(tmp_path), "--user-dir", str(user_dir())]
    run_tool("generate", arguments, tmp_path / "log")
    printed = (tmp_path / "generate-odd.1.txt").read_text(encoding="utf-8")
    lines = {int(number): values for number, values in re.findall(r"^P-(\d+)\t(.*)$", printed, re.MULTILINE)}
    assert len(lines) == 13
    for max_tokens in (1, 200):
        found = forced_decode(model, tiny_data, "odd.1", max_tokens=max_tokens)
        for number, probabilities in enumerate(found.log2_probabilities):
            assert probabilities == pytest.approx([float(each) for each in lines[number].split()], abs=1e-4)


def test_words_are_segmented_without_dropout(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """A folder of words, for a system that resamples, gives the same as the folder of ids."""
    segmentation = joint_segmentation(tiny_words / "codes")
    names = [tiny_words / name for name in ("train", "valid", "odd.1")]
    binarise_words(tmp_path / "data", "en", "de", segmentation, names[0], names[1], names[2:], tiny_data)
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    ours, other = (forced_decode(model, data, "odd.1") for data in (tmp_path / "data", tiny_data))
    assert [each.tolist() for each in ours.ids] == [each.tolist() for each in other.ids]
    assert np.concatenate(ours.log2_probabilities) == pytest.approx(np.concatenate(other.log2_probabilities), abs=1e-5)


def test_what_cannot_be_decoded(tiny_data: Path, tiny_model: Path, tmp_path: Path) -> None:
    """The error names the missing subset or model."""
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    with pytest.raises(UsageError, match="no subset called test"):
        forced_decode(model, tiny_data, "test")
    with pytest.raises(MTScaffoldError, match="no such model"):
        forced_decode(tmp_path / "none.pt", tiny_data, "odd.1")


def test_bits_per_byte_of_a_model_that_knows_nothing(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The known answer: log2 of the symbols for each subword and end; <unk> inside a word is counted, not refused."""
    pytest.importorskip("sacrebleu")
    from mt_scaffold.experiment.evaluation.measures import Labelled, TranslationScores
    from mt_scaffold.experiment.evaluation.score import Scoring, Texts, score

    symbols, target = read_symbols(tiny_data / "dict.de.txt"), tiny_words / "odd.1.de"
    decoded = forced_decode(tiny_model / "checkpoints" / "checkpoint_last.pt", tiny_data, "odd.1")
    number, ids = next((n, ids) for n, ids in enumerate(decoded.ids) if symbols[ids[0]].endswith("@@"))
    ids[0] = 3
    flat = [np.full(len(each), -math.log2(len(symbols))) for each in decoded.ids]
    monkeypatch.setattr(references, "forced_decode", lambda *_, **__: ForcedDecoding(decoded.ids, flat, []))
    files = (tiny_model, tiny_data, "odd.1", target, target, tiny_words / "train.de", tmp_path / "losses.json")
    split = reference_losses(*files, system="x", seed=1)
    assert split.unknown is not None and number in split.unknown
    assert split.unknown == [place for place, each in enumerate(decoded.ids) if 3 in each]
    score(Texts(target, [target]), tmp_path / "scores.json", Scoring(metrics=["bleu"]))
    labelled = Labelled("", None, tmp_path / "scores.json", tmp_path / "losses.json")
    ((found,), _) = TranslationScores().read([labelled])
    kept = [place for place in range(13) if place not in split.unknown]
    lines = target.read_text(encoding="utf-8").splitlines()
    tokens, size = sum(len(decoded.ids[place]) for place in kept), sum(len(lines[place].encode()) for place in kept)
    expected = tokens * math.log2(len(symbols)) / size
    assert found.values["reference_bits_per_byte"] == pytest.approx(expected)


def test_a_sentence_that_is_too_long_is_left_out(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no losses and is counted; the others keep theirs."""
    from fairseq.models.transformer import TransformerModel

    model, target = tiny_model / "checkpoints" / "checkpoint_last.pt", tiny_words / "odd.1.de"
    files = (model, tiny_data, "odd.1", target, target, tiny_words / "train.de", tmp_path / "losses.json")
    whole, decoded = reference_losses(*files, system="x", seed=1), forced_decode(model, tiny_data, "odd.1")
    longest = max(len(ids) for ids in decoded.ids)
    monkeypatch.setattr(TransformerModel, "max_positions", lambda _: (1000, longest - 1))
    cut = reference_losses(*files, system="x", seed=1)
    left_out = [number for number, ids in enumerate(decoded.ids) if len(ids) == longest]
    assert (
        whole.too_long is None and cut.too_long == left_out and read_result(LossSplit, tmp_path / "losses.json") == cut
    )
    before, after = whole.bits_of_each(), cut.bits_of_each()
    kept = [number for number in range(13) if number not in left_out]
    assert [after[number] for number in kept] == pytest.approx([before[number] for number in kept], abs=1e-4)
    assert [after[number] for number in left_out] == [0.0] * len(left_out)
    assert cut.sizes == whole.sizes and cut.bytes == sum(cut.sizes[number] for number in kept)


def test_a_reference_divides_into_its_words(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word's bits are those of its subwords in forced decoding; classes follow the words of the training text."""
    model = tiny_model / "checkpoints" / "checkpoint_last.pt"
    target = tiny_words / "odd.1.de"
    found = reference_losses(
        model, tiny_data, "odd.1", target, target, tiny_words / "train.de", tmp_path / "losses.json", system="x", seed=1
    )
    assert found == read_result(LossSplit, tmp_path / "losses.json")
    decoded = forced_decode(model, tiny_data, "odd.1")
    whole = [-float(each.sum()) for each in decoded.log2_probabilities]
    for parts in (found.by_count, found.by_rank):
        assert np.sum([part.bits for part in parts.values()], axis=0) == pytest.approx(whole)
    lines = target.read_text(encoding="utf-8").splitlines()
    assert found.sizes == [len(line.encode()) for line in lines] and found.bytes == sum(found.sizes)
    trained = Counter((tiny_words / "train.de").read_text(encoding="utf-8").split())
    unseen = [word for line in lines for word in line.split() if word not in trained]
    assert unseen and sum(found.by_count["0"].words) == len(unseen)
    assert sum(found.by_count["0"].bytes) == sum(len(word.encode()) for word in unseen)
    # By hand: the subwords of the first sentence, joined at those that do not end in @@.
    symbols = read_symbols(tiny_data / "dict.de.txt")
    bits, expected = 0.0, 0.0
    words = iter(lines[0].split())
    for number, probability in zip(decoded.ids[0][:-1], decoded.log2_probabilities[0], strict=False):
        bits -= float(probability)
        if not symbols[number].endswith("@@"):
            expected += bits if next(words) not in trained else 0.0
            bits = 0.0
    assert found.by_count["0"].bits[0] == pytest.approx(expected)
    (tmp_path / "other").write_text("".join(f"{line} more\n" for line in lines), encoding="utf-8")
    with pytest.raises(MTScaffoldError, match="line 1 has"):
        reference_losses(
            model, tiny_data, "odd.1", tmp_path / "other", target, target, tmp_path / "x.json", system="x", seed=1
        )
    # The sentence in the data is empty, but the text has words.
    decoded.ids[0], decoded.log2_probabilities[0] = np.array([2]), np.array([-1.0])
    monkeypatch.setattr(references, "forced_decode", lambda *_, **__: decoded)
    with pytest.raises(MTScaffoldError, match=r"line 1 has \d+ words, but 0 in"):
        reference_losses(model, tiny_data, "odd.1", target, target, target, tmp_path / "x.json", system="x", seed=1)
