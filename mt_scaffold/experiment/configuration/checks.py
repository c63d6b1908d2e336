"""Checks that involve several fields of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration.data import DATA_KINDS, SIDES, UNKNOWN, ArchiveData, Data, DataFile, Parallel
from mt_scaffold.experiment.configuration.shared import check_shared
from mt_scaffold.experiment.configuration.training import Train, check_training
from mt_scaffold.experiment.runtime.schema import WrongValue, nearest

if TYPE_CHECKING:
    from mt_scaffold.experiment.configuration import Config


def check(config: Config) -> None:
    """Raise WrongValue if values of a configuration contradict each other."""
    from mt_scaffold.experiment.configuration import METRIC_NAMES

    if config.languages.source == config.languages.target:
        raise WrongValue("languages.target", "source and target are the same language; give two languages")
    check_shared(config, DATA_KINDS, lambda train: _check_training(config, train))
    _check_validation_set(config.data)
    if config.data.archives is not None:
        _check_archives(config.data.archives)
        for name, test in config.data.archives.tests.items():
            tokenise = test.tokenise or config.tokenise
            for side in SIDES:
                if tokenise.of_side(side).lowercase and not config.tokenise.of_side(side).lowercase:
                    problem = "the systems train on cased words; set tokenise.lowercase, for all of the text"
                    raise WrongValue(f"data.archives.tests.{name}.tokenise.lowercase", problem)
    if config.data.files is not None:
        for corpus, pairs in config.data.files.corpora.items():
            for number, pair in enumerate(pairs):
                key = f"data.files.{corpus}[{number}]"
                for side in ("source", "target"):
                    _check_file(f"{key}.{side}", getattr(pair, side))
                for place, reference in enumerate(pair.references or ()):
                    _check_file(f"{key}.references[{place}]", reference)
                _check_references(key, pair, pairs[0])
    if config.clean.min_tokens > config.clean.max_tokens:
        raise WrongValue("clean.min_tokens", "more than clean.max_tokens, so that no pair would be left; lower it")
    try:
        config.binarise.check()
    except UsageError as error:
        raise WrongValue("binarise", str(error)) from None
    primary = config.score.primary
    if primary.metric is not None and primary.metric not in (*config.score.metrics, *config.score.external):
        raise WrongValue("score.primary.metric", f"{primary.metric} is not computed; add it to score.metrics")
    for name, metric in config.score.external.items():
        if name in METRIC_NAMES:
            raise WrongValue(f"score.external.{name}", "a metric that score computes; choose another name")
        if lacking := [
            each for each in ("{hypothesis}", "{output}") if not any(each in part for part in metric.command)
        ]:
            raise WrongValue(f"score.external.{name}.command", f"has no {lacking[0]}; add it")
    for averaged in primary.over.tests_of_mean(config.test_sets):
        if averaged not in config.test_sets:
            hint = nearest(averaged, dict.fromkeys(config.test_sets))
            raise WrongValue(
                "score.primary.over", f"no test set {averaged}{hint}; give each, mean, or a list of test sets"
            )
    for number, published in enumerate(config.compare_with):
        key = f"compare_with[{number}]"
        if published.test_set not in config.test_sets:
            hint = nearest(published.test_set, dict.fromkeys(config.test_sets))
            raise WrongValue(f"{key}.test_set", f"no test set {published.test_set}{hint}")
        if published.metric not in config.score.metrics:
            raise WrongValue(f"{key}.metric", f"{published.metric} is not computed; add it to score.metrics")
        if published.beside not in config.systems:
            hint = nearest(published.beside, config.systems)
            raise WrongValue(f"{key}.beside", f"no system is called {published.beside}{hint}")


def _check_training(config: Config, train: Train) -> None:
    check_training(train, config.average)
    if train.all_options.get("share-all-embeddings") and not config.binarise.joined_dictionary:
        raise WrongValue("train.options.share-all-embeddings", "contradicts separate dictionaries; remove one of them")


def _check_validation_set(data: Data) -> None:
    if data.synthetic is not None:
        if data.valid_every is not None:
            raise WrongValue("data.valid_every", "synthetic data includes a validation set; leave this out")
        return
    kind = "files" if data.files is not None else "archives"
    text = data.files or data.archives
    if text is not None and (text.valid is None) == (data.valid_every is None):
        given = "neither" if text.valid is None else "both"
        raise WrongValue("data", f"give either {kind}.valid or valid_every (given: {given})")
    if text is not None and text.valid is not None and data.valid_cut != "after_cleaning":
        raise WrongValue("data.valid_cut", f"only for valid_every, not for {kind}.valid; leave this out")


def _check_references(key: str, pair: Parallel, first: Parallel) -> None:
    if pair.references and ".tests." not in key:
        raise WrongValue(f"{key}.references", "only test sets have several; leave all but one out")
    if len(pair.references or ()) != len(first.references or ()):
        raise WrongValue(f"{key}.references", "every part of a test set has as many as its first one")


def _check_file(key: str, file: DataFile) -> None:
    if (file.url is None) == (file.path is None):
        raise WrongValue(key, "give either url or path")
    if file.url is not None and file.sha256 is None:
        raise WrongValue(key, "a url needs its sha256, so that everyone trains on the same text; add it")


def _check_archives(archives: ArchiveData) -> None:
    for name, test in archives.tests.items():
        key = f"data.archives.tests.{name}"
        if (test.sacrebleu is None) == (test.pairs is None):
            raise WrongValue(key, "give either sacrebleu or pairs")
        if test.md5 is not None and test.sacrebleu is None:
            raise WrongValue(f"{key}.md5", "only for a sacrebleu test set; give an archive's digest with the archive")
    for corpus, pairs in archives.corpora.items():
        for number, pair in enumerate(pairs):
            key = f"data.archives.{corpus}[{number}]"
            _check_references(key, pair, pairs[0])
            if (pair.archive.sha256 is None) == (pair.archive.md5 is None):
                raise WrongValue(
                    f"{key}.archive", f"give its sha256 or its md5, or sha256: {UNKNOWN} if none is published"
                )
