"""The examples of benchmarks/tktkt.md: our side of each, which the page derives by hand from the papers' algorithms."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.analysis.reference import ReferenceBPE, learn
from mt_scaffold.analysis.reference_picky import MergeEvent, learn_picky

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = json.loads((ROOT / "benchmarks" / "tktkt_examples.json").read_text(encoding="utf-8"))
for _example in EXAMPLES:
    if "letters" in _example:  # each letter is a word of its own, too
        _example["words"] |= dict.fromkeys(sorted(set("".join(_example["words"]))), _example["letters"])

examples = pytest.mark.parametrize("example", EXAMPLES, ids=[example["name"] for example in EXAMPLES])


def reference_lines(example: dict[str, Any]) -> list[str]:
    """What the reference in plain Python learns, as the lines of a codes file."""
    if example["algorithm"] == "picky":
        picky = learn_picky(
            example["words"], example["symbols"], example.get("threshold", 0.9), end_of_word=example["end_of_word"]
        )
        return [
            " ".join(event.pair) if isinstance(event, MergeEvent) else " ".join(("split", event.token, *event.pieces))
            for event in picky.events
        ]
    learned = learn(example["words"], example["symbols"], end_of_word=example["end_of_word"])
    return [f"{a} {b}" + " scaffold" * (a + b in learned.scaffold) for a, b in learned.merges]


@examples
def test_our_side_of_the_examples(example: dict[str, Any]) -> None:
    """The reference and the native core learn what the page says that Algorithm 1, or PickyBPE, gives."""
    [expected] = example["ours"]["codes"]
    assert reference_lines(example) == expected
    # A word a line, and no mark of its end where the example has none.
    lines = [word for word, count in example["words"].items() for _ in range(count)]
    learned = learn_bpe(
        lines=lines,
        num_symbols=example["symbols"],
        algorithm=example["algorithm"],
        pretokenise="spaces" if example["end_of_word"] else "gpt2",
        **({"threshold": example["threshold"]} if "threshold" in example else {}),
    )
    assert learned.text.decode().splitlines()[1:] == expected
    for word, subwords in example["ours"].get("segmented", {}).items():
        assert BPE(learned.text).segment(word) == subwords
        merges = [(line.split()[0], line.split()[1]) for line in expected]
        scaffold = {"".join(line.split()[:2]) for line in expected if line.endswith(" scaffold")}
        reference = ReferenceBPE(merges, scaffold, end_of_word=example["end_of_word"])
        assert " ".join(reference.segment_word(word)) == subwords


@examples
def test_the_page_has_every_example(example: dict[str, Any]) -> None:
    """Each example has its heading in benchmarks/tktkt.md, followed by its words, and by the codes of both sides."""
    page = (ROOT / "benchmarks" / "tktkt.md").read_text(encoding="utf-8")
    _, _, section = page.partition(f"\n### {example['name']}\n")
    section = re.split(r"\n##+ ", section)[0]
    stated = re.sub(r"\s+", " ", section)
    letters = {word for word in example["words"] if "letters" in example and len(word) == 1}
    for word, count in example["words"].items():
        assert word in letters or f"`{word}` {count}" in stated
    [ours] = example["ours"]["codes"]
    assert f"| mt_scaffold | {'; '.join(f'`{line}`' for line in ours)} |" in section
    theirs = example["tktkt"]
    for codes in theirs.get("codes", []):
        assert "; ".join(f"`{line}`" for line in codes) in section
    assert "error" not in theirs or f"`{theirs['error']}`" in section
