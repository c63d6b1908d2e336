"""Documents → files of ids, and back, as the commands ``encode`` and ``decode`` do."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, BinaryIO, NamedTuple, cast

from mt_scaffold.codes import Codes, CodesSource
from mt_scaffold.corpus.documents import DOCUMENT_FORMATS, DocumentInput, Documents
from mt_scaffold.corpus.files import (
    Output,
    PathLike,
    Waiting,
    explain_os_error,
    input_or_standard,
    output_or_standard,
    refuse_overwriting,
    shown,
    standard_input,
    standard_output,
    writing_to,
)
from mt_scaffold.corpus.id_files import (
    DTYPES,
    INDEXES,
    IdFile,
    IdsWriter,
    id_width,
    index_path,
    read_index,
    writing_ids,
)
from mt_scaffold.corpus.inputs import TextFile, core_input
from mt_scaffold.errors import MTScaffoldError, SpecialTokenError, UsageError
from mt_scaffold.manifest import (
    Manifest,
    codes_used,
    manifest_path,
    raw_digest,
    read_manifest,
    write_manifest,
)
from mt_scaffold.options import WORKERS_HELP, check_choice, worker_count
from mt_scaffold.options_from_signature import CODES, MERGES, SPECIAL, Name, Option
from mt_scaffold.progress import progress_line
from mt_scaffold.segment.apply import BPE
from mt_scaffold.segment.draw import Draw, warn_of_epoch
from mt_scaffold.segment.ids import IncrementalDecoder, Some, check_special_tokens

# The choices for a special token that the text spells out.
IN_TEXT = ("refuse", "token", "text")
DECODED_FORMATS = ("lines", "files", "jsonl")
# The kind of the manifest next to a pair of files of ids, and what to do about a damaged one.
IDS, REMEDY = "ids", "encode the text again, or remove the manifest to decode without it"
# Ids decoded at once.
_BATCH = 1 << 20
# Documents encoded at once, in bytes.
_BATCH_BYTES = 1 << 22


class Encoded(NamedTuple):
    """Totals of what ``encode_documents`` wrote; bytes: of the documents."""

    documents: int
    ids: int
    bytes: int
    n_vocab: int
    dtype: str


def encode_documents(
    codes: Annotated[CodesSource, CODES],
    paths: Annotated[Iterable[TextFile] | None, Option("PATH", "-i", name="input", convert=input_or_standard)],
    outfile: Annotated[PathLike, Option("PATH", "-o", name="output")],
    *,
    format: Annotated[str | None, Option(choices=DOCUMENT_FORMATS)] = None,
    field: Name | None = None,
    merges: Annotated[int, MERGES] = -1,
    dtype: Annotated[str | None, Option(choices=DTYPES)] = None,
    index: Annotated[str, Option(choices=INDEXES)] = "fairseq",
    special_tokens: Annotated[Sequence[str], SPECIAL] = (),
    append: Annotated[str | None, Option("TOKEN")] = None,
    in_text: Annotated[str, Option(choices=IN_TEXT)] = "refuse",
    dropout: Annotated[float, Option("P")] = 0,
    seed: Annotated[int | None, Option("S")] = None,
    epoch: Annotated[int, Option("E")] = 0,
    num_workers: Annotated[int | None, Option(help=WORKERS_HELP)] = None,
) -> Encoded:
    """Encode documents into ``NAME.bin`` and ``NAME.idx`` (see ``id_files``): the command ``encode``.

    paths: documents: text, JSONL or Parquet, globs, .gz and .zst too, read as one (default: standard input)
    outfile: NAME.bin for all ids, with NAME.idx, which has the beginning of each document, and NAME.manifest.json,
        which records the text and the codes
    format: format of the input (default: by the name of the file, or lines)
    field: the key or column of the text in JSONL and Parquet (default: text)
    dtype: type of an id (default: the smaller one that fits)
    index: the program that reads NAME.idx; for Megatron, ids of 4 bytes are int32
    append: end every document with this token, such as '<|endoftext|>'
    in_text: if a document spells out a special token: an error, its id, or text like any other
    dropout: skip each merge with probability P (BPE-dropout)
    seed: seed for dropout (default: random)
    epoch: with --seed and --dropout, different ids for each E

    ``NAME.manifest.json`` records the codes and special tokens, without which the ids cannot become text again, and the
    digests of inputs and files. An input that is a file is read twice, first for its digest.

    codes, merges, special_tokens are as for ``BPE``; the symbols must be bytes. paths, format and field are as for
    ``Documents``. The token of ``append`` is a special token if it is not one yet. dropout, seed and epoch are as for
    ``BPE.encode_batch``, a document's index being its position among all. The files are the same for any number of
    threads.

    Memory is bounded by the longest documents: each thread takes 8 to 12 times their bytes.

    Raises as ``BPE``, ``Documents`` and ``BPE.encode`` do, with file and line or row; UsageError for a type that is too
    small and an output that is an input. An output path is only created when complete.
    """
    check_choice("treatment of special tokens", in_text, IN_TEXT)
    check_choice("index", index, INDEXES)
    read = Codes.of(codes)
    bpe = bpe_of(read, merges, special_tokens, append)
    encoder = _DocumentEncoder(
        bpe,
        id_width(bpe.n_vocab, dtype),
        index,
        Draw("dropout", dropout, seed, epoch),
        states_in_text(bpe, in_text),
        -1 if append is None else bpe.special_tokens[append],
        worker_count(num_workers),
    )
    warn_of_epoch(encoder.draw)
    documents = Documents([input_or_standard(None)] if paths is None else paths, format, field)
    path = manifest_path(outfile)
    refuse_overwriting([outfile, index_path(outfile), path], [codes, *documents.sources])
    # Taken before the text is read, so that a file that changes meanwhile does not match.
    inputs = [{"name": os.path.basename(each.name), "sha256": _input_digest(each)} for each in documents.inputs]
    encoded = encoder.encode(documents, outfile, before=lambda: _remove(path))
    files = {os.path.basename(each): raw_digest(each) for each in (os.fspath(outfile), index_path(outfile))}
    made_with = {"codes": read.used(merges)._asdict(), "special_tokens": bpe.special_tokens, "append": append}
    write_manifest(path, Manifest(IDS, files, {**made_with, **encoded._asdict(), "inputs": inputs}))
    return encoded


def _input_digest(each: DocumentInput) -> str | None:
    """Return the digest of an input as stored; None for one that can be read only once."""
    if not isinstance(each.source, str | os.PathLike) or not os.path.isfile(each.source):
        return None
    return raw_digest(each.source)


def _remove(manifest: str) -> None:
    """Remove an old manifest, which would be of other ids if this process ended before writing the new one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(manifest)


class _Done(NamedTuple):
    """What has been encoded; bytes: of the documents."""

    documents: int
    ids: int
    bytes: int


@dataclass(frozen=True)
class _DocumentEncoder:
    """Encodes documents into a pair of files.

    width: bytes per id. special: the treatment of special tokens in text. ending: the id that ends documents, or -1.
    """

    bpe: BPE
    width: int
    index: str
    draw: Draw
    special: bytes
    ending: int
    workers: int

    def encode(self, documents: Documents, outfile: PathLike, *, before: Callable[[], object]) -> Encoded:
        """Encode documents into ``NAME.bin`` and ``NAME.idx``; before: called before the files appear."""
        done = _Done(0, 0, 0)
        with progress_line("encoding") as show, writing_ids(outfile, self.width, self.index) as writer:
            for each in documents.inputs:
                seen = None if show is None else partial(_shown_after, show, done.bytes)
                encode = self._encode_lines if each.format == "lines" else self._encode_each
                more = encode(documents, each, writer, done.documents, seen)
                done = _Done(*map(operator.add, done, more))
            before()
        dtype = next(name for name in DTYPES if DTYPES[name] == self.width)
        return Encoded(*done, self.bpe.n_vocab, dtype)

    def _encode_lines(
        self,
        documents: Documents,
        each: DocumentInput,
        writer: IdsWriter,
        first: int,
        show: Callable[[int], object] | None,
    ) -> _Done:
        """Encode one input in the core, which reads and writes; first: the index of its first document."""
        with core_input(each.source) as opened:
            for stream in (writer.ids, writer.sizes):
                stream.flush()
            try:
                done = self.bpe.ids_in_core.encode_lines(
                    opened,
                    (writer.name, writer.ids.fileno()),
                    (writer.index_name, writer.sizes.fileno()),
                    self.special,
                    first,
                    self.width,
                    self.ending,
                    self.draw,
                    self.workers,
                    show,
                )
            except SpecialTokenError as error:
                raise _in_document(str(error)) from None
        for stream in (writer.ids, writer.sizes):
            stream.seek(0, os.SEEK_END)
        return _Done(*done)

    def _encode_each(
        self,
        documents: Documents,
        each: DocumentInput,
        writer: IdsWriter,
        first: int,
        show: Callable[[int], object] | None,
    ) -> _Done:
        """Encode one input document by document; first: the index of its first one."""
        done = _Done(0, 0, 0)
        blank = array("q")
        for batch in _in_batches(documents.documents_of(each, blank)):
            start = first + done.documents
            indices = range(start, start + len(batch)) if self.draw else ()
            try:
                ids, offsets = self.bpe.ids_in_core.encode_batch(
                    batch, self.special, indices, self.draw, self.workers, self.width, self.ending
                )
            except SpecialTokenError as error:
                number, message = str(error).removeprefix("text ").split(": ", 1)
                place = _place(each, done.documents + int(number) + 1, blank)
                raise _in_document(f"{place}: {message}") from None
            writer.ids.write(ids)
            starts = array("q", offsets)
            writer.sizes.write(array("i", (end - begin for begin, end in pairwise(starts))))
            done = _Done(done.documents + len(batch), done.ids + starts[-1], done.bytes + sum(map(len, batch)))
            if show is not None:
                show(done.bytes)
        return done


def _shown_after(show: Callable[[int], object], before: int, done: int) -> None:
    show(before + done)


def _expected_tokens(
    codes: Codes, merges: int, infile: PathLike, tokens: Sequence[str], append: str | None
) -> tuple[list[str], str | None]:
    """Return the special tokens to decode with, and the one that ends documents: those given, or else the manifest's.

    Raises UsageError if the manifest records other codes or special tokens; without a manifest, prints a notice on
    stderr.
    """
    special = _special(tokens, append)
    path = manifest_path(infile)
    if not os.path.exists(path):
        print(
            f"notice: {shown(infile)}: no {shown(os.path.basename(path))} next to it records the codes of these ids; "
            "with other codes than theirs the text is wrong",
            file=sys.stderr,
        )
        return special, append
    manifest = read_manifest(path, IDS, REMEDY)
    index = index_path(infile)
    checked = index if os.path.exists(index) else infile
    if raw_digest(checked) not in manifest.files.values():
        raise MTScaffoldError(f"{shown(path)}: not the manifest of {shown(checked)} (sha256 mismatch); {REMEDY}")
    given, theirs = codes.used(merges), codes_used(path, manifest, REMEDY)
    if not given.same_as(theirs):
        raise UsageError(f"{shown(infile)}: encoded with {theirs}, not with {given}; decode with those codes")
    recorded, ending = manifest.content.get("special_tokens"), manifest.content.get("append")
    if not isinstance(recorded, dict) or not (ending is None or ending in recorded):
        raise MTScaffoldError(f"{shown(path)}: special_tokens: must be tokens and their ids; {REMEDY}")
    if not special:
        return list(recorded), ending
    if bpe_of(codes, merges, tokens, append).special_tokens != recorded:
        names = ", ".join(map(repr, recorded)) or "none"
        raise UsageError(
            f"{shown(infile)}: encoded with other special tokens ({names}); omit --special and --append, which the "
            "manifest gives"
        )
    if append not in (None, ending):
        raise UsageError(f"{shown(infile)}: encoded with --append {ending}, not {append}; omit it")
    return special, append


def bpe_of(codes: CodesSource, merges: int, tokens: Sequence[str], append: str | None) -> BPE:
    """Return the BPE of documents that end in ``append``, which is a special token too."""
    return BPE(codes, merges, special_tokens=_special(tokens, append))


def states_in_text(bpe: BPE, in_text: str) -> bytes:
    """Return the treatment, one of ``IN_TEXT``, of all special tokens, as the core takes it."""
    return bpe.special_states("all" if in_text == "token" else (), "all" if in_text == "refuse" else ())


def _special(tokens: Sequence[str], append: str | None) -> list[str]:
    special = check_special_tokens(tokens)
    return special if append is None or append in special else [*special, append]


def _place(each: DocumentInput, number: int, blank: Iterable[int]) -> str:
    """Return the place of a document, for errors; blank: the numbers, in order, of lines without one."""
    if each.format == "files":
        return each.name
    for line in blank:
        number += line <= number
    return f"{each.name}: {'row' if each.format == 'parquet' else 'line'} {number}"


def _in_batches(documents: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield documents in batches that keep all threads busy."""
    batch, size = [], 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _in_document(message: str) -> SpecialTokenError:
    """Return the core's error with the command's remedy."""
    problem = message.split("; ")[0]
    return SpecialTokenError(f"{problem}; --in-text token encodes it as that token, --in-text text as text")


def decode_documents(
    codes: Annotated[CodesSource, CODES],
    infile: Annotated[PathLike | None, Option("NAME.bin", "-i", name="input")],
    outfile: Annotated[Output | None, Option("PATH", "-o", name="output", convert=output_or_standard)],
    *,
    stream: bool = False,
    format: Annotated[str, Option(choices=DECODED_FORMATS)] = "lines",
    field: Name = "text",
    merges: Annotated[int, MERGES] = -1,
    dtype: Annotated[str | None, Option(choices=DTYPES)] = None,
    special_tokens: Annotated[Sequence[str], SPECIAL] = (),
    append: Annotated[str | None, Option("TOKEN")] = None,
) -> None:
    """Decode ``NAME.bin`` into text, document by document: the command ``decode``.

    infile: ids (from encode)
    outfile: output text (default: standard output)
    stream: write the text of ids as they arrive on standard input, as in NAME.bin, only in whole characters
    format: each document followed by a line end, as it is, or in a JSON object, where U+FFFD replaces what is not UTF-8
    field: the key of the text in JSONL
    dtype: type of an id, if there is no NAME.idx (default: uint16, uint32 for codes of more than 65,536 ids)
    append: leave out this token, which encode appended, at the end of documents (default: the one in
        NAME.manifest.json)

    codes, merges, special_tokens and append are those that the ids were made with. Without special tokens and
    ``append``, those of ``NAME.manifest.json``. Without a manifest they are not checked, with a notice on stderr. A
    warning there counts the documents of which U+FFFD replaces a part. A file without ``NAME.idx``, such as nanoGPT's,
    is read as one document and, even as ``lines``, written as it is.

    Raises UsageError for codes and special tokens other than the manifest's; MTScaffoldError for an id out of range, an
    index or manifest that does not match the file, and, as ``lines``, for a document that holds an LF, unless it is the
    only one of a file without an index.
    """
    if stream:
        if infile or outfile or append or merges != -1 or format != "lines":
            raise UsageError(
                "--stream reads standard input and writes standard output; of the other options give only --dtype and "
                "--special"
            )
        _decode_stream(codes, standard_input(), standard_output(), dtype, special_tokens)
        return
    if not infile:
        raise UsageError("--input NAME.bin is missing; or give --stream")
    outfile = output_or_standard(None) if outfile is None else outfile
    check_choice("format", format, DECODED_FORMATS)
    if dtype is not None:
        check_choice("type of ids", dtype, DTYPES)
    check_special_tokens(special_tokens)
    index = index_path(infile)
    refuse_overwriting([outfile], [codes, infile, index, manifest_path(infile)])
    found = read_index(infile) if os.path.exists(index) else None
    read = Codes.of(codes)
    special, append = _expected_tokens(read, merges, infile, special_tokens, append)
    bpe = BPE(read, merges, special_tokens=special)
    strip = -1 if append is None else bpe.special_tokens[append]
    if found is not None:
        if dtype is not None and DTYPES[dtype] != found.width:
            raise UsageError(f"{shown(infile)}: its index has uint{8 * found.width} ids; omit --dtype")
        batches = _batches(found)
    else:
        if format != "files" and os.path.exists(manifest_path(infile)):
            raise MTScaffoldError(
                f"{shown(index)}: missing, so that documents cannot be told apart; give --format files"
            )
        batches = _one_document(infile, id_width(bpe.n_vocab) if dtype is None else DTYPES[dtype])
        # A single document needs no separator.
        format = "files" if format == "lines" else format
    decoder = _Decoder(bpe, infile, format, field, strip)
    with writing_to(outfile, durable=False) as output:
        for ids, sizes in batches:
            output.write(decoder.decode(ids, sizes))
    if decoder.replaced:
        print(
            f"warning: {shown(infile)}: {decoder.replaced:,} documents are not UTF-8, and U+FFFD replaces "
            "what is not; --format lines or files keeps every byte",
            file=sys.stderr,
        )


def _decode_stream(codes: CodesSource, infile: BinaryIO, outfile: BinaryIO, dtype: str | None, special: Some) -> None:
    """Write the text of ids as they arrive, in UTF-8 with U+FFFD for other bytes.

    Raises MTScaffoldError for an id out of range, and if the ids end within one.
    """
    bpe = BPE(codes, special_tokens=special)
    width = id_width(bpe.n_vocab) if dtype is None else DTYPES[dtype]
    decoder, pending = IncrementalDecoder(bpe), b""
    reader = Waiting(infile.fileno())
    while data := reader.read(1 << 16):
        pending += data
        whole = len(pending) // width * width
        outfile.write(decoder.decode(_as_ids(pending[:whole], width).tolist()).encode())
        outfile.flush()
        pending = pending[whole:]
    if pending:
        raise MTScaffoldError(f"the ids end within one: {len(pending)} of {width} bytes; is the input complete?")
    outfile.write(decoder.decode([], final=True).encode())
    outfile.flush()


class _Decoder:
    """Decodes the documents of a file in order; replaced: how many so far were not UTF-8, as JSON must be."""

    def __init__(self, bpe: BPE, infile: PathLike, format: str, field: str, strip: int) -> None:
        self.replaced = 0
        self._core = bpe.ids_in_core
        self._name = shown(infile)
        self._format, self._field, self._strip = format, field, strip
        self._next = 1

    def decode(self, ids: memoryview, sizes: list[int]) -> bytes:
        end = b"\n" if self._format == "lines" else b""
        try:
            if self._format == "jsonl":
                text = "".join(map(self._json, self._each(ids, sizes))).encode("utf-8")
            else:
                text = self._core.decode_documents(ids, sizes, end, self._strip, self._next)
        except MTScaffoldError as error:
            raise MTScaffoldError(f"{self._name}: {error}") from None
        if end and text.count(end) != len(sizes):
            wrong = next(number for number, one in enumerate(self._each(ids, sizes), self._next) if end in one)
            raise MTScaffoldError(
                f"{self._name}: document {wrong} holds a line end, so that lines would not tell documents apart; "
                "decode with --format jsonl or files"
            )
        self._next += len(sizes)
        return text

    def _each(self, ids: memoryview, sizes: list[int]) -> Iterator[bytes]:
        start = 0
        for number, size in enumerate(sizes, self._next):
            yield self._core.decode_documents(ids[start : start + size], [size], b"", self._strip, number)
            start += size

    def _json(self, document: bytes) -> str:
        try:
            text = document.decode("utf-8")
        except UnicodeDecodeError:
            self.replaced += 1
            text = document.decode("utf-8", "replace")
        return json.dumps({self._field: text}, ensure_ascii=False) + "\n"


def _batches(file: IdFile) -> Iterator[tuple[memoryview, list[int]]]:
    """Yield the ids of several documents at a time, and the size of each."""
    with _opened(file.path) as stream:
        sizes: list[int] = []
        total = 0
        for block in file.sizes():
            for size in block:
                if sizes and total + size > _BATCH:
                    yield _read(stream, total, file.width), sizes
                    sizes, total = [], 0
                sizes.append(size)
                total += size
        if sizes:
            yield _read(stream, total, file.width), sizes


def _one_document(path: PathLike, width: int) -> Iterator[tuple[memoryview, list[int]]]:
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size % width:
            raise MTScaffoldError(f"{shown(path)}: size is not a multiple of {width} bytes; is it complete?")
        yield _read(stream, size // width, width), [size // width]


@contextlib.contextmanager
def _opened(path: PathLike) -> Iterator[BinaryIO]:
    try:
        stream = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise explain_os_error(error, path) from error
    with stream:
        yield cast(BinaryIO, stream)


def _read(stream: BinaryIO, count: int, width: int) -> memoryview:
    return _as_ids(stream.read(count * width), width)


def _as_ids(data: bytes, width: int) -> memoryview:
    return memoryview(data).cast("H" if width == 2 else "I")
