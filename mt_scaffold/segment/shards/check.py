"""Check a folder of shards against its manifests, byte by byte."""

from __future__ import annotations

import hashlib
import sys

from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.files import PathLike, open_stored
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.manifest import MANIFEST, CodesUsed, Manifest
from mt_scaffold.segment.shards.encode import EncodedShards
from mt_scaffold.segment.shards.folders import Folder, folder_at
from mt_scaffold.segment.shards.plan import finished_shard, recorded


def check_shards(codes: CodesSource, folder: PathLike, merges: int = -1) -> EncodedShards:
    """Check that a folder holds all shards as ``encode_shards`` wrote them: what ``encode --check`` does.

    codes, merges: those that it must have been made with.

    Every problem is a line on stderr. Raises UsageError for other codes, and MTScaffoldError where a file is missing,
    truncated or changed, and where shards are not finished.
    """
    place = folder_at(folder)
    manifest = recorded(place)
    given, theirs = Codes.of(codes).used(merges), CodesUsed(**manifest.content["codes"])
    if not given.same_as(theirs):
        raise UsageError(f"{place.name}: encoded with {theirs}, not with {given}; check with those codes")
    shards = manifest.content["shards"]
    present = place.names()
    unfinished = [each["name"] for each in shards if f"{each['name']}.{MANIFEST}" not in present]
    damaged = 0
    for shard in shards:
        if shard["name"] not in unfinished:
            problem = _problem(place, shard["name"], manifest)
            damaged += problem is not None
            if problem is not None:
                print(f"mt-scaffold: {problem}", file=sys.stderr)
    if damaged or unfinished:
        problems = [f"{damaged} of {len(shards)} shards are damaged (see above)"] if damaged else []
        problems += (
            [f"{len(unfinished)} of {len(shards)} are not finished, {unfinished[0]} first"] if unfinished else []
        )
        raise MTScaffoldError(f"{place.name}: {', '.join(problems)}; then run the same encode again")
    if "documents" not in manifest.content:
        raise MTScaffoldError(f"{place.name}: its {MANIFEST} has no totals yet; run the same encode again")
    return EncodedShards(len(shards), *(manifest.content[name] for name in ("documents", "ids", "bytes")))


def _problem(folder: Folder, name: str, manifest: Manifest) -> str | None:
    try:
        shard = finished_shard(folder, name, manifest.content)
        for file, digest in shard.files.items():
            remedy = f"remove {folder.path(f'{name}.{MANIFEST}')} to encode this shard again"
            if manifest.files.get(file, digest) != digest:
                return f"{folder.path(file)}: another sha256 in {name}.{MANIFEST} than in {MANIFEST}; {remedy}"
            with open_stored(folder.path(file)) as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != digest:
                return f"{folder.path(file)}: not as it was written (sha256 mismatch); {remedy}"
    except MTScaffoldError as error:
        return str(error)
    return None
