"""Time MTScaffoldTokenizer next to BPE.encode_batch: one text, and texts that are padded, as arrays and as lists.

python benchmarks/batches.py TEXT [--megabytes 10] [--symbols 8000] [--repeat 20]

Scaffold-BPE of bytes, after GPT-2's pattern, is learned from the text. The calls of a round follow one another, so that
they share what the machine does meanwhile. Prints the fastest of each, and its ratio to that of encode_batch, by the
clock and in processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mt_scaffold import BPE, learn_bpe
from mt_scaffold.integrations.transformers import MTScaffoldTokenizer


def fastest(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least seconds of each call, by the clock and of processor time."""
    least = dict.fromkeys(calls, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, call in calls.items():
            clock, processor = time.perf_counter(), time.process_time()
            result = call()
            taken = time.perf_counter() - clock, time.process_time() - processor
            del result
            least[name] = min(least[name][0], taken[0]), min(least[name][1], taken[1])
    return least


def called(tokenizer: Any, texts: list[str], asked: dict[str, Any]) -> Any:
    """Return what the tokenizer makes of the texts."""
    return tokenizer(texts, verbose=False, **asked)


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, metavar="TEXT")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--symbols", type=int, default=8_000)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    with open(options.text, "rb") as stream:
        text = stream.read(int(options.megabytes * 1e6)).decode("utf-8", "ignore")
    with tempfile.TemporaryDirectory() as folder:
        sample, codes = Path(folder) / "text", Path(folder) / "codes"
        sample.write_text(text, encoding="utf-8", newline="")
        learn_bpe(paths=[sample], outfile=codes, num_symbols=options.symbols, pretokenise="gpt2")
        bpe, plain, padded = BPE(codes), MTScaffoldTokenizer(codes), MTScaffoldTokenizer(codes)
    padded.add_special_tokens({"pad_token": "<pad>"})
    for size in (len(text), 10_000, 2_000):
        texts = [text[at : at + size] for at in range(0, len(text), size)]
        wanted: dict[str, tuple[MTScaffoldTokenizer, dict[str, Any]]] = {
            "lists": (plain, {}),
            "lists, an added token": (padded, {}),
        }
        if len(texts) == 1:
            wanted["arrays"] = plain, {"return_tensors": "np"}
            wanted["arrays, an added token"] = padded, {"return_tensors": "np"}
        else:
            wanted["padded arrays"] = padded, {"return_tensors": "np", "padding": True}
            wanted["padded arrays, no mask"] = padded, {**wanted["padded arrays"][1], "return_attention_mask": False}
        calls: dict[str, Callable[[], Any]] = {"encode_batch": partial(bpe.encode_batch, texts)}
        for name, (tokenizer, asked) in wanted.items():
            calls[name] = partial(called, tokenizer, texts, asked)
        least = fastest(calls, options.repeat)
        clock, processor = least["encode_batch"]
        for name, (by_clock, of_processor) in least.items():
            print(
                f"{len(texts):5,} texts, {name:24} {by_clock * 1e3:6.1f} ms, {by_clock / clock:.2f} times "
                f"({of_processor / processor:.2f} in processor time)",
                flush=True,
            )


if __name__ == "__main__":
    main()
