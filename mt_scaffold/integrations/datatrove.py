"""Steps of a datatrove pipeline: a word counter, and datatrove's tokenizers with codes of mt_scaffold."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

from datatrove.data import DocumentsPipeline
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.tokens import DocumentTokenizer, MegatronDocumentTokenizer
from datatrove.pipeline.tokens.tokenizer import TokenizedFile
from datatrove.utils.batching import batched

from mt_scaffold.cached import cached_property
from mt_scaffold.corpus.count import write_counts
from mt_scaffold.errors import UsageError
from mt_scaffold.integrations.documents import DocumentEncoder, WordCounting


class WordCounter(PipelineStep):
    """Ends a pipeline by counting the words of its documents; each task writes a count file ``RANK.counts``.

    ``merge_counts`` makes them the count file of the corpus, identical byte for byte for any number of tasks.
    output_folder: as for datatrove's writers. counting: options; None for words between spaces.
    """

    name = "Word counts"
    type = "Writer"

    def __init__(self, output_folder: DataFolderLike, counting: WordCounting | None = None) -> None:
        super().__init__()
        self.output_folder = get_datafolder(output_folder)
        self.counting = WordCounting() if counting is None else counting

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> None:
        with self.output_folder.open(f"{rank:05d}.counts", "wb") as stream, self.track_time(unit="task"):
            types, words = write_counts(stream, documents=(document.text for document in data), **vars(self.counting))
        self.stat_update("word types", value=types, unit="task")
        self.stat_update("words", value=words, unit="task")


class _Ids(NamedTuple):
    ids: Any


class _Tokenizer:
    """The methods of ``tokenizers.Tokenizer`` that datatrove's steps call."""

    def __init__(self, encoder: DocumentEncoder) -> None:
        self._encoder = encoder

    def get_vocab_size(self) -> int:
        # datatrove chooses the type of its ids by this number, as ``id_width`` does.
        return self._encoder.bpe.n_vocab

    def encode_batch(self, texts: list[str]) -> list[_Ids]:
        ids, offsets = self._encoder.encode(texts)
        bounds = offsets.tolist()
        return [_Ids(ids[begin:end]) for begin, end in pairwise(bounds)]


class CodesTokenizer(DocumentTokenizer):
    """datatrove's ``DocumentTokenizer`` with codes: it writes each task's ids, by default in shuffled order.

    output_folder, options: as for ``DocumentTokenizer``, except that ``encoder.append`` replaces ``eos_token``.

    Raises UsageError for ``save_loss_metadata`` and ``eos_token``.
    """

    def __init__(self, output_folder: DataFolderLike, encoder: DocumentEncoder, **options: Any) -> None:
        if options.get("save_loss_metadata"):
            raise UsageError("save_loss_metadata needs a tokenizer that locates characters; omit it")
        super().__init__(output_folder, **_without_eos(encoder, options))
        self.encoder = encoder

    @cached_property
    def tokenizer(self) -> _Tokenizer:
        return _Tokenizer(self.encoder)

    def write_unshuffled(self, data: DocumentsPipeline, filename: str) -> TokenizedFile:
        """Write the ids of each batch of documents at once, without an object per id."""
        folder = self.output_folder
        if self.local_working_dir and (self.shuffle_documents or self.shuffle_chunk_size):
            folder = self.local_working_dir
        file = TokenizedFile(
            folder,
            filename,
            save_index=self.save_index or self.shuffle_documents or self.shuffle_chunk_size,
            upload_block_size=self.upload_block_size,
            tokenizer_name_or_path=self.tokenizer_name_or_path,
            save_final_metadata=self.save_final_metadata,
            token_size=self.token_size,
        )
        for batch in batched(data, self.batch_size):
            with self.track_time(unit="batch"):
                ids, offsets = self.encoder.encode([document.text for document in batch])
                file.write_bytes(ids.tobytes(), offsets[1:].tolist())
            self.stat_update("tokens", value=len(ids), unit="batch")
        file.close()
        return file


class MegatronCodesTokenizer(MegatronDocumentTokenizer):
    """datatrove's ``MegatronDocumentTokenizer`` with codes; arguments and errors as for ``CodesTokenizer``."""

    def __init__(self, output_folder: DataFolderLike, encoder: DocumentEncoder, **options: Any) -> None:
        super().__init__(output_folder, **_without_eos(encoder, options))
        self.encoder = encoder

    @cached_property
    def tokenizer(self) -> _Tokenizer:
        return _Tokenizer(self.encoder)


def _without_eos(encoder: DocumentEncoder, options: dict[str, Any]) -> dict[str, Any]:
    if options.get("eos_token") is not None:
        raise UsageError("eos_token is not supported; give append= to the DocumentEncoder instead")
    name = os.fspath(encoder.codes) if isinstance(encoder.codes, str | os.PathLike) else "mt_scaffold"
    return {"tokenizer_name_or_path": name, **options, "eos_token": None}
