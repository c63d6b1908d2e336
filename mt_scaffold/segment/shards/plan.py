"""What a folder of shards holds, or will: its manifest, written when the first process begins and again at the end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mt_scaffold.corpus.documents import DocumentInput, Documents
from mt_scaffold.corpus.files import shown
from mt_scaffold.corpus.id_files import DTYPES
from mt_scaffold.corpus.storage.remote import is_remote, remote_size
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.manifest import MANIFEST, CodesUsed, Manifest, codes_used, manifest_text, read_manifest
from mt_scaffold.segment.encode import IDS
from mt_scaffold.segment.shards.folders import Folder

KIND = "shards"
REMEDY = "encode into another folder"
# Until the manifest that another process creates is there.
_ATTEMPTS, _PAUSE_SECONDS = 20, 0.5
_ENDINGS = (".jsonl", ".ndjson", ".parquet", ".txt")


class Shard(NamedTuple):
    """An input and what is made of it: ``NAME.bin``, ``NAME.idx`` and, when they are complete, ``NAME.manifest.json``.

    input_bytes: the size of the input, as stored.
    """

    number: int
    name: str
    input: DocumentInput
    input_bytes: int

    @property
    def ids(self) -> str:
        return f"{self.name}.bin"

    @property
    def manifest(self) -> str:
        return f"{self.name}.{MANIFEST}"


def shards_of(documents: Documents) -> list[Shard]:
    """Return the shards of documents, one per file, in order.

    A shard is named after its file without ``.jsonl.zst``, and after its folders, too, below the one that holds all
    inputs: ``de.00`` for ``corpus/de/00.jsonl.zst`` next to ``corpus/en``.

    Raises UsageError for an input that is not a file, and for two of the same name.
    """
    paths = []
    for each in documents.inputs:
        if not isinstance(each.source, str | os.PathLike):
            raise UsageError(f"{each.name}: has no name for a shard; name files with --input, or an --output NAME.bin")
        paths.append(os.fspath(each.source))
    names = _names(paths)
    if len({*names}) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        first, second, *_ = [path for path, each in zip(paths, names, strict=True) if each == name]
        raise UsageError(f"{shown(second)}: would be the shard {name}, as {shown(first)} is; rename one, or omit it")
    pairs = enumerate(zip(names, documents.inputs, paths, strict=True))
    return [Shard(number, name, each, _size(path)) for number, (name, each, path) in pairs]


def _names(paths: Sequence[str]) -> list[str]:
    parts = [(path if is_remote(path) else os.path.abspath(path)).split("/") for path in paths]
    shortest = min(map(len, parts), default=1) - 1
    differ = (place for place in range(shortest) if len({each[place] for each in parts}) > 1)
    common = next(differ, shortest)
    return [_stem(".".join(each[common:])) for each in parts]


def _stem(name: str) -> str:
    name = name.removesuffix(".gz").removesuffix(".zst")
    stem, ending = os.path.splitext(name)
    return stem if ending.lower() in _ENDINGS else name


def _size(path: str) -> int:
    if is_remote(path):
        size = remote_size(path)
        if size is None:
            raise MTScaffoldError(f"{path}: no such file")
        return size
    if not os.path.isfile(path):
        problem = "not a file, and so no shard" if os.path.exists(path) else "no such file"
        raise MTScaffoldError(f"{shown(path)}: {problem}")
    return os.path.getsize(path)


class Plan(NamedTuple):
    """What ids depend on: the codes and special tokens; settings, as options of the command; the shards."""

    made_with: dict[str, Any]
    settings: dict[str, Any]
    shards: list[dict[str, Any]]


def plan_of(made_with: Mapping[str, Any], settings: Mapping[str, Any], shards: Sequence[Shard]) -> Plan:
    """Return the plan of shards, as JSON has it."""
    files = [
        {"name": each.name, "input": os.path.basename(each.input.name), "input_bytes": each.input_bytes}
        for each in shards
    ]
    return Plan(*json.loads(json.dumps([{**made_with}, {**settings}, files])))


def begin(folder: Folder, plan: Plan) -> Plan:
    """Write the manifest of a folder that has none, or compare the plan with that which it was begun with.

    Returns the plan with the name of the codes that it was begun with, which may be called differently now.

    Raises UsageError for another plan, and where there is no manifest but files of these names.
    """
    folder.prepare()
    if folder.size(MANIFEST) is None:
        names = folder.names()
        for each in plan.shards:
            if taken := names & {f"{each['name']}{ending}" for ending in (".bin", ".idx", f".{MANIFEST}")}:
                raise UsageError(f"{folder.path(min(taken))}: exists, without a {MANIFEST} of shards; {REMEDY}")
        content = manifest_text(_manifest(plan, {}, {})).encode()
        for _ in range(_ATTEMPTS):
            if folder.create(MANIFEST, content):
                return plan
            if folder.size(MANIFEST) is not None:
                break
            time.sleep(_PAUSE_SECONDS)
    manifest = recorded(folder)
    _compare(folder, manifest, plan)
    return plan._replace(made_with={**plan.made_with, "codes": manifest.content["codes"]})


def recorded(folder: Folder) -> Manifest:
    """Return the manifest of a folder of shards; MTScaffoldError where there is none, or it is damaged."""
    path = folder.path(MANIFEST)
    if folder.size(MANIFEST) is None:
        raise MTScaffoldError(f"{folder.name}: no {MANIFEST}, and so not a folder of shards")
    manifest = read_manifest(path, KIND, REMEDY)
    codes_used(path, manifest, REMEDY)
    shards = manifest.content.get("shards")
    if not isinstance(shards, list) or not all(isinstance(each, dict) and "name" in each for each in shards):
        raise MTScaffoldError(f"{path}: shards: must be a list of names and inputs; {REMEDY}")
    return manifest


def finished_shard(folder: Folder, name: str, made_with: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a finished shard, whose ids are there in full length, which does not show their bytes.

    Raises MTScaffoldError where it is malformed, and where a file is missing, of another length, or of other codes.
    """
    path = folder.path(f"{name}.{MANIFEST}")
    remedy = f"remove {path} to encode this shard again"
    manifest = read_manifest(path, IDS, remedy)
    given, theirs = codes_used(path, manifest, remedy), CodesUsed(**made_with["codes"])
    if not given.same_as(theirs):
        raise MTScaffoldError(f"{path}: encoded with {given}, the folder with {theirs}; {remedy}")
    content = manifest.content
    for key in ("special_tokens", "append", "n_vocab", "dtype"):
        if content.get(key) != made_with[key]:
            raise MTScaffoldError(f"{path}: encoded with another {key} than the folder; {remedy}")
    if {*manifest.files} != {f"{name}.bin", f"{name}.idx"} or not all(
        isinstance(content.get(key), int) for key in ("documents", "ids", "bytes")
    ):
        raise MTScaffoldError(f"{path}: not the manifest of a shard; {remedy}")
    sizes = {f"{name}.bin": content["ids"] * DTYPES[content["dtype"]], f"{name}.idx": None}
    for file, expected in sizes.items():
        size = folder.size(file)
        if size is None:
            raise MTScaffoldError(f"{folder.path(file)}: missing; {remedy}")
        if expected not in (None, size):
            problem = "truncated" if size < expected else "too long"
            raise MTScaffoldError(f"{folder.path(file)}: {problem}: {size:,} of {expected:,} bytes; {remedy}")
    return manifest


def complete(folder: Folder, plan: Plan, manifests: Sequence[Manifest]) -> Manifest:
    """Write the manifest of a folder whose shards are finished, and return it; the same bytes whoever does so.

    manifests: of the shards.
    """
    files = {name: digest for each in manifests for name, digest in sorted(each.files.items())}
    counted = [{key: each.content[key] for key in ("documents", "ids", "bytes")} for each in manifests]
    totals = {key: sum(each[key] for each in counted) for key in ("documents", "ids", "bytes")}
    shards = [{**shard, **each} for shard, each in zip(plan.shards, counted, strict=True)]
    manifest = _manifest(plan._replace(shards=shards), files, totals)
    content = manifest_text(manifest).encode()
    if folder.read(MANIFEST) != content:
        folder.replace(MANIFEST, content)
    return manifest


def _manifest(plan: Plan, files: dict[str, str], totals: dict[str, int]) -> Manifest:
    content = {**plan.made_with, "settings": plan.settings, **totals, "shards": plan.shards}
    return Manifest(KIND, files, content)


def _compare(folder: Folder, manifest: Manifest, plan: Plan) -> None:
    theirs = CodesUsed(**manifest.content["codes"])
    given = CodesUsed(**plan.made_with["codes"])
    if not given.same_as(theirs):
        raise UsageError(f"{folder.name}: was started with {theirs}, not with {given}; {REMEDY}")
    before = {**manifest.content, **manifest.content.get("settings", {})}
    for name, value in {**plan.made_with, **plan.settings}.items():
        if name != "codes" and before.get(name) != value:
            raise UsageError(
                f"{folder.name}: was started with {name} {json.dumps(before.get(name))}, not {json.dumps(value)}; "
                f"{REMEDY}"
            )
    sizes = {each["name"]: each.get("input_bytes") for each in manifest.content["shards"]}
    for each in plan.shards:
        if each["name"] not in sizes:
            raise UsageError(f"{folder.name}: was started without the input {each['input']}; {REMEDY}")
        if sizes[each["name"]] != each["input_bytes"]:
            raise UsageError(
                f"{folder.name}: was started when {each['input']} had {sizes[each['name']]:,} bytes, not "
                f"{each['input_bytes']:,}; {REMEDY}"
            )
    if [each["name"] for each in plan.shards] != [*sizes]:
        missing = sorted({*sizes} - {each["name"] for each in plan.shards})
        problem = f"with the input of {missing[0]}, too" if missing else "with the inputs in another order"
        raise UsageError(f"{folder.name}: was started {problem}; {REMEDY}")
