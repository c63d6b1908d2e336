"""Learn with a method given by name, for tests of several methods."""

from __future__ import annotations

from typing import Any

from mt_scaffold import LearnedCodes
from mt_scaffold.corpus.files import Output
from mt_scaffold.corpus.inputs import TextFile
from mt_scaffold.methods import make_method, method_type
from mt_scaffold.methods.learn import learn


def learn_with(
    infile: TextFile | None = None,
    outfile: Output | None = None,
    num_symbols: int = 10000,
    min_frequency: int = 2,
    algorithm: str = "scaffold",
    **options: Any,
) -> LearnedCodes:
    """Learn codes. options: the method's settings, without those that are None, and those of ``learn``."""
    settings = {name: options.pop(name) for name in method_type(algorithm).settings() if name in options}
    settings = {name: value for name, value in settings.items() if value is not None}
    if options.get("threshold", "") is None:
        del options["threshold"]
    method = make_method(algorithm, symbols=num_symbols, min_frequency=min_frequency, **settings)
    learned: LearnedCodes = learn(infile, method, outfile, **options)
    return learned
