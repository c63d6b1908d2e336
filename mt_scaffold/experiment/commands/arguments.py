"""The options that several commands have: of an experiment, and of words and a segmentation for fairseq's data."""

from __future__ import annotations

import argparse
from typing import Any

from mt_scaffold.commands.arguments import add_inference, add_separator
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.dictionary import NO_LIMITS
from mt_scaffold.experiment.binarise.segmentation import Segmentation
from mt_scaffold.experiment.configuration.limits import Limits
from mt_scaffold.experiment.configuration.yaml_file import settings_from
from mt_scaffold.segment.inference import MERGES


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Declare what ``settings`` reads, and the configuration."""
    parser.add_argument("config", metavar="CONFIG", help="the configuration of the experiment, a YAML file")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="these systems, as though there were no others")
    parser.add_argument("--sample", type=int, metavar="N", help="only the first N training pairs or documents")
    parser.add_argument("--batch", metavar="NAME", help="one of train.batches")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a dotted key, such as train.options.lr=0.001; may be repeated",
    )
    parser.add_argument("--output", metavar="DIR", help="folder of the experiment (default: experiments/NAME)")
    parser.add_argument("--cache", metavar="DIR", help="folder of downloads (default: as for get-data)")


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of an experiment that the options of ``add_settings`` describe, for plan_experiment."""
    named = {name: getattr(options, name) for name in ("only", "sample", "batch", "output", "cache")}
    return settings_from(options.set) | {name: value for name, value in named.items() if value is not None}


def add_languages(parser: argparse.ArgumentParser) -> None:
    """Declare the languages."""
    parser.add_argument("--source-lang", "-s", required=True, metavar="LANGUAGE", help="for example en")
    parser.add_argument("--target-lang", "-t", required=True, metavar="LANGUAGE", help="for example de")


def add_segmentation(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Declare what ``segmentation`` reads; required: whether the codes are."""
    parser.add_argument(
        "--codes",
        "-c",
        nargs="+",
        required=required,
        metavar="FILE",
        help="joint codes, bpe or scaffold; or those of the source and those of the target",
    )
    parser.add_argument(
        "--vocabulary", nargs=2, metavar="FILE", help="vocabulary files (get-vocab) of source and target"
    )
    parser.add_argument(
        "--vocabulary-threshold", type=int, metavar="N", help="split subwords that occur fewer than N times there"
    )
    parser.add_argument("--glossaries", nargs="+", default=[], metavar="STR", help="words or patterns never to split")
    add_separator(parser)
    add_inference(parser)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Declare what ``limits`` reads: options of fairseq-preprocess, by their names there."""
    parser.add_argument(
        "--separate-dictionaries", action="store_true", help="one for each language (default: one for both)"
    )
    for side in ("src", "tgt"):
        parser.add_argument(f"--nwords{side}", type=int, default=-1, metavar="N", help="size of the dictionary")
        parser.add_argument(f"--threshold{side}", type=int, default=0, metavar="N", help="least frequency in it")
    parser.add_argument(
        "--padding-factor",
        type=int,
        default=NO_LIMITS.padding_factor,
        metavar="N",
        help="pad it to a multiple of N (default: %(default)s)",
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """Declare the texts and the folders of a data folder."""
    parser.add_argument("--train", metavar="PREFIX", help="words of the training set: PREFIX.LANGUAGE")
    parser.add_argument("--valid", metavar="PREFIX", help="words of the validation set")
    parser.add_argument("--test", nargs="+", default=[], metavar="PREFIX", help="words of each test set")
    parser.add_argument(
        "--dictionaries", metavar="FOLDER", help="where dict.LANGUAGE.txt are (default: made from --train)"
    )
    parser.add_argument("--output", "-o", required=True, metavar="FOLDER", help="the fairseq data folder to make")
    parser.add_argument("--num-workers", type=int, default=1, metavar="N", help="threads, -1: all cores (default: 1)")


def segmentation(options: argparse.Namespace) -> Segmentation:
    """Return the segmentation that the options of ``add_segmentation`` describe."""
    if len(options.codes) > 2:
        raise UsageError("--codes: give one file for both languages, or those of source and target")
    if (options.vocabulary is None) != (options.vocabulary_threshold is None):
        raise UsageError("give both --vocabulary and --vocabulary-threshold, or neither")
    vocabulary = None if options.vocabulary is None else (options.vocabulary[0], options.vocabulary[1])
    return Segmentation(
        (options.codes[0], options.codes[-1]),
        vocabulary,
        options.vocabulary_threshold,
        options.glossaries,
        options.separator,
        None if options.inference == MERGES else options.inference,
    )


def limits(options: argparse.Namespace) -> Limits:
    """Return the limits that the options of ``add_limits`` describe."""
    return Limits(
        not options.separate_dictionaries,
        options.nwordssrc,
        options.nwordstgt,
        options.thresholdsrc,
        options.thresholdtgt,
        options.padding_factor,
    )
