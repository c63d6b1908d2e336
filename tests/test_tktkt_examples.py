"""The examples of benchmarks/tktkt.md: our side of each, which the page derives by hand from the papers' algorithms."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from learning import learn_with

from mt_scaffold import BPE

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from beside_tktkt import ours, read_examples  # noqa: E402

EXAMPLES = read_examples()
examples = pytest.mark.parametrize("example", EXAMPLES, ids=[example["name"] for example in EXAMPLES])


@examples
def test_our_side_of_the_examples(example: dict[str, Any]) -> None:
    """The reference and the native core learn what the page says that Algorithm 1, or PickyBPE, gives."""
    assert ours(example) == example["ours"]
    [expected] = example["ours"]["codes"]
    # A word a line, and no mark of its end where the example has none.
    lines = [word for word, count in example["words"].items() for _ in range(count)]
    learned = learn_with(
        lines=lines,
        num_symbols=example["symbols"],
        algorithm=example["algorithm"],
        pretokenise="spaces" if example["end_of_word"] else "gpt2",
        **({"threshold": example["threshold"]} if "threshold" in example else {}),
    )
    assert learned.text.decode().splitlines()[1:] == expected
    for word, subwords in example["ours"].get("segmented", {}).items():
        assert BPE(learned.text).segment(word) == subwords


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
    [lines] = example["ours"]["codes"]
    assert f"| mt_scaffold | {'; '.join(f'`{line}`' for line in lines)} |" in section
    theirs = example["tktkt"]
    for codes in theirs.get("codes", []):
        assert "; ".join(f"`{line}`" for line in codes) in section
    assert "error" not in theirs or f"`{theirs['error']}`" in section
