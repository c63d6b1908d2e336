"""``encode`` into a folder: files of ids for each input, with manifests by which it resumes and checks them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.documents import DocumentInput, Documents
from mt_scaffold.corpus.files import PathLike, explain_os_error, make_folder, open_input, shown
from mt_scaffold.corpus.id_files import DTYPES, index_size
from mt_scaffold.corpus.inputs import TextFile
from mt_scaffold.corpus.storage.parts import create_part
from mt_scaffold.corpus.storage.remote import is_remote, remote_files, remote_size
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.manifest import (
    MANIFEST,
    CodesUsed,
    Manifest,
    codes_used,
    manifest_text,
    raw_digest,
    read_manifest,
    write_manifest,
)
from mt_scaffold.progress import shards_line
from mt_scaffold.segment.encode import IDS, DocumentEncoder, special_ids, write_ids

KIND = "shards"
REMEDY = "encode into another folder"
_ENDINGS = (".jsonl", ".ndjson", ".parquet", ".txt")
_TOTALS = ("documents", "ids", "bytes")
_DEFAULTS = {"index": "fairseq", "in_text": "refuse", "dropout": 0, "uniform_sampling": 0, "seed": None, "epoch": 0}
# For dropout, the documents of shard N are numbered from N times this: no shard has as many.
_FIRST = 1 << 40


class EncodedFolder(NamedTuple):
    """Totals of a folder; bytes: of the documents."""

    shards: int
    documents: int
    ids: int
    bytes: int


class _Shard(NamedTuple):
    """An input and the name of its files: ``NAME.bin``, ``NAME.idx`` and, once they are complete, its manifest."""

    number: int
    name: str
    path: str
    input: DocumentInput


def is_folder(path: PathLike) -> bool:
    """Return whether an output is a folder: one that exists, a name that ends in ``/``, a URL without ``.bin``."""
    name = os.fspath(path)
    return name.endswith("/") or (not name.endswith(".bin") if is_remote(name) else os.path.isdir(name))


def encode_folder(
    codes: CodesSource,
    paths: Iterable[TextFile],
    folder: PathLike,
    *,
    format: str | None = None,
    field: str | None = None,
    **settings: Any,
) -> EncodedFolder:
    """Encode each input into ``NAME.bin`` and ``NAME.idx`` in a folder, as the command ``encode`` does.

    ``NAME.manifest.json`` is written when both are complete, ``manifest.json`` when the first input is read and, with
    the digests and totals, when all are encoded. A second call with the same arguments encodes only what is not
    finished.

    folder: a path, or a URL of a store that fsspec knows. The other arguments are those of ``encode_documents``;
    inputs are files or URLs. Under dropout, a document's index is its position in its shard, plus 2^40 for each shard
    before; ``seed`` must be given.

    Raises as ``encode_documents`` does; UsageError for a folder that was started with other codes, settings or inputs,
    and for one that another process of this machine is encoding into; MTScaffoldError if a finished input has changed.
    """
    encoder = DocumentEncoder(codes, **settings)
    if encoder.draw and encoder.draw.seed is None:
        raise UsageError("dropout and uniform sampling into a folder need --seed, by which all shards are sampled")
    documents = Documents(paths, format, field)
    shards = _shards(documents)
    sizes = [_size(each) for each in shards]
    chosen = {name: settings.get(name, default) for name, default in _DEFAULTS.items()}
    started = {**encoder.made_with, "settings": {"format": format, "field": field, **chosen}}
    place = os.fspath(folder)
    _start(place, started, shards)
    with _alone(place), shards_line("encoding", sizes) as progress:
        files = _files(place)
        manifests = []
        for shard in shards:
            manifest = None
            if f"{shard.name}.{MANIFEST}" in files:
                manifest = _finished(place, files, shard.name, started)
                _same_input(place, manifest, shard)
            if manifest is None:
                show, first = progress.encoding(shard.number), shard.number * _FIRST
                _, manifest = write_ids(
                    encoder, documents, [shard.input], _path(place, f"{shard.name}.bin"), first=first, show=show
                )
            manifests.append(manifest)
            progress.finished(shard.number)
    totals = {key: sum(each.content[key] for each in manifests) for key in _TOTALS}
    entries = [
        {**entry, "sha256": each.content["inputs"][0]["sha256"], **{key: each.content[key] for key in _TOTALS}}
        for entry, each in zip(_entries(shards), manifests, strict=True)
    ]
    digests = {name: digest for each in manifests for name, digest in sorted(each.files.items())}
    complete = Manifest(KIND, digests, {**started, **totals, "shards": entries})
    with open_input(_path(place, MANIFEST)) as stream:
        changed = stream.read() != manifest_text(complete).encode()
    if changed:
        write_manifest(_path(place, MANIFEST), complete)
    return EncodedFolder(len(shards), **totals)


def check_folder(
    codes: CodesSource,
    folder: PathLike,
    merges: int = -1,
    paths: Iterable[TextFile] | None = None,
    *,
    special_tokens: Sequence[str] = (),
    append: str | None = None,
    **settings: Any,
) -> EncodedFolder:
    """Check that a folder holds all shards as ``encode_folder`` wrote them, as ``encode --check`` does.

    codes, merges: those that it must have been made with. paths: the inputs, which must be those that were encoded;
    None to check only the ids. The other arguments are those of ``encode_folder``; the folder must have been started
    with any that differ from their defaults.

    Prints a line on stderr about every problem. Raises UsageError for other codes or settings and for inputs of other
    shards, and MTScaffoldError if a file is missing, truncated or changed, or a shard is not finished.
    """
    place = os.fspath(folder)
    manifest = _recorded(place)
    codes = Codes.of(codes)
    given, theirs = codes.used(merges), CodesUsed(**manifest.content["codes"])
    if not given.same_as(theirs):
        raise UsageError(f"{shown(place)}: encoded with {theirs}, not with {given}; check with those codes")
    special = special_ids(codes, merges, special_tokens, append) if special_tokens else {}
    _compare_given(place, manifest, {"append": append, **settings}, special)
    entries = {each["name"]: each for each in manifest.content["shards"]}
    names = [*entries]
    # The manifest has no totals until all shards are finished.
    totals = [content[key] for content in (manifest.content, *entries.values()) for key in _TOTALS if key in content]
    if len(names) < len(manifest.content["shards"]) or not {*map(type, totals)} <= {int}:
        problem = f"shards: must be named once each, with {', '.join(_TOTALS)} as whole numbers"
        raise MTScaffoldError(f"{shown(_path(place, MANIFEST))}: {problem}; run the same encode again")
    inputs = {} if paths is None else {each.name: each for each in _shards(Documents(paths))}
    if paths is not None and sorted(inputs) != sorted(names):
        name = min({*names} ^ {*inputs})
        raise UsageError(
            f"{shown(place)}: not encoded from these inputs, by the shard {name}; give all of them, or none"
        )
    files = _files(place)
    unfinished = [name for name in names if f"{name}.{MANIFEST}" not in files]
    finished = [each for name, each in entries.items() if name not in unfinished]
    problems = [_problem(place, files, each, manifest, inputs.get(each["name"])) for each in finished]
    found = [problem for problem in problems if problem is not None]
    for problem in found:
        print(f"mt-scaffold: {problem}", file=sys.stderr)
    if found or unfinished:
        lines = [f"{len(found)} of {len(names)} shards are damaged (see above)"] if found else []
        lines += [f"{len(unfinished)} of {len(names)} are not finished, {unfinished[0]} first"] if unfinished else []
        raise MTScaffoldError(f"{shown(place)}: {', '.join(lines)}; then run the same encode again")
    if not all(key in manifest.content for key in _TOTALS):
        raise MTScaffoldError(f"{shown(place)}: its {MANIFEST} has no totals yet; run the same encode again")
    for key in _TOTALS:
        if (total := sum(each.get(key, 0) for each in finished)) != manifest.content[key]:
            problem = f"{manifest.content[key]:,} {key} in all, but {total:,} in its shards"
            raise MTScaffoldError(f"{shown(place)}: its {MANIFEST} says {problem}; run the same encode again")
    return EncodedFolder(len(names), *(manifest.content[name] for name in _TOTALS))


def _problem(
    folder: str, files: Mapping[str, int], entry: Mapping[str, Any], manifest: Manifest, source: _Shard | None
) -> str | None:
    """Return what is wrong with a finished shard, if its files or its input do not match the manifests."""
    name = entry["name"]
    try:
        shard = _finished(folder, files, name, manifest.content)
        for key in _TOTALS:
            if (said := entry.get(key, shard.content[key])) != shard.content[key]:
                problem = f"says {said:,} {key} of {name}, but {name}.{MANIFEST} {shard.content[key]:,}"
                return f"{shown(_path(folder, MANIFEST))}: {problem}; run the same encode again"
        for file, digest in shard.files.items():
            path = _path(folder, file)
            if manifest.files.get(file, digest) != digest:
                return f"{shown(path)}: another sha256 in {name}.{MANIFEST} than in {MANIFEST}; {_remedy(folder, name)}"
            if raw_digest(path) != digest:
                return f"{shown(path)}: not as it was written (sha256 mismatch); {_remedy(folder, name)}"
        if source is not None:
            _same_input(folder, shard, source)
    except MTScaffoldError as error:
        return str(error)
    return None


def _shards(documents: Documents) -> list[_Shard]:
    """Return the shards of documents, one per file, in order.

    A shard is named after its file without ``.jsonl.zst``, and after its folders below the one that holds all inputs:
    ``de.00`` for ``corpus/de/00.jsonl.zst`` next to ``corpus/en``.

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
    pairs = zip(names, paths, documents.inputs, strict=True)
    return [_Shard(number, *each) for number, each in enumerate(pairs)]


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


def _size(shard: _Shard) -> int:
    """Return the size of an input as stored, in bytes; raise MTScaffoldError if it is not a file."""
    path = shard.path
    if is_remote(path):
        return remote_size(path)
    if not os.path.isfile(path):
        problem = "not a file, and so not a shard" if os.path.exists(path) else "no such file"
        raise MTScaffoldError(f"{shown(path)}: {problem}")
    return os.path.getsize(path)


def _entries(shards: Iterable[_Shard]) -> list[dict[str, Any]]:
    return [{"name": each.name, "input": os.path.basename(each.input.name)} for each in shards]


def _path(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if is_remote(folder) else os.path.join(folder, name)


def _files(folder: str) -> dict[str, int]:
    """Return the files in a folder with their sizes in bytes; none if there is no such folder."""
    if is_remote(folder):
        return remote_files(folder)
    try:
        with os.scandir(folder) as entries:
            return {each.name: each.stat().st_size for each in entries if each.is_file()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise explain_os_error(error, folder) from error


def _start(folder: str, started: dict[str, Any], shards: Sequence[_Shard]) -> None:
    """Write the manifest of a folder that has none, or compare with the one that it was started with.

    Raises UsageError for other codes, settings or inputs, and if there are files of these names but no manifest.
    """
    files = _files(folder)
    entries = _entries(shards)
    if MANIFEST in files:
        _compare(folder, _recorded(folder), json.loads(json.dumps(started)), [each["name"] for each in entries])
        return
    for shard in shards:
        if taken := files.keys() & {f"{shard.name}{ending}" for ending in (".bin", ".idx", f".{MANIFEST}")}:
            raise UsageError(f"{shown(_path(folder, min(taken)))}: exists, without a {MANIFEST} of shards; {REMEDY}")
    manifest = Manifest(KIND, {}, {**started, "shards": entries})
    if is_remote(folder):
        write_manifest(_path(folder, MANIFEST), manifest)
        return
    make_folder(folder)
    if not _create(_path(folder, MANIFEST), manifest_text(manifest).encode()):
        _start(folder, started, shards)  # another process was first


def _create(path: str, content: bytes) -> bool:
    """Create a file, at once with its content; return False if it exists: it is not replaced, as others lock it."""
    try:
        descriptor, part = create_part(path, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            try:
                stream.write(content)
                stream.flush()
                os.fsync(descriptor)
                _rename_new(part, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
    except FileExistsError:
        if not os.path.isfile(path):
            raise MTScaffoldError(f"{shown(path)}: exists and is not a file; encode into another folder") from None
        return False
    except OSError as error:
        raise explain_os_error(error, path) from error
    return True


def _rename_new(part: str, path: str) -> None:
    """Rename a file; raise FileExistsError if the new name exists, provided that the file system has links."""
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        os.rename(part, path)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Refuse a second process that encodes into the folder; without shared locks they merely do the same work twice."""
    if is_remote(folder):
        yield
        return
    with contextlib.ExitStack() as stack:
        path = os.path.join(folder, MANIFEST)
        while True:
            stream = stack.enter_context(open(path, "r+b"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    raise UsageError(
                        f"{shown(folder)}: another process encodes into it; for several processes, give each an input "
                        "and an --output NAME.bin"
                    ) from None
            # A process that has just completed the folder has replaced the file.
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(path)):
                break
        yield


def _recorded(folder: str) -> Manifest:
    """Return the manifest of a folder of shards; raise MTScaffoldError if it is missing or damaged."""
    path = _path(folder, MANIFEST)
    if MANIFEST not in _files(folder):
        raise MTScaffoldError(f"{shown(folder)}: no {MANIFEST}, and so not a folder of shards")
    manifest = read_manifest(path, KIND, REMEDY)
    codes_used(path, manifest, REMEDY)
    shards = manifest.content.get("shards")
    if not isinstance(shards, list) or not all(isinstance(each, dict) and "name" in each for each in shards):
        raise MTScaffoldError(f"{shown(path)}: shards: must be a list of names and inputs; {REMEDY}")
    return manifest


def _compare(folder: str, manifest: Manifest, started: Mapping[str, Any], names: Sequence[str]) -> None:
    theirs, given = CodesUsed(**manifest.content["codes"]), CodesUsed(**started["codes"])
    if not given.same_as(theirs):
        raise UsageError(f"{shown(folder)}: was started with {theirs}, not with {given}; {REMEDY}")
    before = {**manifest.content, **manifest.content.get("settings", {})}
    for name, value in {**started, **started["settings"]}.items():
        if name not in ("codes", "settings") and before.get(name) != value:
            raise UsageError(
                f"{shown(folder)}: was started with {name} {json.dumps(before.get(name))}, not {json.dumps(value)}; "
                f"{REMEDY}"
            )
    recorded = [each["name"] for each in manifest.content["shards"]]
    if recorded != names:
        more, fewer = sorted({*names} - {*recorded}), sorted({*recorded} - {*names})
        problem = (
            f"without the input of {more[0]}"
            if more
            else f"with the input of {fewer[0]} too"
            if fewer
            else "with the inputs in another order"
        )
        raise UsageError(f"{shown(folder)}: was started {problem}; {REMEDY}")


def _compare_given(folder: str, manifest: Manifest, given: Mapping[str, Any], special: Mapping[str, int]) -> None:
    """Raise UsageError for settings that are given and differ; special: empty if no special tokens are."""
    before = {**manifest.content, **manifest.content.get("settings", {})}
    changed = [name for name, value in given.items() if value not in (_DEFAULTS.get(name), before.get(name))]
    if special and special != before.get("special_tokens"):
        changed.append("special_tokens")
    if changed:
        raise UsageError(f"{shown(folder)}: encoded with other settings ({', '.join(changed)}); leave them out")


def _remedy(folder: str, name: str) -> str:
    return f"remove {shown(_path(folder, f'{name}.{MANIFEST}'))} to encode this shard again"


def _finished(folder: str, files: Mapping[str, int], name: str, made_with: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a finished shard whose files have their full lengths; their bytes are not compared.

    files: those of the folder, with their sizes. Raises MTScaffoldError if the manifest is malformed, or a file is
    missing, of another length, or of other codes.
    """
    path, remedy = _path(folder, f"{name}.{MANIFEST}"), _remedy(folder, name)
    manifest = read_manifest(path, IDS, remedy)
    given, theirs = codes_used(path, manifest, remedy), CodesUsed(**made_with["codes"])
    if not given.same_as(theirs):
        raise MTScaffoldError(f"{shown(path)}: encoded with {given}, the folder with {theirs}; {remedy}")
    content = manifest.content
    for key in ("special_tokens", "append", "n_vocab", "dtype"):
        if content.get(key) != made_with[key]:
            raise MTScaffoldError(f"{shown(path)}: encoded with another {key} than the folder; {remedy}")
    if {*manifest.files} != {f"{name}.bin", f"{name}.idx"} or not all(
        isinstance(content.get(key), int) for key in _TOTALS
    ):
        raise MTScaffoldError(f"{shown(path)}: not the manifest of a shard; {remedy}")
    index = index_size(made_with["settings"]["index"], content["documents"])
    sizes = {f"{name}.bin": content["ids"] * DTYPES[content["dtype"]], f"{name}.idx": index}
    for file, expected in sizes.items():
        size = files.get(file)
        if size is None:
            raise MTScaffoldError(f"{shown(_path(folder, file))}: missing; {remedy}")
        if size != expected:
            problem = "truncated" if size < expected else "too long"
            raise MTScaffoldError(f"{shown(_path(folder, file))}: {problem}: {size:,} of {expected:,} bytes; {remedy}")
    return manifest


def _same_input(folder: str, manifest: Manifest, shard: _Shard) -> None:
    """Raise MTScaffoldError if the input of a finished shard is not the one that its ids were made from."""
    name, remedy = shown(_path(folder, f"{shard.name}.{MANIFEST}")), _remedy(folder, shard.name)
    match manifest.content.get("inputs"):
        case [{"sha256": str(digest)}]:
            if raw_digest(shard.path) != digest:
                raise MTScaffoldError(
                    f"{shard.input.name}: not the text that {name} records (sha256 mismatch); {remedy}"
                )
        case _:
            raise MTScaffoldError(f"{name}: records no sha256 of its input; {remedy}")
