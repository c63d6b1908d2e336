"""Rerun the examples of benchmarks/tktkt.md: what mt_scaffold makes of a few words, and what TkTkT makes of them.

    benchmarks/out/venv/bin/python benchmarks/tktkt_examples.py [--python INTERPRETER]

Our side comes from mt_scaffold's references in plain Python, TkTkT's from its own code. Exits with status 1 if either
differs from tktkt_examples.json, which has what the page says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mt_scaffold.analysis.reference import ReferenceBPE, learn
from mt_scaffold.analysis.reference_picky import MergeEvent, learn_picky

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE / "tktkt_examples.json"
PYTHON = HERE / "out" / "tktkt" / "bin" / "python"


def read_examples() -> list[dict[str, Any]]:
    """The examples; where one asks for it, each letter is a word of its own, too."""
    examples: list[dict[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    for example in examples:
        if "letters" in example:
            letters = sorted(set("".join(example["words"])))
            example["words"] |= dict.fromkeys(letters, example["letters"])
    return examples


def ours(example: dict[str, Any]) -> dict[str, Any]:
    """The codes of an example, without the first line, and words segmented with them."""
    words, symbols, end_of_word = example["words"], example["symbols"], example["end_of_word"]
    if example["algorithm"] == "picky":
        events = learn_picky(words, symbols, example.get("threshold", 0.9), end_of_word=end_of_word).events
        lines = [
            " ".join(event.pair) if isinstance(event, MergeEvent) else " ".join(("split", event.token, *event.pieces))
            for event in events
        ]
        return {"codes": [lines]}
    learned = learn(words, symbols, end_of_word=end_of_word)
    lines = [f"{a} {b}" + " scaffold" * (a + b in learned.scaffold) for a, b in learned.merges]
    found: dict[str, Any] = {"codes": [lines]}
    if "segment" in example:
        bpe = ReferenceBPE(learned.merges, learned.scaffold, end_of_word=end_of_word)
        found["segmented"] = {word: " ".join(bpe.segment_word(word)) for word in example["segment"]}
    return found


def theirs(examples: list[dict[str, Any]], python: Path) -> list[dict[str, Any]]:
    """The same of TkTkT, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "examples.json", Path(folder) / "results.json"
        asked.write_text(json.dumps(examples), encoding="utf-8")
        program = HERE / "peers" / "tktkt_models.py"
        subprocess.run([python, program, "examples", asked, "-", answered], check=True, stderr=subprocess.DEVNULL)
        results: list[dict[str, Any]] = json.loads(answered.read_text(encoding="utf-8"))
    return results


def show(found: dict[str, Any]) -> str:
    """A result in one line."""
    if "error" in found:
        return str(found["error"])
    parts = [" or ".join(", ".join(lines) for lines in found["codes"])]
    if found.get("scaffold base symbols"):
        parts.append(f"base symbols that are scaffold: {' '.join(found['scaffold base symbols'])}")
    parts += [f"{word} → {subwords}" for word, subwords in found.get("segmented", {}).items()]
    return "; ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=PYTHON, help="with TkTkT installed (default: %(default)s)")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"benchmarks: {options.python}: not found; run benchmarks/install.py", file=sys.stderr)
        return 1
    examples = read_examples()
    different = 0
    for example, of_tktkt in zip(examples, theirs(examples, options.python), strict=True):
        print(example["name"])
        for name, key, found in (("mt_scaffold", "ours", ours(example)), ("TkTkT", "tktkt", of_tktkt)):
            as_written = found == example[key]
            different += not as_written
            print(f"  {name:12} {show(found)}" + ("" if as_written else f"\n  EXPECTED     {show(example[key])}"))
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
