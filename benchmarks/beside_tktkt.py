"""TkTkT's ScaffoldBPE and PickyBPE: their commands, and how what they learn compares with ours.

benchmarks/tktkt.md explains what differs, and why.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import systems
from systems import BIN, HERE, OUT, Command

PYTHON = OUT / "tktkt" / "bin" / "python"
SCAFFOLD, PICKY = "TkTkT, ScaffoldBPE", "TkTkT, PickyBPE"
IMPORTING = "TkTkT, imported"
ALGORITHMS = {SCAFFOLD: "scaffold", PICKY: "picky"}
OURS = {SCAFFOLD: systems.SCAFFOLD, PICKY: systems.PICKY}
# What its ScaffoldBPE takes half a minute for.
BYTES = 4_000_000
SYMBOLS = (1_000, 4_000)
VERSIONS = ("tktkt", "pickybpe_bauwenst", "transformers", "torch")


def _program(*arguments: object, output: Path | None = None) -> Command:
    return Command((str(PYTHON), str(HERE / "peers" / "tktkt_models.py"), *map(str, arguments)), output)


def importing() -> Command:
    """Import TkTkT: what each of its other commands starts with."""
    return _program("import", "-", "-", "-")


def learn(system: str, corpus: Path, model: Path, symbols: int) -> Command:
    """Learn ``symbols`` merged tokens."""
    if system in ALGORITHMS:
        return _program(f"learn-{ALGORITHMS[system]}", corpus, model, symbols, output=model)
    return systems.learn(system, corpus, model, symbols)


def apply(system: str, corpus: Path, model: Path, output: Path) -> Command:
    """Segment a text."""
    if system in ALGORITHMS:
        return _program("apply", corpus, model, output, output=output)
    return systems.apply(system, corpus, model, output)


def slice_of(corpus: Path, output: Path) -> Path:
    """The first lines of a corpus, up to some 4 MB."""
    with corpus.open("rb") as source:
        output.write_bytes(b"".join(source.readlines(BYTES)))
    return output


def word_counts(corpus: Path) -> Counter[str]:
    """Words between white space, which TkTkT and mt_scaffold count alike where it is spaces and line ends."""
    with corpus.open(encoding="utf-8", newline="\n") as lines:
        return Counter(word for line in lines for word in line.split())


def vocabulary(model: dict[str, Any]) -> dict[str, int]:
    """How many merges a model of TkTkT has, and tokens that merges made, which of them are removed or scaffold."""
    if model["algorithm"] == "scaffold":
        merged = {a + b for a, b in model["merges"]}
        scaffold = set(model["scaffold"])
        return {
            "merges": len(model["merges"]),
            "normal": len(merged - scaffold),
            "removed": len(merged & scaffold),
            "base symbols removed": len(scaffold - merged),
        }
    merged = {"".join(tokens) for is_merge, tokens in model["events"] if is_merge}
    types = set(model["types"])
    merges = sum(is_merge for is_merge, _ in model["events"])
    return {"merges": merges, "normal": len(merged & types), "removed": len(merged - types), "base symbols removed": 0}


def compare(
    run: Callable[[Command], object], system: str, counts: Counter[str], model: Path, codes: Path, folder: Path
) -> dict[str, Any]:
    """Segment every word of the corpus with TkTkT's model and our codes; count subwords, words that differ or fail.

    Subwords are compared for words that TkTkT can segment only, and their boundaries where both mark the ends of words.
    """
    words, own, other = folder / "words", folder / "own", folder / "other"
    words.write_text("".join(f"{word}\n" for word in counts), encoding="utf-8")
    run(_program("words", words, model, other, output=other))
    run(
        Command(
            (str(BIN / "mt-scaffold"), "apply-bpe", "--codes", str(codes), "--input", str(words), "--output", str(own)),
            own,
        )
    )
    failed: Counter[str] = Counter()
    subwords: Counter[str] = Counter()
    failing_words, differing_words, compared_words = 0, 0, 0
    for word, ours, theirs in zip(counts, _lines(own), _lines(other), strict=True):
        if theirs.startswith("!"):
            failed[theirs[1:]] += 1
            failing_words += counts[word]
            continue
        mine = [subword.removesuffix("@@") for subword in ours.split(" ")]
        subwords["ours"] += counts[word] * len(mine)
        subwords["theirs"] += counts[word] * len(theirs.split(" "))
        compared_words += 1
        differing_words += mine != theirs.removesuffix("</w>").split(" ")
    return {
        **vocabulary(json.loads(model.read_text(encoding="utf-8"))),
        "word types": len(counts),
        "failed word types": sum(failed.values()),
        "failed words": failing_words / counts.total(),
        "errors": dict(failed),
        "differing word types": differing_words / max(compared_words, 1) if system == SCAFFOLD else None,
        "subwords": subwords["theirs"] / max(subwords["ours"], 1),
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]
