"""Trim an imported vocabulary by a text, and remove the same tokens with skeletoken, where that is installed.

    python benchmarks/trimming.py VOCABULARY TEXT [--held-out 61411] [--below 1 10 100] [--width 4096]

VOCABULARY is what ``mt-scaffold import`` reads and ``export-tokenizers`` writes. Tokens are counted in TEXT but for its
last lines, which are held out: subwords that they gain, ids and parameters of one embedding matrix that go, and how
many of the tokens left in skeletoken's ``tokenizer.json`` no text gets any more.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mt_scaffold import BPE
from mt_scaffold.cli import main as mt_scaffold


def run(*arguments: object) -> None:
    """Run a command of mt-scaffold."""
    if mt_scaffold([str(argument) for argument in arguments]):
        raise SystemExit(1)


def subwords(codes: Path, lines: Sequence[str]) -> int:
    return len(BPE(codes).encode_batch(lines, disallowed_special=())[0])


def subwords_of(tokenizer: Any, lines: Sequence[str]) -> int:
    return sum(len(each.ids) for each in tokenizer.encode_batch_fast(lines, add_special_tokens=False))


def with_skeletoken(content: str, removed: Sequence[str], lines: Sequence[str], before: int) -> str:
    """Return what skeletoken makes of the same tokens, as text."""
    from skeletoken import TokenizerModel
    from tokenizers import Tokenizer

    tokenizer: Any = TokenizerModel.from_string(content).remove_tokens_from_vocabulary(list(removed)).to_tokenizer()
    # A token that its own spelling does not give comes from no text.
    whole: Any = Tokenizer.from_str(json.dumps({**json.loads(tokenizer.to_str()), "pre_tokenizer": None}))
    left = list(tokenizer.get_vocab(False))
    found = whole.encode_batch_fast(left, add_special_tokens=False)
    lost = [token for token, each in zip(left, found, strict=True) if len(each.ids) != 1]
    gain = 100 * (subwords_of(tokenizer, lines) / before - 1)
    example = f", such as {lost[0]}" if lost else ""
    return f"{len(left):,} tokens left, {len(lost):,} of them never made{example}; held-out subwords {gain:+.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", type=Path, metavar="VOCABULARY")
    parser.add_argument("text", type=Path, metavar="TEXT")
    parser.add_argument("--held-out", type=int, default=61_411, metavar="LINES")
    parser.add_argument("--below", type=int, nargs="+", default=[1, 10, 100], metavar="FREQ")
    parser.add_argument("--width", type=int, default=4096)
    options = parser.parse_args()
    lines = options.text.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    held_out = lines[-options.held_out :]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, codes, exported = folder / "text", folder / "codes", folder / "tokenizer.json"
        text.write_text("\n".join(lines[: -options.held_out]) + "\n", encoding="utf-8")
        run("import", options.vocabulary, "--output", codes)
        run("export-tokenizers", "--codes", codes, "--pattern", "published", "--output", exported)
        content = exported.read_text(encoding="utf-8")
        by_id = {number: token for token, number in json.loads(content)["model"]["vocab"].items()}
        before = subwords(codes, held_out)
        print(f"{len(by_id):,} tokens; {before:,} subwords of {len(held_out):,} lines held out", flush=True)
        for below in options.below:
            trimmed, map_ = folder / "trimmed", folder / "map.json"
            run("trim", codes, "--below", below, "--input", text, "--output", trimmed, "--map", map_)
            ids = json.loads(map_.read_text(encoding="utf-8"))["ids"]
            left = sum(new is not None for new in ids)
            gain, saved = 100 * (subwords(trimmed, held_out) / before - 1), (len(ids) - left) * options.width / 1e6
            print(f"below {below}: {left:,} ids left, held-out subwords {gain:+.2f} %, {saved:.0f} M parameters saved")
            if find_spec("skeletoken") is not None:
                gone = [by_id[number] for number, new in enumerate(ids) if new is None and number in by_id]
                said = with_skeletoken(content, gone, held_out, before)
                print(f"  skeletoken {version('skeletoken')}: {said}", flush=True)


if __name__ == "__main__":
    main()
