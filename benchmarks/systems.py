"""The measured systems, each as the commands that a user would type; ``threads`` None is the system's default."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
BIN = OUT / "venv" / "bin"

# The cores that every system may use; each starts its default number of threads.
CORES = 2
BPE, SCAFFOLD, PICKY = "mt_scaffold, BPE", "mt_scaffold, Scaffold-BPE", "mt_scaffold, PickyBPE"
OURS = {BPE: "bpe", SCAFFOLD: "scaffold", PICKY: "picky"}
# Another revision of mt_scaffold, measured alongside this one on request; those of OURS that older revisions have.
OLD = {"older mt_scaffold, BPE": "bpe", "older mt_scaffold, Scaffold-BPE": "scaffold"}
OLD_BIN = OUT / "old" / "bin"
SUBWORD_NMT, FASTBPE, YOUTOKENTOME, SENTENCEPIECE = "subword-nmt", "fastBPE", "YouTokenToMe", "sentencepiece"
WC = "wc"
# The peers that can segment, in the order of the tables; the others only learn.
SEGMENTING = (SUBWORD_NMT, FASTBPE, YOUTOKENTOME, "tokenizers", SENTENCEPIECE)
PEERS = (*SEGMENTING, "rustbpe", "gigabpe")
WITH_DROPOUT = (SUBWORD_NMT, YOUTOKENTOME)


@dataclass(frozen=True)
class Command:
    """A command line, the file that it writes, and the file for its standard input.

    to_stdout: whether to redirect its standard output to ``output``.
    """

    arguments: tuple[str, ...]
    output: Path | None
    stdin: Path | None = None
    to_stdout: bool = False


def _command(*arguments: object, output: Path | None, stdin: Path | None = None, to_stdout: bool = False) -> Command:
    return Command(tuple(map(str, arguments)), output, stdin, to_stdout)


def learn(system: str, corpus: Path, model: Path, vocabulary: int, threads: int | None = None) -> Command:
    """Learn ``vocabulary`` merges (or a vocabulary of that size, if the system counts that) from a text."""
    if system in OURS | OLD:
        algorithm = (OURS | OLD)[system]
        return _command(
            *(_mt_scaffold(system), "learn-bpe", "--algorithm", algorithm, "--symbols", str(vocabulary)),
            *(*_workers(threads), "--input", corpus, "--output", model),
            output=model,
        )
    if system == SUBWORD_NMT:
        return _command(
            *(BIN / "subword-nmt", "learn-bpe", "--symbols", str(vocabulary)),
            *("--input", corpus, "--output", model),
            output=model,
        )
    if system == FASTBPE:
        return _command(OUT / "fastbpe", "learnbpe", str(vocabulary), corpus, output=model, to_stdout=True)
    if system == YOUTOKENTOME:
        return _command(
            *(BIN / "yttm", "bpe", "--data", corpus, "--model", model, "--vocab_size", str(vocabulary)),
            output=model,
        )
    return _command(*_program(system), "learn", corpus, model, str(vocabulary), output=model)


def apply(
    system: str,
    corpus: Path,
    model: Path,
    output: Path,
    dropout: float = 0,
    threads: int | None = None,
) -> Command:
    """Segment a text with the model of a system."""
    leave_out = ["--dropout", str(dropout)] if dropout else []
    if system in OURS | OLD:
        seed = ["--seed", "1"] if dropout else []
        return _command(
            *(_mt_scaffold(system), "apply-bpe", "--codes", model, *_workers(threads), *leave_out, *seed),
            *("--input", corpus, "--output", output),
            output=output,
        )
    if system == SUBWORD_NMT:
        return _command(
            *(BIN / "subword-nmt", "apply-bpe", "--codes", model, *leave_out),
            *("--input", corpus, "--output", output),
            output=output,
        )
    if system == FASTBPE:
        return _command(OUT / "fastbpe", "applybpe", output, corpus, model, output=output)
    if system == YOUTOKENTOME:
        leave_out = ["--dropout_prob", str(dropout)] if dropout else []
        return _command(
            *(BIN / "yttm", "encode", "--model", model, "--output_type", "subword"),
            *leave_out,
            output=output,
            stdin=corpus,
            to_stdout=True,
        )
    return _command(*_program(system), "apply", corpus, model, output, output=output)


def count(corpus: Path) -> Command:
    """Run ``wc``: the cost of looking at every byte once."""
    return _command(WC, corpus, output=None)


def corpora(*arguments: str | Path) -> Command:
    """Generate a corpus (see corpora.py)."""
    return _command(sys.executable, HERE / "corpora.py", *arguments, output=None)


def _workers(threads: int | None) -> tuple[str, ...]:
    return () if threads is None else ("--num-workers", str(threads))


def _mt_scaffold(system: str) -> Path:
    return (OLD_BIN if system in OLD else BIN) / "mt-scaffold"


def _program(system: str) -> tuple[Path, Path]:
    return BIN / "python", HERE / "peers" / f"{system}_bpe.py"
