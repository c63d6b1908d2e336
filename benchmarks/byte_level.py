"""The byte-level tasks, each as the commands of all systems: learning, counting, encoding into ids, decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from systems import BIN, BPE, HERE, OURS, OUT, Command

WORK = OUT / "work"
TIKTOKEN, TOKENIZERS, RS_BPE = "tiktoken", "tokenizers", "rs-bpe"
LEARNING = (TOKENIZERS, "rustbpe", "bpeasy")
# Vocabularies: our own 32,000 tokens after GPT-2's pattern, and the published ones that rs-bpe has.
OWN, PUBLISHED = "gpt2, 32,000", "cl100k_base"
ENCODING = {OWN: (TIKTOKEN, TOKENIZERS), PUBLISHED: (TIKTOKEN, TOKENIZERS, RS_BPE)}
# The models are the same for every system, in its own format.
_MODELS = {BPE: "codes", TIKTOKEN: "ranks", TOKENIZERS: "tokenizer", RS_BPE: "codes"}
_NAMES = {OWN: "gpt2", PUBLISHED: "cl100k"}


def _python(program: str, *arguments: object, output: Path | None = None) -> Command:
    return Command((str(BIN / "python"), str(HERE / program), *map(str, arguments)), output)


def learn(system: str, corpus: Path, model: Path, vocabulary: int) -> Command:
    """Learn a vocabulary of that size, the 256 bytes included, after GPT-2's pattern."""
    if system in OURS:
        return Command(
            (
                *(str(BIN / "mt-scaffold"), "learn-bpe", "--algorithm", OURS[system], "--pretokenise", "gpt2"),
                *("--total-symbols", "--symbols", str(vocabulary)),
                *("--input", str(corpus), "--output", str(model)),
            ),
            model,
        )
    return _python(f"peers/{system}_bytes.py", "learn", corpus, model, vocabulary, output=model)


def count(corpus: Path, threads: int) -> Command:
    """Count the words of a text after GPT-2's pattern."""
    output = WORK / "counts"
    return Command(
        (
            *(str(BIN / "mt-scaffold"), "count-words", "--pretokenise", "gpt2", "--num-workers", str(threads)),
            *("--input", str(corpus), "--output", str(output)),
        ),
        output,
    )


def model(system: str, vocabulary: str) -> Path:
    """Where ``models`` leaves the model of a system."""
    return WORK / f"{_NAMES[vocabulary]}-{_MODELS[system]}"


def models(run: Callable[[Command], object], corpus: Path, vocabulary: str, symbols: int) -> None:
    """Make the models of a vocabulary in all formats."""
    codes = model(BPE, vocabulary)
    if vocabulary == OWN:
        run(learn(BPE, corpus, codes, symbols))
        ranks = model(TIKTOKEN, vocabulary)
    else:
        run(_python("published_tokens.py", codes, model(TIKTOKEN, vocabulary), output=codes))
        # Its ranks are those of the publisher, who numbers bytes otherwise; the tokens are the same.
        ranks = WORK / f"{_NAMES[vocabulary]}-by-value"
    run(_python("model_files.py", codes, ranks, model(TOKENIZERS, vocabulary), output=ranks))


def encode(system: str, vocabulary: str, how: str, corpus: Path, output: Path, check: bool = False) -> Command:
    """Encode a whole text (``text``) or its lines in a batch (``lines``); check: write the ids, not their number."""
    options = ["--check"] if check else []
    return _python(_program(system), "encode", how, corpus, model(system, vocabulary), output, *options, output=output)


def decode(system: str, how: str, ids: Path, output: Path) -> Command:
    """Decode ids, given as a list or an array."""
    return _python(_program(system), "decode", how, ids, model(system, OWN), output, output=output)


def _program(system: str) -> str:
    name = "mt_scaffold" if system == BPE else system.replace("-", "_")
    return f"peers/{name}_ids.py"


def same(outputs: Iterable[Path]) -> bool:
    """Whether all outputs are equal."""
    return len({path.read_bytes() for path in outputs}) == 1
