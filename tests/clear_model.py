"""A fairseq transformer with clear choices: each sentence has two or three translations, of known probability.

In a model that is untrained, or hardly trained, many hypotheses are almost equal, and the winner depends on the order
in which a library sums. Here, greedy search, beam search and each length penalty prefer different translations as well,
but by margins larger than any rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.experiment.binarise.binarised_format import read_sentences
from mt_scaffold.experiment.binarise.pairs_as_ids import read_binarised
from mt_scaffold.experiment.inference.ctranslate2_engine import read_source
from mt_scaffold.experiment.inference.model_files import ModelFiles, data_folder_files

SIZES = (
    "--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2"
)
SHARED = f"{SIZES} --share-all-embeddings"
PRE_NORM = f"{SHARED} --encoder-normalize-before --decoder-normalize-before"

UPDATES = 200
SMOOTHING = 0.1


class Built(NamedTuple):
    """A fairseq model, in memory and as a checkpoint."""

    task: Any
    model: Any
    files: ModelFiles


def sources(data: Path, subset: str) -> list[list[int]]:
    return read_source(data, read_binarised(data), subset)


def initialised(data: Path, path: Path, options: str, seed: int) -> tuple[Built, Any]:
    """Return a model as fairseq initialises it, not yet saved, and its configuration."""
    import torch
    from fairseq import tasks
    from fairseq_training import fairseq_config

    arguments = [str(data), "--source-lang", "en", "--target-lang", "de", "--task", "translation_resumable", "--cpu"]
    cfg = fairseq_config([*arguments, "--arch", "transformer", "--max-tokens", "100", *options.split()])
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(seed)
    return Built(task, task.build_model(cfg.model).eval(), data_folder_files(path, data, "en", "de")), cfg


def saved(built: Built, cfg: Any) -> Built:
    """Save the model as fairseq-train does."""
    import torch
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    state = {"args": None, "cfg": plain, "model": built.model.state_dict()}
    rest = {"optimizer_history": history, "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}}
    torch.save(state | rest, built.files.checkpoint)
    return built


def alternatives(number: int, reference: Sequence[int], symbols: int) -> list[tuple[list[int], float]]:
    """Return translations of a sentence, made of its reference's subwords, and their probabilities.

    For every second sentence, the likelier translation is a prefix of the other one: the length penalty decides which
    wins. For the rest, the likeliest first subword leads to two translations that are each less likely than one that
    begins differently, which greedy search misses.
    """
    words = [*reference, *reference, *reference]
    if number % 2:
        short = 3 + number % 5
        return [(words[:short], 0.6), (words[: 3 * short + 4 + number % 3], 0.4)]
    length, special = 9 + number % 7, len(SPECIAL_SYMBOLS)
    first, second = (special + (words[place] + 7 + 4 * place) % (symbols - special) for place in (0, 1))
    likeliest = (words[:length], 0.46)
    return [likeliest, ([first, *words[1:length]], 0.3), ([first, second, *words[2 : length - 1]], 0.24)]


def train_clearly(built: Built, data: Path) -> None:
    """Train on the alternatives of odd.1 and test1 until the model has their probabilities."""
    import torch

    end, pad = built.task.target_dictionary.eos(), built.task.target_dictionary.pad()
    symbols = len(built.task.target_dictionary)
    texts = [text for subset in ("odd.1", "test1") for text in sources(data, subset)]
    references = [text for subset in ("odd.1", "test1") for text in read_sentences(data / f"{subset}.en-de.de")]
    rows = [(n, *each) for n, text in enumerate(references) for each in alternatives(n, text, symbols)]

    def padded(texts: list[list[int]]) -> Any:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], True, pad)

    source, lengths = padded([[*text, end] for text in texts]), torch.tensor([len(text) + 1 for text in texts])
    order = torch.tensor([number for number, _, _ in rows])
    given, wanted = padded([[end, *text] for _, text, _ in rows]), padded([[*text, end] for _, text, _ in rows])
    weights = torch.tensor([probability for _, _, probability in rows])[:, None] * (wanted != pad)
    # CTranslate2 leaves padding out of the softmax.
    others = torch.tensor([number for number in range(symbols) if number != pad])

    optimiser = torch.optim.Adam(built.model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.01, UPDATES, pct_start=0.1)
    built.model.train()
    for _ in range(UPDATES):
        encoded = built.model.encoder.reorder_encoder_out(built.model.encoder(source, lengths), order)
        scores = torch.log_softmax(built.model.decoder(given, encoded)[0], dim=-1)
        likely, rest = scores.gather(2, wanted[..., None])[..., 0], scores[..., others].mean(-1)
        loss = -(((1 - SMOOTHING) * likely + SMOOTHING * rest) * weights).sum() / weights.sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    built.model.eval()


def build_clear(data: Path, path: Path, seed: int = 1) -> Built:
    """Train a model with clear choices for odd.1 and test1 of ``tiny_data``, and save it."""
    built, cfg = initialised(data, path, f"{PRE_NORM} --dropout 0", seed)
    train_clearly(built, data)
    return saved(built, cfg)
