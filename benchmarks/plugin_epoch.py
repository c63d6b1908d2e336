"""Measure how long the plug-in's data set takes to segment an epoch on one core: all lengths, then all samples.

    python benchmarks/plugin_epoch.py [--pairs 1000000] [--dropout 0.1] [--symbols 32000]

The corpus is generated in mt-scaffold's invented languages. Prints seconds of CPU time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from mt_scaffold.experiment.binarise_words import binarise_words
from mt_scaffold.experiment.segmentation import joint_segmentation
from mt_scaffold.experiment.fairseq_tools import user_dir
from mt_scaffold.experiment.synthetic import sentence_pairs
from mt_scaffold.learn import learn_bpe


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--symbols", type=int, default=32_000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words"
        pairs = list(islice(sentence_pairs(1), asked.pairs))
        for side, language in enumerate(("en", "de")):
            Path(f"{words}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        number_of_words = sum(line.count(" ") + 1 for pair in pairs for line in pair)
        del pairs
        codes = Path(folder) / "codes"
        texts = [Path(f"{words}.{side}") for side in ("en", "de")]
        codes.write_bytes(learn_bpe(paths=texts, num_symbols=asked.symbols).text)
        binarise_words(Path(folder) / "data", "en", "de", joint_segmentation(codes), words, words)

        arguments = [f"{folder}/data", "--user-dir", str(user_dir()), "--task", "translation_bpe_dropout"]
        arguments += ["--bpe-dropout", str(asked.dropout), "--arch", "transformer", "--max-tokens", "4000"]
        given = options.parse_args_and_arch(options.get_training_parser("translation_bpe_dropout"), arguments)
        config = convert_namespace_to_omegaconf(given)
        utils.import_user_module(config.common)
        task = tasks.setup_task(config.task)
        task.load_dataset("train", epoch=1, combine=True)
        dataset = task.dataset("train")

        start = time.process_time()
        dataset.set_epoch(2)
        lengths = time.process_time() - start
        batches = task.get_batch_iterator(dataset, max_tokens=4000, max_positions=(1024, 1024), epoch=2).frozen_batches
        samples = collating = 0.0
        for batch in batches:
            start = time.process_time()
            fetched = dataset.__getitems__(batch)
            between = time.process_time()
            dataset.collater(fetched)
            samples += between - start
            collating += time.process_time() - between
    print(f"{asked.pairs:,} pairs, {number_of_words:,} words, dropout {asked.dropout}, {len(batches):,} batches")
    print(f"seconds of one core: lengths {lengths:.1f} + samples {samples:.1f} = {lengths + samples:.1f}")
    print(f"plus fairseq's collating, which every task needs: {collating:.1f}")


if __name__ == "__main__":
    main()
