"""Values that replace those of a configuration file, and the keys that they contradict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mt_scaffold.experiment.configuration.data import DATA_KINDS
from mt_scaffold.experiment.configuration.language_model import DOCUMENT_KINDS, EqualAmount
from mt_scaffold.experiment.configuration.training import STOP_OPTIONS

# The keys of which a section may set exactly one, by the path of the section; "*" is any name.
_EXCLUSIVE: dict[tuple[str, ...], Collection[str]] = {
    ("data",): {*DATA_KINDS, *DOCUMENT_KINDS},
    ("train", "stop"): STOP_OPTIONS,
    ("comparisons", "*"): EqualAmount.__dataclass_fields__,
}
# The sections in which fairseq's own options of STOP_OPTIONS may appear.
_OPTIONS = (("train", "options"), ("train", "batches", "*", "options"), ("systems", "*", "train", "options"))


def overridden(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``document`` with its values replaced by those of ``overrides``; mappings are merged key by key.

    A value also removes what excludes it: another key of the same choice, as in ``train.stop``, or the option of
    fairseq with the same purpose (``max-update``).

    >>> overridden({"train": {"stop": {"epochs": 40}}}, {"train": {"stop": {"updates": 5}}})
    {'train': {'stop': {'updates': 5}}}
    """
    train = overrides.get("train")
    stop, options = (train.get(key) if isinstance(train, Mapping) else None for key in ("stop", "options"))
    if isinstance(stop, Mapping) and any(value is not None for value in stop.values()):
        document = _without(document, {(*place, name) for place in _OPTIONS for name in STOP_OPTIONS.values()})
    elif isinstance(options, Mapping) and any(options.get(name) not in (None, False) for name in STOP_OPTIONS.values()):
        document = _without(document, {("train", "stop")})
    return _merged(document, overrides, ())


def _merged(document: Mapping[str, Any], overrides: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    choice = next((keys for pattern, keys in _EXCLUSIVE.items() if _matches(place, pattern)), ())
    chosen = {key for key, value in overrides.items() if key in choice and value is not None}
    result = {key: value for key, value in document.items() if not chosen or key not in choice or key in overrides}
    for key, value in overrides.items():
        old, inner = result.get(key), (*place, key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(old, value, inner) if both else value  # type: ignore[arg-type]
    return result


def _without(document: Mapping[str, Any], places: Collection[tuple[str, ...]]) -> dict[str, Any]:
    """Return a document without the keys at these paths."""
    result = {}
    for key, value in document.items():
        inner = {place[1:] for place in places if place[0] in (key, "*")}
        if () not in inner:
            result[key] = _without(value, inner) if inner and isinstance(value, Mapping) else value
    return result


def _matches(place: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(place) == len(pattern) and all(of in (name, "*") for name, of in zip(place, pattern, strict=True))
