"""A folder with a model of transformers → the same with embeddings for other ids, one file of parameters at a time.

The model is built twice without memory for its parameters (PyTorch's device "meta"), with vocabularies of two sizes:
each tensor whose shape differs has a row for each id, be it embeddings, a head, its bias, or constants added to the
logits.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, open_input, write_text
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete
from mt_scaffold.experiment.runtime.hugging_face import import_transformers, in_one_line
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.experiment.surgery.resized import DESCRIPTION, Resized, refuse_existing
from mt_scaffold.experiment.surgery.rows import Rows
from mt_scaffold.manifest import raw_digest
from mt_scaffold.segment.id_maps import IdMap, read_map

CONFIG, GENERATION = "config.json", "generation_config.json"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_SIZES = ("vocab_size", "decoder_vocab_size")
# Any other vocabulary size may be of a further table indexed by ids, except those of _NO_TABLE.
_OTHER_SIZE = re.compile(r"(.+_)?vocab_size(_per_layer_input|_base)?")
_NO_TABLE = re.compile(r"(.+_)?type_vocab_size|unpadded_vocab_size")
# Ids in a configuration: one or several, by name, lists of tokens, lists of phrases; _REFUSED cannot be renumbered.
_SPECIAL = re.compile(r".*_token_(ids?|index)")
_NAMED = re.compile(r"(lang|task)_to_id")
_TOKENS = ("suppress_tokens", "begin_suppress_tokens")
_PHRASES = ("bad_words_ids", "force_words_ids")
# More rows than models add for special tokens and padding.
_MORE_ROWS = 1024
_REFUSED = ("sequence_bias", "forced_decoder_ids")


def resize_transformers(model: PathLike, map_file: PathLike, output: PathLike, more_rows: int | None = None) -> Resized:
    """Write the folder ``output``: the model in the folder ``model``, with the rows and ids of a map.

    Rows of removed tokens are deleted, those that stay keep their bits, and a new token's row is the mean of those of
    the old tokens that it was segmented into: in the embeddings, and in any other tensor with a row for each id. Rows
    after the ids of the map (special tokens that a tokenizer numbers after the codes, padding) stay last. The special
    ids of both configurations are renumbered. The tokenizer is not copied. The folder appears only once it is complete.

    more_rows: the number of rows after the ids of the map (default: up to a twentieth of them, or 1,024).

    Raises MTScaffoldError if the folder holds anything, and for a model that is not stored as safetensors, of an
    architecture that transformers does not have, with fewer rows than the map has ids or more than it explains, or
    with a special token that the map removes; UsageError for a map of subwords.
    """
    folder, output = Path(model), Path(output)
    refuse_existing(output)
    ids = read_map(map_file)
    if not isinstance(ids, IdMap):
        raise UsageError(f"{map_file}: maps subwords of words between spaces, but a model of transformers has ids")
    architecture = _Architecture.read(folder)
    if ids.old > architecture.size:
        raise MTScaffoldError(
            f"{folder}: has {architecture.size:,} rows of embeddings, but {map_file} maps {ids.old:,} ids; give the "
            "map of codes with the model's ids"
        )
    after = architecture.size - ids.old
    if after != more_rows and (more_rows is not None or after > max(ids.old // 20, _MORE_ROWS)):
        raise MTScaffoldError(
            f"{folder}: has {architecture.size:,} rows of embeddings, {after:,} more than {map_file} maps ids; give "
            f"the map of this model's codes, or --more-rows {after} to keep these rows"
        )
    rows = Rows.of_ids(ids, architecture.size)
    notes: list[str] = []
    configs = {
        name: _renumbered(folder / name, rows, notes) for name in (CONFIG, GENERATION) if (folder / name).exists()
    }
    files = _Files(folder)
    matrices = architecture.matrices(files)
    shapes = dict(files.shapes())
    groups = {min(architecture.same_as(name)): shape for name, shape in shapes.items()}
    before = sum(map(_product, groups.values()))
    saved = sum(
        _product(groups[group]) // rows.old * (rows.old - len(rows))
        for group in {min(architecture.same_as(name)) for name in matrices}
    )
    copied = {CONFIG, GENERATION, _INDEX, DESCRIPTION, *files.names}
    left = sorted(path.name for path in folder.iterdir() if path.name not in copied)
    if left:
        notes.append(f"not copied: {', '.join(left)}; write the tokenizer of the new codes")
    with appears_complete(output) as new:
        total = sum(files.write(name, new, matrices, rows) for name in files.names)
        if files.index is not None:
            sizes = {key: files.index.get("metadata", {}).get(key) for key in ("total_parameters", "total_size")}
            known = {"total_parameters": before - saved, "total_size": total}
            metadata = files.index.get("metadata", {}) | {key: known[key] for key, size in sizes.items() if size}
            write_text(new / _INDEX, json.dumps(files.index | {"metadata": metadata}, indent=2) + "\n")
        for name, content in configs.items():
            write_text(new / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        resized = Resized(
            folder.resolve().name,
            {Path(map_file).name: raw_digest(map_file), CONFIG: raw_digest(folder / CONFIG)},
            {name: [rows.old, len(rows)] for name in sorted(matrices)},
            len(rows.means),
            [before, before - saved],
            notes,
            versions(),
        )
        write_result(new / DESCRIPTION, resized)
    return resized


def _product(shape: Iterable[int]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found


@dataclass(frozen=True)
class _Architecture:
    """The parameters of a model, by its configuration.

    axes: of each tensor with a row for each id, the axis of the ids. aliases: for the name of each parameter, itself
    and those that it is tied to. renamed: maps the name of a stored tensor to that under which transformers loads it.
    """

    folder: Path
    size: int
    axes: Mapping[str, int]
    aliases: Mapping[str, frozenset[str]]
    renamed: Callable[[str], str]

    @classmethod
    def read(cls, folder: Path) -> _Architecture:
        """Build the model of a folder without its parameters."""
        library = import_transformers("resize-embeddings")
        content = _json(folder / CONFIG)
        names = content.get("architectures") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise MTScaffoldError(f"{folder / CONFIG}: its architectures are not a list of names; correct them")
        try:
            kind = getattr(library, names[0], None) if names else None
        except (ImportError, RuntimeError) as error:  # a package that this architecture alone needs
            raise MTScaffoldError(f"{folder / CONFIG}: transformers cannot load {names[0]}: {error}") from None
        own = isinstance(kind, type) and issubclass(kind, library.PreTrainedModel)
        if not own or "auto_map" in content:
            raise MTScaffoldError(
                f"{folder / CONFIG}: an architecture that transformers does not have "
                f"({', '.join(names) or 'none is named'}); only its own can be resized"
            )
        try:
            config = library.AutoConfig.from_pretrained(folder, local_files_only=True)
            _refuse_other_sizes(folder / CONFIG, config.get_text_config().to_dict())
            small, large = (_without_memory(kind, config, more) for more in (0, 1))
            size = int(config.get_text_config().vocab_size)
        except MTScaffoldError:
            raise
        except Exception as error:  # transformers does not check a configuration, and may fail in any way.
            raise MTScaffoldError(
                f"{folder / CONFIG}: transformers cannot build this model ({in_one_line(error)}); correct it"
            ) from error
        axes = {}
        wider = large.state_dict()
        for name, tensor in small.state_dict().items():
            pairs = enumerate(zip(tensor.shape, wider[name].shape, strict=True))
            different = [axis for axis, (one, other) in pairs if one != other]
            if different:
                axes[name] = different[0]
            if len(different) > 1 or any(tensor.shape[axis] != size for axis in different):
                raise MTScaffoldError(f"{folder}: {name} does not have a row for each id; its model cannot be resized")
        alike: dict[int, set[str]] = {}
        named = [*small.named_parameters(remove_duplicate=False), *small.named_buffers(remove_duplicate=False)]
        for name, tensor in named:
            alike.setdefault(id(tensor), set()).add(name)
        aliases = {name: frozenset(names) for names in alike.values() for name in names}
        return cls(folder, size, axes, aliases, _renaming(small))

    def known_as(self, stored: str) -> str | None:
        """Return the model's name of a stored tensor, or None if it has no such tensor."""
        return next((name for name in (self.renamed(stored), stored) if name in self.aliases), None)

    def same_as(self, stored: str) -> frozenset[str]:
        """Return the names of a stored tensor and of those that it is tied to."""
        return self.aliases.get(self.known_as(stored) or "", frozenset([stored]))

    def matrices(self, files: _Files) -> dict[str, int]:
        """Return the axis of the ids by name of each stored tensor that has one; MTScaffoldError if one is missing."""
        found = {}
        for stored, shape in files.shapes():
            name = self.known_as(stored)
            if name is not None and name in self.axes:
                if shape[self.axes[name]] != self.size:
                    raise MTScaffoldError(
                        f"{self.folder}: {stored} has {' × '.join(map(str, shape))} numbers, which does not fit a "
                        f"vocabulary of {self.size:,}; save the model again with transformers"
                    )
                found[stored] = self.axes[name]
            elif name is None and self.size in shape:
                raise MTScaffoldError(
                    f"{self.folder}: {stored} may have a row for each id, but {CONFIG} describes no such parameter; "
                    "save the model again with transformers"
                )
        stored_names = {self.known_as(stored) for stored in found}
        for name in self.axes:
            if not stored_names & self.aliases[name]:
                raise MTScaffoldError(f"{self.folder}: {name} is not stored; save the model again with transformers")
        return found


def _renaming(model: Any) -> Callable[[str], str]:
    """Return transformers' renaming of stored tensors, for instance of older models or those without a head."""
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

    found = get_model_conversion_mapping(model)
    renamings = [each for each in found if isinstance(each, WeightRenaming)]
    converters = [each for each in found if isinstance(each, WeightConverter)]
    prefix, known = model.base_model_prefix, model.state_dict()

    def renamed(stored: str) -> str:
        return str(rename_source_key(stored, renamings, converters, prefix, known)[0])

    return renamed


def _refuse_other_sizes(path: Path, content: Mapping[str, Any]) -> None:
    """Raise MTScaffoldError for a further table indexed by ids, such as embeddings of each layer."""
    for name, value in content.items():
        if value and name not in _SIZES and _OTHER_SIZE.fullmatch(name) and not _NO_TABLE.fullmatch(name):
            raise MTScaffoldError(f"{path}: has {name}, of another table that ids lead to; it cannot be resized")


def _without_memory(kind: Any, config: Any, more: int) -> Any:
    """Return a model without data for its parameters, with ``more`` ids than its configuration's vocabulary size."""
    import copy

    import torch

    config = copy.deepcopy(config)
    text = config.get_text_config()
    for name in _SIZES:
        if getattr(text, name, None) not in (None, text.vocab_size) and name != "vocab_size":
            raise ValueError(f"its {name} differs from its vocab_size")
    size = text.vocab_size + more
    for name in _SIZES:
        if getattr(text, name, None) is not None:
            setattr(text, name, size)
    with torch.device("meta"):
        return kind(config)


class _Files:
    """The parameters of a folder. names: of their files. index: maps tensors to files; None for a single file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.index: dict[str, Any] | None = None
        if (folder / _INDEX).exists():
            self.index = _json(folder / _INDEX)
            places = self.index.get("weight_map")
            named = isinstance(places, dict) and all(Path(str(name)).name == name for name in places.values())
            if not isinstance(places, dict) or not named or not isinstance(self.index.get("metadata", {}), dict):
                raise MTScaffoldError(f"{folder / _INDEX}: not an index of safetensors; save the model again")
            self.names = sorted(set(places.values()))
        elif (folder / _WEIGHTS).exists():
            self.names = [_WEIGHTS]
        else:
            raise MTScaffoldError(
                f"{folder}: no {_WEIGHTS}, nor an index of several; save the model as safetensors with transformers' "
                "save_pretrained"
            )

    def shapes(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the name and shape of each tensor; only the headers are read."""
        for name in self.names:
            with self._open(name) as stored:
                for key in stored.keys():  # noqa: SIM118  # no dictionary
                    yield key, stored.get_slice(key).get_shape()

    def write(self, name: str, folder: Path, matrices: Mapping[str, int], rows: Rows) -> int:
        """Write a file with resized matrices into another folder, and return the size of its tensors in bytes."""
        from safetensors.torch import save_file

        with self._open(name) as stored:
            keys = [*stored.keys()]
            if not matrices.keys() & set(keys):
                shutil.copyfile(self._folder / name, folder / name)
                return _tensor_bytes(folder / name)
            tensors = {key: stored.get_tensor(key) for key in keys}
            metadata = stored.metadata()
        for key in matrices.keys() & set(keys):
            tensors[key] = rows.of(tensors[key], matrices[key])
        try:
            save_file(tensors, folder / name, metadata)
        except OSError as error:
            raise MTScaffoldError(f"{folder / name}: {error.strerror or error}") from None
        return _tensor_bytes(folder / name)

    def _open(self, name: str) -> Any:
        from safetensors import SafetensorError, safe_open

        try:
            return safe_open(self._folder / name, framework="pt")
        except (SafetensorError, OSError) as error:
            raise MTScaffoldError(f"{self._folder / name}: not a complete safetensors file ({error})") from None


def _tensor_bytes(path: Path) -> int:
    """Return the size of a safetensors file without its header, in bytes."""
    with open(path, "rb") as stream:
        return path.stat().st_size - 8 - int.from_bytes(stream.read(8), "little")


def _json(path: Path) -> dict[str, Any]:
    with open_input(path) as stream:
        content = stream.read()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MTScaffoldError(f"{path}: not JSON ({error})") from None
    if not isinstance(found, dict):
        raise MTScaffoldError(f"{path}: not a configuration of transformers")
    return found


def _renumbered(path: Path, rows: Rows, notes: list[str]) -> dict[str, Any]:
    """Return a configuration with new ids and the new size of the vocabulary; omissions are appended to ``notes``."""
    places = rows.places

    def gone(key: str, number: int) -> MTScaffoldError:
        return MTScaffoldError(
            f"{path}: {key} {number} is a token that the map removes; keep it, or change {key} before"
        )

    def special(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [special(key, each) for each in value]
        if not isinstance(value, int) or value < 0:
            return value
        if value >= rows.old:
            if value < len(rows):
                raise MTScaffoldError(f"{path}: {key} {value} is not a row of the model; correct {key} first")
            notes.append(f"{path.name}: {key} {value} is no row of the model; left as it is")
            return value
        if value not in places:
            raise gone(key, value)
        return places[value]

    def several(key: str, value: Any) -> Any:
        phrases = value if key in _PHRASES else [[each] for each in value]
        kept = [phrase for phrase in phrases if all(each in places for each in phrase)]
        if len(kept) < len(phrases):
            notes.append(f"{path.name}: {len(phrases) - len(kept)} of {key} left out: tokens that are gone")
        moved = [[places[each] for each in phrase] for phrase in kept]
        return moved if key in _PHRASES else [each for (each,) in moved]

    def changed(content: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in content.items():
            if key in _REFUSED and value:
                raise MTScaffoldError(f"{path}: has {key}, which cannot be renumbered; remove it first")
            if isinstance(value, dict) and _NAMED.fullmatch(key):
                found[key] = {name: special(f"{key} {name}", number) for name, number in value.items()}
            elif isinstance(value, dict):
                found[key] = changed(value)
            elif key in _SIZES and value == rows.old:
                found[key] = len(rows)
            elif _SPECIAL.fullmatch(key):
                found[key] = special(key, value)
            elif key in (*_TOKENS, *_PHRASES) and value:
                found[key] = several(key, value)
            else:
                found[key] = value
        return found

    content = _json(path)
    try:
        return changed(content)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MTScaffoldError(f"{path}: not a configuration of transformers ({in_one_line(error)})") from error
