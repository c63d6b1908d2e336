"""``make demo``: show two segmentations side by side, run an experiment on generated text, and list its results."""

import argparse
import itertools
import signal
import subprocess
import sys
import time
from pathlib import Path

from mt_scaffold import BPE, Codes, Merge, learn_bpe
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.synthetic import sentence_pairs

ROOT = Path(__file__).resolve().parent.parent
CONFIG = Path("configs") / "demo.yaml"
OUTPUT = Path("experiments") / "demo"
# The systems without dropout; --full trains all.
FIRST = ("bpe", "scaffold")
SENTENCES = 3


def segmentations(config: Config) -> str:
    """Return the differences of the two codes of the experiment's text, and sentences segmented with both."""
    text = config.data.synthetic
    assert text is not None
    pairs = list(itertools.islice(sentence_pairs(text.seed, text.stems, text.clauses), text.pairs))
    lines = [sentence.rstrip(".?") for pair in pairs for sentence in pair]
    learned = {name: learn_bpe(lines=lines, num_symbols=config.codes.symbols, algorithm=name) for name in FIRST}
    codes = {name: Codes(each.text) for name, each in learned.items()}
    known = {each.token for each in codes["bpe"].merges if isinstance(each, Merge)}
    merges = [(each.token.removesuffix("</w>"), each) for each in codes["scaffold"].merges if isinstance(each, Merge)]
    scaffold = [token for token, each in merges if each.scaffold]
    added = [token for token, each in merges if not each.scaffold and each.token not in known]
    shown = [
        f"Two codes of {config.codes.symbols} tokens, learned from {len(lines):,} generated sentences:",
        f"  Scaffold-BPE splits {len(scaffold)} tokens again, such as {', '.join(scaffold[-8:])}",
        f"  and has others in their place, such as {', '.join(added[-8:])}",
        "",
    ]
    # Long words show the differences best.
    sentences = sorted((pair[1] for pair in pairs[:200]), key=lambda line: -max(map(len, line.split())))[:SENTENCES]
    for sentence in sentences:
        words = sentence.rstrip(".?")
        shown += [f"  {name:<9} {BPE(codes[name]).segment(words)}" for name in FIRST]
        shown.append("")
    return "\n".join(shown)


def translations(layout: TranslationLayout) -> str:
    """Return the first sentences of the test set: source, reference and the translation of each system."""
    config, test, seed = layout.config, layout.config.test_sets[0], layout.config.seeds[0]
    texts = {
        layout.source: layout.raw(test, layout.source),
        layout.target: layout.raw(test, layout.target),
        **{system: layout.translation(Run(system, seed), test) for system in config.systems},
    }
    columns = [(name, read_lines(path)[:SENTENCES]) for name, path in texts.items() if path.exists()]
    width = max(len(name) for name, _ in columns)
    blocks = ["\n".join(f"  {name:<{width}}  {lines[k]}" for name, lines in columns) for k in range(SENTENCES)]
    return "\n\n".join(blocks)


CAVEAT = """SYNTHETIC DATA: a small grammar generated these sentences. The scores show that every step works, but not
which system translates better: for that, run real data (below)."""


def guide(layout: TranslationLayout, cores: int) -> str:
    """Return the paths of the results and the next commands to run."""
    bpe, scaffold = (layout.codes_of(system)[0] for system in ("bpe", "scaffold"))
    test, seed = layout.config.test_sets[0], layout.config.seeds[0]
    target = layout.words(test, layout.target)
    results = {
        layout.comparison("txt"): "the table; also .md .tex .csv .json",
        layout.report: "everything on one page, for a browser",
        scaffold: "the learned codes; scaffold tokens are marked",
        layout.words("train", layout.source): "the training text",
        layout.translation(Run("scaffold", seed), test): "the translations",
        layout.raw(test, layout.target): "the reference",
    }
    listed = "\n".join(f"  {path!s:62} {content}" for path, content in results.items())
    return f"""The results are in {layout.folder}/:
{listed}

What to run next:
  source .venv/bin/activate
  # the test set's target side as both systems segment it
  diff -y <(mt-scaffold apply-bpe --codes {bpe} < {target}) \\
          <(mt-scaffold apply-bpe --codes {scaffold} < {target}) | less
  # your own text
  mt-scaffold learn-bpe --symbols 8000 < YOUR_TEXT > codes
  mt-scaffold apply-bpe --codes codes < YOUR_TEXT
  # real data
  mt-scaffold run configs/multi30k_en_de.yaml --cores {cores}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="also train with dropout")
    options = parser.parse_args()
    cores, full = options.cores, options.full

    config = load_config(ROOT / CONFIG)
    chosen = [*config.systems] if full else [*FIRST]
    print(segmentations(config))
    print(
        f"Now {len(chosen)} systems ({', '.join(chosen)}) are trained on this text, from raw text to the comparison.\n"
        f"Follow a training in {OUTPUT}/SYSTEM/seed-1/train.log.\n",
        flush=True,
    )
    start = time.time()
    command = [sys.executable, "-m", "mt_scaffold", "run", str(CONFIG), "--cores", str(cores), "--output", str(OUTPUT)]
    command += ["--only", *chosen]
    process = subprocess.Popen(command, cwd=ROOT)
    # Ctrl-C also reaches that command, which saves and ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = process.wait()
    if status:
        print(f"\nThe demo did not finish; run `make demo` again to resume it. Logs: {OUTPUT}/logs", file=sys.stderr)
        return status if status > 0 else 128 - status
    minutes, seconds = divmod(round(time.time() - start), 60)
    comparison = ROOT / OUTPUT / "comparison.txt"
    if comparison.stat().st_mtime < start:
        # The workflow had nothing left to do, so it has not printed the table.
        print(comparison.read_text(encoding="utf-8"))
    print(f"\nThis took {minutes} min {seconds} s on {cores} cores (finished steps were not repeated).\n")
    layout = TranslationLayout(OUTPUT, config)
    print(f"The first sentences of the test set:\n\n{translations(layout)}\n")
    print(f"{CAVEAT}\n")
    print(guide(layout, cores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
