"""A YAML file → all cells of an intrinsic study, its tables and its figures; finished cells are kept."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, make_folder, write_text
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.runtime.child_processes import begin_child
from mt_scaffold.experiment.runtime.locks import take_lock
from mt_scaffold.experiment.runtime.provenance import sha256, versions
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.study.cells import OTHER, Cell, measure_cell, measure_imported
from mt_scaffold.experiment.study.configuration import IMPORTED, MORPHEMES, StudiedMethod, Study, load_study, plain
from mt_scaffold.experiment.study.drawing import draw
from mt_scaffold.experiment.study.generalisation import GeneralisationCell, measure_generalisation
from mt_scaffold.experiment.study.held_out import HeldOutCell, measure_held_out
from mt_scaffold.experiment.study.methods import applies
from mt_scaffold.experiment.study.page import write_page
from mt_scaffold.experiment.study.tables import write_tables
from mt_scaffold.experiment.study.texts import TRAIN, CountedText, count_text
from mt_scaffold.manifest import manifest_path
from mt_scaffold.options import worker_count

# The version of the measures; raised when these change, so that old cells are not used.
_MEASURED = 2


@dataclasses.dataclass(frozen=True)
class _Job:
    """A cell to measure: the path of its result, the digest of its inputs, and the call that makes it."""

    path: Path
    key: str
    call: Callable[[], Cell | GeneralisationCell | HeldOutCell]

    @property
    def _key_path(self) -> Path:
        return self.path.with_suffix(".key")

    def is_done(self) -> bool:
        """Return whether its result exists and was made from the same texts and settings."""
        return self.path.exists() and self._key_path.exists() and self._key_path.read_text("utf-8") == self.key

    def run(self) -> str:
        """Measure, write the result, and return its name."""
        # The result says whether the text was too small, as stderr would.
        with contextlib.redirect_stderr(io.StringIO()):
            result = self.call()
        self._key_path.unlink(missing_ok=True)
        write_result(self.path, result)
        write_text(self._key_path, self.key)
        return f"{self.path.parent.name} {self.path.stem}"


def study(config: PathLike, output: PathLike, texts: PathLike = ".", jobs: int = 1) -> Path:
    """Measure every cell of an intrinsic study that is missing or outdated; write tables, figures and a page.

    config: the YAML file (``Study`` is its schema). output: the folder of the study. texts: the folder of the files
    that it names. jobs: the number of parallel processes, -1 for all cores.

    Returns the page ``report.html``. Next to it are ``cells/``, ``generalisation/`` and ``held-out/`` as JSON,
    ``*.csv``, ``figures/``, and ``config.yaml`` with versions and the digests of the texts.

    Raises UsageError for an invalid configuration, MTScaffoldError if a text cannot be read.
    """
    settings = load_study(config)
    processes = worker_count(jobs)
    folder = Path(output)
    make_folder(folder)
    with take_lock(folder, "another study is running here"):
        paths = {
            (name, language): Path(texts) / file
            for name, text in settings.texts.items()
            for language, file in text.files.items()
        }
        paths |= {
            (name, MORPHEMES): Path(texts) / text.morphemes for name, text in settings.texts.items() if text.morphemes
        }
        paths |= {(IMPORTED, name): Path(texts) / file for name, file in settings.imported.items()}
        counted = {
            name: count_text(
                text,
                {language: paths[name, language] for language in text.files},
                folder / "texts" / name,
                settings.generalisation.fractions,
            )
            for name, text in settings.texts.items()
        }
        cells = [
            *_cells(settings, counted, paths, folder / "cells"),
            *_imported(settings, counted, paths, folder / "cells"),
        ]
        comparisons = _comparisons(settings, counted, folder / "generalisation")
        trials = _trials(settings, counted, folder / "held-out")
        _run([job for job in (*cells, *comparisons, *trials) if not job.is_done()], processes)
        measured = [read_result(Cell, job.path) for job in cells]
        compared = [read_result(GeneralisationCell, job.path) for job in comparisons]
        write_tables(measured, compared, [read_result(HeldOutCell, job.path) for job in trials], folder)
        figures = draw(settings, measured, compared, folder / "figures")
        _write_config(settings, paths, folder / "config.yaml")
        return write_page(settings, measured, figures, folder)


def _imported(
    settings: Study, texts: Mapping[str, CountedText], paths: Mapping[tuple[str, str], Path], folder: Path
) -> list[_Job]:
    """Return the jobs of imported codes, on every text that codes are learned from."""
    jobs = []
    for name, text in settings.learned.items():
        own = {TRAIN: texts[name]} | ({OTHER: texts[text.other[0]]} if text.other else {})
        morphemes = paths.get((name, MORPHEMES))
        for imported in settings.imported:
            codes = paths[IMPORTED, imported]
            ids = Path(manifest_path(codes))
            files = [path for path in (codes, ids, morphemes) if path is not None and (path != ids or ids.exists())]
            call = functools.partial(measure_imported, name, imported, codes, own, morphemes)
            key = _key(own, text.parallel, [sha256(path) for path in files])
            jobs.append(_Job(folder / name / f"{imported}.json", key, call))
    return jobs


def _cells(
    settings: Study, texts: Mapping[str, CountedText], paths: Mapping[tuple[str, str], Path], folder: Path
) -> list[_Job]:
    """Return the jobs of every method, learned from every text with every N."""
    jobs = []
    least = settings.min_frequency
    for name, text in settings.learned.items():
        own = {TRAIN: texts[name]} | ({OTHER: texts[text.other[0]]} if text.other else {})
        make_folder(folder / name)
        morphemes = paths.get((name, MORPHEMES))
        added = [text.parallel, None if morphemes is None else sha256(morphemes)]
        for method_name, method in settings.methods.items():
            if not applies(method, name, text.files):
                continue
            halves = method.stability is None or name in method.stability
            options = _options(method, halves)
            if method.method.by_language:
                options["languages"] = list(text.files)
            for size in settings.sizes:
                call = functools.partial(measure_cell, name, method_name, method, size, least, halves, own, morphemes)
                key = _key(own, options, size, least, added)
                jobs.append(_Job(folder / name / f"{method_name}-{size}.json", key, call))
    return jobs


def _comparisons(settings: Study, texts: Mapping[str, CountedText], folder: Path) -> list[_Job]:
    """Return the comparisons of BPE and Scaffold-BPE, for each minimum frequency and fraction of a text."""
    jobs = []
    own = (1, settings.min_frequency)
    wanted = dict.fromkeys([own, *((1, least) for least in settings.generalisation.min_frequencies)])
    wanted |= dict.fromkeys((fraction, settings.min_frequency) for fraction in settings.generalisation.fractions)
    for name, text in settings.learned.items():
        others = {TRAIN: texts[name]} | {each: texts[each] for each in text.other}
        make_folder(folder / name)
        for fraction, least in wanted:
            sizes = settings.sizes if (fraction, least) == own else settings.generalisation.sizes or settings.sizes
            for size in sizes:
                call = functools.partial(measure_generalisation, name, size, fraction, least, others)
                path = folder / name / f"every-{fraction}-min-{least}-{size}.json"
                jobs.append(_Job(path, _key(others, fraction, least, size), call))
    return jobs


def _trials(settings: Study, texts: Mapping[str, CountedText], folder: Path) -> list[_Job]:
    """Return the trials of the criterion of held-out text, at the sizes of the generalisation question."""
    jobs = []
    least = settings.min_frequency
    for name, text in settings.learned.items():
        others = {each: texts[each] for each in text.other}
        make_folder(folder / name)
        for size in settings.generalisation.sizes or settings.sizes:
            call = functools.partial(measure_held_out, name, size, least, texts[name], others)
            key = _key({TRAIN: texts[name], **others}, size, least)
            jobs.append(_Job(folder / name / f"{size}.json", key, call))
    return jobs


def _options(method: StudiedMethod, halves: bool) -> dict[str, Any]:
    """Return the settings of a method, without defaults, so that a new setting does not outdate existing cells."""
    options = method.keys
    return options if halves else options | {"halves": False}


def _key(texts: Mapping[str, CountedText], *settings: Any) -> str:
    content = [_MEASURED, {name: text.digest for name, text in texts.items()}, settings]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _run(jobs: list[_Job], processes: int) -> None:
    """Run jobs in parallel, and report each finished one on stderr."""
    for number, name in enumerate(_finished(jobs, processes), 1):
        print(f"mt-scaffold: study: {name} ({number} of {len(jobs)})", file=sys.stderr, flush=True)


def _finished(jobs: list[_Job], processes: int) -> Iterator[str]:
    if processes == 1 or len(jobs) < 2:
        yield from (job.run() for job in jobs)
        return
    others = multiprocessing.active_children()
    spawn = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(min(processes, len(jobs)), spawn, initializer=begin_child)
    try:
        for future in as_completed([executor.submit(job.run) for job in jobs]):
            yield future.result()
    except BrokenProcessPool as error:
        raise MTScaffoldError(
            "a worker process died (out of memory?); run again with fewer --jobs: finished measurements are kept"
        ) from error
    except BaseException:
        # Not waited for: a cell may take minutes.
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _write_config(settings: Study, paths: Mapping[tuple[str, str], Path], path: Path) -> None:
    import yaml

    heading = [f"# {name} {version}" for name, version in versions().items()]
    heading += [
        f"# {name}.{language}: {paths[name, language].stat().st_size:,} bytes, sha256 {sha256(paths[name, language])}"
        for name, language in paths
    ]
    body = yaml.safe_dump(plain(settings), sort_keys=False, allow_unicode=True)
    write_text(path, "\n".join(heading) + "\n" + body)
