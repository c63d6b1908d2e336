"""Encode files of documents into a folder, one pair of files of ids per input."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from mt_scaffold.codes import CodesSource
from mt_scaffold.corpus.documents import Documents
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.id_files import index_path
from mt_scaffold.corpus.inputs import TextFile
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.manifest import Manifest, manifest_text
from mt_scaffold.progress import ShardsProgress, shards_line
from mt_scaffold.segment.encode import DocumentEncoder
from mt_scaffold.segment.shards.claims import Claim, Claims
from mt_scaffold.segment.shards.folders import Folder, folder_at
from mt_scaffold.segment.shards.plan import Plan, Shard, begin, complete, finished_shard, plan_of, shards_of

_POLL_SECONDS = 1.0
# Documents are numbered from here on in each shard, for dropout: none is as long.
_FIRST = 1 << 40


class EncodedShards(NamedTuple):
    """What a folder holds; bytes: of the documents."""

    shards: int
    documents: int
    ids: int
    bytes: int


def encode_shards(
    codes: CodesSource,
    paths: Iterable[TextFile],
    folder: PathLike,
    *,
    format: str | None = None,
    field: str | None = None,
    **settings: Any,
) -> EncodedShards:
    """Encode each input into ``NAME.bin`` and ``NAME.idx`` in a folder, as the command ``encode`` does.

    ``NAME.manifest.json`` is written when both are complete, and ``manifest.json`` (``plan``) when all are. A second
    call with the same arguments encodes only what is not finished. Several processes, on several machines too, can
    encode into one folder (``claims``); each returns when the folder is complete, and it holds the same bytes
    however many there were.

    folder: a path, or a URL of a store that fsspec knows. The other arguments are those of ``encode_documents``;
    inputs are files or URLs. Under dropout, a document's index is its position in its shard and 2^40 for each shard
    before; ``seed`` must be given.

    Raises as ``encode_documents`` does; UsageError for a folder that was begun with other codes, settings or inputs.
    """
    encoder = DocumentEncoder(codes, **settings)
    if encoder.random and settings.get("seed") is None:
        raise UsageError("dropout and uniform sampling into a folder need --seed, by which all shards are sampled")
    documents = Documents(paths, format, field)
    shards = shards_of(documents)
    chosen = {"index": "fairseq", "in_text": "refuse", "dropout": 0, "uniform_sampling": 0, "seed": None, "epoch": 0}
    chosen = {name: settings.get(name, default) for name, default in chosen.items()}
    plan = plan_of(encoder.made_with, {"format": format, "field": field, **chosen}, shards)
    place = folder_at(folder)
    plan = begin(place, plan)
    with shards_line("encoding", [each.input_bytes for each in shards]) as progress:
        manifests = _Work(place, documents, encoder, plan, progress).finish(shards)
    found = complete(place, plan, [manifests[each.number] for each in shards])
    place.clear_claims()
    return EncodedShards(len(shards), *(found.content[name] for name in ("documents", "ids", "bytes")))


class _Work:
    """The part of one process in encoding shards."""

    def __init__(
        self, folder: Folder, documents: Documents, encoder: DocumentEncoder, plan: Plan, progress: ShardsProgress
    ) -> None:
        self._folder, self._documents, self._encoder, self._plan = folder, documents, encoder, plan
        self._progress = progress
        self._claims = Claims(folder)
        self._finished: dict[int, Manifest] = {}

    def finish(self, shards: list[Shard]) -> dict[int, Manifest]:
        """Encode shards until all are finished, by whomever; return the manifest of each."""
        if not self._folder.exclusive:
            print(
                f"notice: {self._folder.name}: this store cannot tell which of two processes came first; let only one "
                "encode into it, or share a folder of a file system, S3 or Google Cloud Storage",
                file=sys.stderr,
            )
        waited = False
        while left := self._unfinished(shards):
            if any(map(self._attempt, left)):
                continue
            if not waited:
                waited = True
                print(
                    f"notice: {self._folder.name}: waiting for {len(left)} of {len(shards)} shards, which other "
                    "processes encode",
                    file=sys.stderr,
                )
            time.sleep(_POLL_SECONDS)
        return self._finished

    def _attempt(self, shard: Shard) -> bool:
        """Encode a shard unless another process does; return whether it may be finished now."""
        with self._claims.claim(shard.name) as claim:
            if claim is None:
                return False
            # Its holder may have finished since the folder was listed.
            if self._folder.size(shard.manifest) is None:
                self._encode(shard, claim)
            return True

    def _unfinished(self, shards: list[Shard]) -> list[Shard]:
        names = self._folder.names()
        for shard in shards:
            if shard.number not in self._finished and shard.manifest in names:
                self._finished[shard.number] = finished_shard(self._folder, shard.name, self._plan.made_with)
                self._progress.finished(shard.number)
        return [shard for shard in shards if shard.number not in self._finished]

    def _encode(self, shard: Shard, claim: Claim) -> None:
        folder = self._folder
        with folder.staging(claim.name) as staging:
            path = os.path.join(staging, shard.ids)
            first = shard.number * _FIRST
            show = self._progress.encoding(shard.number)
            try:
                encoded = self._encoder.encode(self._documents, [shard.input], path, first=first, show=show)
                manifest = self._encoder.manifest(path, encoded)
            except (OSError, MTScaffoldError):
                if claim.holds():
                    raise
                return  # another process has taken the shard over, and removed the staging folder
            if not claim.holds():
                return
            for part in (path, index_path(path)):
                folder.publish(part, os.path.basename(part))
            # The name of the codes is that which the first process gave, so that the bytes depend on nothing else.
            manifest.content["codes"] = self._plan.made_with["codes"]
            folder.replace(shard.manifest, manifest_text(manifest).encode())
