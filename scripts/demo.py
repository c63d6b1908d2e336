"""``make demo``: run a complete experiment on a generated corpus, then print what to look at and do next."""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout

ROOT = Path(__file__).resolve().parent.parent
CONFIG = Path("configs") / "demo.yaml"
OUTPUT = Path("experiments") / "demo"
WHAT_IT_SHOWS = """SYNTHETIC DATA: the two languages are invented, and so small that each of these tiny models has
learned them and stopped improving. The table shows that every step works. It does not show which system translates
better: for that, run real data (below)."""


def guide(layout: TranslationLayout, cores: int) -> str:
    """Tell where the results are and what to run next."""
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
    listed = "\n".join(f"  {path!s:62} {what}" for path, what in results.items())
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
    cores = parser.parse_args().cores

    config = load_config(ROOT / CONFIG)
    print(
        f"{len(config.systems)} systems ({', '.join(config.systems)}) on a generated corpus: from raw text to the "
        f"comparison.\nMost of the time is training; follow it in {OUTPUT}/SYSTEM/seed-1/train.log.\n",
        flush=True,
    )
    start = time.time()
    command = [sys.executable, "-m", "mt_scaffold", "run", str(CONFIG), "--cores", str(cores), "--output", str(OUTPUT)]
    process = subprocess.Popen(command, cwd=ROOT)
    # Ctrl-C is for that command, which saves and then ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = process.wait()
    if status:
        print(f"\nThe demo did not finish; run `make demo` again to resume it. Logs: {OUTPUT}/logs", file=sys.stderr)
        return status if status > 0 else 128 - status
    minutes, seconds = divmod(round(time.time() - start), 60)
    comparison = ROOT / OUTPUT / "comparison.txt"
    if comparison.stat().st_mtime < start:
        # Nothing was left to do, so the workflow has not printed it.
        print(comparison.read_text(encoding="utf-8"))
    print(f"\nThis took {minutes} min {seconds} s on {cores} cores (finished steps were not repeated).\n")
    print(f"{WHAT_IT_SHOWS}\n")
    print(guide(TranslationLayout(OUTPUT, config), cores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
