"""A fairseq transformer as fairseq initialises and saves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

SIZES = (
    "--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--decoder-ffn-embed-dim 64 --encoder-attention-heads 2 --decoder-attention-heads 2"
)


class Built(NamedTuple):
    """A fairseq model, in memory and as a checkpoint."""

    task: Any
    model: Any
    checkpoint: Path


def initialised(data: Path, path: Path, options: str, seed: int) -> tuple[Built, Any]:
    """Return a model as fairseq initialises it, not yet saved, and its configuration."""
    import torch
    from fairseq import tasks
    from fairseq_training import fairseq_config

    arguments = [str(data), "--source-lang", "en", "--target-lang", "de", "--task", "translation_resumable", "--cpu"]
    cfg = fairseq_config([*arguments, "--arch", "transformer", "--max-tokens", "100", *options.split()])
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(seed)
    return Built(task, task.build_model(cfg.model).eval(), path), cfg


def saved(built: Built, cfg: Any) -> Built:
    """Save the model as fairseq-train does."""
    import torch
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    state = {"args": None, "cfg": plain, "model": built.model.state_dict()}
    rest = {"optimizer_history": history, "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}}
    torch.save(state | rest, built.checkpoint)
    return built
