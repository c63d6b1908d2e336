"""A fairseq checkpoint with its dictionaries → both with the subwords of other codes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike, open_output, write_text
from mt_scaffold.corpus.text import notation_to_bytes
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import digest_of
from mt_scaffold.experiment.binarise.dictionary import UNKNOWN_ID, dictionary_text, read_dictionary
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete
from mt_scaffold.experiment.configuration.limits import SPECIAL_SYMBOLS
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint, tied, without_optimiser
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.experiment.surgery.resized import DESCRIPTION, Resized, refuse_existing
from mt_scaffold.experiment.surgery.rows import Rows
from mt_scaffold.manifest import raw_digest
from mt_scaffold.segment.id_maps import IdMap, SubwordMap, read_map

# The modules with a row for each symbol, in fairseq's models and in those of transformers.
_MODULES = ("embed_tokens", "output_projection", "lm_head", "embed_in", "embed_out")
_ADAPTIVE = {"adaptive_softmax", "adaptive_input"}
# Stored buffers of fairseq's transformers, which are not parameters.
_BUFFERS = ("version", "_float_tensor")
_FILLER = re.compile(r"madeupword\d{4}")
_FIRST = len(SPECIAL_SYMBOLS)


def resize_fairseq(
    checkpoint: PathLike, maps: Sequence[PathLike], dictionaries: Sequence[PathLike], output: PathLike
) -> Resized:
    """Write the folder ``output``: the checkpoint and its dictionaries, under their names, with the rows of a map.

    maps: one, or those of source and target. dictionaries: the one of a language model or of both sides, or those of
    source and target. Rows of removed subwords are deleted, those that stay keep their bits, and a new subword's row is
    the mean of those of its parts; a part that is not in the dictionary counts as ``<unk>``. Padding of the dictionary
    and the optimiser's state are dropped: a training can begin from the model, but not resume. The folder appears only
    once it is complete.

    Raises MTScaffoldError if the folder holds anything, if a file is missing, damaged or unsafe, if they do not belong
    together, and for models with adaptive inputs or outputs; UsageError for a wrong number of maps or dictionaries.
    """
    path, output = Path(checkpoint), Path(output)
    refuse_existing(output)
    state = load_checkpoint(path)
    model: dict[str, Any] = state["model"]
    sides = ("encoder", "decoder") if any(name.startswith("encoder.") for name in model) else ("decoder",)
    for what, given in (("maps", maps), ("dictionaries", dictionaries)):
        if len(given) not in (1, len(sides)):
            raise UsageError(f"{path}: {len(given)} {what}; give one" + ", or two" * (len(sides) == 2))
    if len({Path(each).name for each in dictionaries}) < len(dictionaries):
        raise UsageError("the dictionaries have the same name; give files with two names, or one of both sides")
    found = [
        _Dictionary(dictionaries[min(n, len(dictionaries) - 1)], maps[min(n, len(maps) - 1)]) for n in range(len(sides))
    ]
    of_side = dict(zip(sides, found, strict=True))
    if refused := next((name for name in model if _ADAPTIVE.intersection(name.split("."))), None):
        raise MTScaffoldError(f"{path}: has {refused}, which depends on frequencies; it cannot be resized")
    matrices = {name: of_side[name.split(".")[0]] for name in model if {*name.split(".")[-2:-1]} & {*_MODULES}}
    for side in sides:
        if not any(dictionary is of_side[side] for dictionary in matrices.values()):
            raise MTScaffoldError(f"{path}: no embeddings of its {side} known here; give a transformer of fairseq")
    for name, dictionary in matrices.items():
        if len(model[name]) != dictionary.rows.old:
            raise MTScaffoldError(
                f"{path}: {name} has {len(model[name]):,} rows, but {dictionary.path} has {dictionary.rows.old:,} "
                "symbols; give the dictionaries that it was trained with"
            )
    first_of = tied([{name: model[name] for name in matrices}])
    resized = dict(model)
    for name, dictionary in matrices.items():
        first = first_of[name]
        if matrices[first].rows != dictionary.rows:
            raise MTScaffoldError(f"{path}: {name} is tied to {first}, so that both need one map and one dictionary")
        resized[name] = resized[first] if first != name else dictionary.rows.of(model[name])
    notes = [note for dictionary in dict.fromkeys(found) for note in dictionary.notes]
    state = without_optimiser(state) | {"model": resized}
    if isinstance(state.get("task_state"), dict) and "vocabulary" in state["task_state"]:
        state["task_state"] = state["task_state"] | {"vocabulary": found[0].digest}
    with appears_complete(output) as folder:
        import torch

        with open_output(folder / path.name) as stream:
            torch.save(state, stream)
        for dictionary in found:
            write_text(folder / dictionary.path.name, dictionary.text)
        used = [path, *map(Path, maps), *map(Path, dictionaries)]
        description = Resized(
            path.name,
            {each.name: raw_digest(each) for each in used},
            {name: [dictionary.rows.old, len(dictionary.rows)] for name, dictionary in matrices.items()},
            sum(len(dictionary.rows.means) for dictionary in {each.path: each for each in found}.values()),
            [_parameters(model, first_of), _parameters(resized, first_of)],
            notes,
            versions(),
        )
        write_result(folder / DESCRIPTION, description)
    return description


def _parameters(model: Mapping[str, Any], first_of: Mapping[str, str]) -> int:
    """Return the number of parameters of a model; tied matrices count once."""
    names = [name for name in model if first_of.get(name, name) == name and name.rpartition(".")[2] not in _BUFFERS]
    return sum(model[name].numel() for name in names)


class _Dictionary:
    """A dictionary before and after surgery. rows: of embeddings. text: of the new file. notes: for people."""

    def __init__(self, path: PathLike, map_file: PathLike) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        entries = read_dictionary(path)
        found = read_map(map_file)
        used = len(entries)
        if isinstance(found, IdMap):
            used = found.old
            if len(entries) < used or not all(_FILLER.fullmatch(form) for form, _ in entries[used:]):
                raise MTScaffoldError(
                    f"{path}: has {len(entries):,} subwords, but {map_file} maps {used:,} ids; give the map of the "
                    "codes that the dictionary was made with"
                )
            names, self.rows = self._by_id(entries[:used], found, len(entries))
        else:
            while used and entries[used - 1][1] == 0 and _FILLER.fullmatch(entries[used - 1][0]):
                used -= 1
            names, self.rows = self._by_subword(entries[:used], found, len(entries))
        if used < len(entries):
            self.notes.append(f"{self.path.name}: {len(entries) - used} rows of padding (madeupword) left out")
        self.text = dictionary_text(names)
        self._names = names

    @property
    def digest(self) -> str:
        """The digest of the tokens of byte codes, as ``Vocabulary`` computes it."""
        return digest_of([notation_to_bytes(name) for name, _ in self._names])

    @staticmethod
    def _by_id(entries: list[tuple[str, int]], found: IdMap, old: int) -> tuple[list[tuple[str, int]], Rows]:
        """Return the new entries and rows of a dictionary that is in the order of the codes' ids."""
        rows = Rows.of_ids(found, len(entries))
        names = [entries[row] if row >= 0 else ("", 0) for row in rows.kept]
        for number, parts in found.pieces.items():
            names[number] = ("".join(entries[part][0] for part in parts), 0)
        return names, _after_special(old, rows.kept, rows.means)

    def _by_subword(
        self, entries: list[tuple[str, int]], found: SubwordMap, old: int
    ) -> tuple[list[tuple[str, int]], Rows]:
        """Return the new entries and rows of a dictionary that may be in any order."""
        number_of = {form: number for number, (form, _) in enumerate(entries)}
        kept = [number for number, (form, _) in enumerate(entries) if form not in found.removed]
        names = [entries[number] for number in kept]
        added = [form for form in found.added if form not in number_of]
        known = {*(form for form, _ in names), *added}
        removed = [form for form in number_of if form in found.removed]
        if unknown := sorted({part for form in removed for part in found.removed[form]} - known):
            self.notes.append(
                f"{self.path.name}: removed subwords leave {len(unknown)} that it lacks, which become <unk>: "
                + " ".join(unknown[:10])
                + " …" * (len(unknown) > 10)
            )
        unk = UNKNOWN_ID - _FIRST
        means = {
            len(kept) + place: [number_of.get(part, unk) for part in found.added[form]]
            for place, form in enumerate(added)
        }
        return [*names, *((form, 0) for form in added)], _after_special(old, kept + [-1] * len(added), means)


def _after_special(old: int, kept: Sequence[int], means: Mapping[int, Sequence[int]]) -> Rows:
    """Return rows with those of fairseq's symbols in front; old: the number of old entries; -1 in means: ``<unk>``."""
    shifted = [row + _FIRST if row >= 0 else -1 for row in kept]
    return Rows(
        old + _FIRST,
        [*range(_FIRST), *shifted],
        {row + _FIRST: [part + _FIRST for part in parts] for row, parts in means.items()},
    )
