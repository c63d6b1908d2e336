"""Compare imported vocabularies with the libraries that they come from, and take each out and in again.

    python benchmarks/vocabularies.py TEXT [--ranks cl100k_base.tiktoken ...] [--random 10000] [--only NAME ...]

A file of every format is made by its own library from the beginning of TEXT; OpenAI's ranks are files, such as those in
litellm's wheel. For each, imported: lines of TEXT, random Unicode and, for ranks, random bytes whose ids differ from
the library's. Then the codes are exported and imported again: whether codes and manifest are the same bytes, and
whether the library gives the same ids for what was exported. What can be a ``tokenizer.json`` is written as one, and
read by those of tokenizers, gigatoken and kitoken that are installed: texts whose ids differ. The exit status is 1
where anything differs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from mt_scaffold import BPE, Codes, MTScaffoldError, learn_bpe
from mt_scaffold.integrations.tokenizers import export_tokenizers
from mt_scaffold.integrations.vocabularies import importing, tiktoken
from mt_scaffold.integrations.vocabularies.exporting import export_codes
from mt_scaffold.integrations.vocabularies.imported import SPACE, Imported, Original
from mt_scaffold.integrations.vocabularies.patterns import FIRST_CL100K
from mt_scaffold.manifest import manifest_path
from mt_scaffold.segment.numbering import Numbering

SIZE = 4000
TRAINING_LINES = 16_000
# Characters that the text may not have, and runs of spaces.
OTHERS = [
    "日本語のテキスト と 中文",
    f"Ünïcödé {SPACE} test  double   spaces",
    "naïve café 😀😀 tab\there",
    "  leading ",
]
# Code points are drawn from one of these ranges each, so that those of Western scripts are as likely as others.
RANGES = [
    (0x20, 0x7F),
    (0, 0x250),
    (0x300, 0x3000),
    (0x3000, 0xD7FF),
    (0xE000, 0x11000),
    (0x1F300, 0x1F700),
    (0x20, 0x21),
    (ord(SPACE), ord(SPACE) + 1),
]


def with_tokenizers(text: Path, path: Path, kind: str) -> None:
    """Train a tokenizer: ``bytes``, ``split``, or for Metaspace its prepend scheme; ``llama`` is its normaliser."""
    import tokenizers

    library: Any = tokenizers
    pre = library.pre_tokenizers
    bytes_ = kind in ("bytes", "split")
    byte_level = pre.ByteLevel(add_prefix_space=False, use_regex=kind == "bytes")
    if kind == "bytes":
        words = byte_level
    elif kind == "split":
        words = pre.Sequence([pre.Split(library.Regex(FIRST_CL100K), "isolated"), byte_level])
    else:
        words = pre.Metaspace(prepend_scheme="always" if kind == "llama" else kind)
    fallback = kind in ("always", "first", "llama")
    model = {} if bytes_ else {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": fallback}
    tokenizer = library.Tokenizer(library.models.BPE(**model))
    tokenizer.pre_tokenizer = words
    options = {"initial_alphabet": pre.ByteLevel.alphabet()} if bytes_ else {"limit_alphabet": 90}
    special = ["<|endoftext|>", "<|pad|>"] if bytes_ else ["<unk>", "<s>", "</s>"]
    trainer = library.trainers.BpeTrainer(vocab_size=SIZE, special_tokens=special, show_progress=False, **options)
    tokenizer.train([str(text)], trainer)
    content = json.loads(tokenizer.to_str())
    if fallback:
        vocabulary = content["model"]["vocab"]
        vocabulary.update({f"<0x{byte:02X}>": len(vocabulary) + byte for byte in range(256)})
    if kind == "never":
        content["pre_tokenizer"]["split"] = False
    if kind == "llama":
        steps = [
            {"type": "Prepend", "prepend": SPACE},
            {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        ]
        content |= {"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": steps}}
    path.write_text(json.dumps(content), encoding="utf-8")


def with_sentencepiece(text: Path, path: Path, **options: Any) -> None:
    """Train a BPE model."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(path.with_suffix("")),
        vocab_size=SIZE,
        model_type="bpe",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.9995,
        minloglevel=2,
        **options,
    )


def with_youtokentome(text: Path, path: Path) -> None:
    """Train a model."""
    import youtokentome

    youtokentome.BPE.train(data=str(text), vocab_size=SIZE, model=str(path), coverage=0.9995)


def for_fastbpe(text: Path, path: Path) -> None:
    """Write codes as its learnbpe does, a program that its package does not have."""
    merges = learn_bpe(paths=[text], algorithm="bpe", num_symbols=SIZE).codes.merges
    path.write_text("".join(f"{left} {right} {SIZE - i}\n" for i, (left, right, _) in enumerate(merges)), "utf-8")


MAKERS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "tokenizer.json, ByteLevel": ("json", lambda text, path: with_tokenizers(text, path, "bytes")),
    "tokenizer.json, Split": ("json", lambda text, path: with_tokenizers(text, path, "split")),
    "tokenizer.json, Metaspace always": ("json", lambda text, path: with_tokenizers(text, path, "always")),
    "tokenizer.json, Metaspace first": ("json", lambda text, path: with_tokenizers(text, path, "first")),
    "tokenizer.json, Metaspace never": ("json", lambda text, path: with_tokenizers(text, path, "never")),
    "tokenizer.json, LLaMA's normaliser": ("json", lambda text, path: with_tokenizers(text, path, "llama")),
    "SentencePiece, byte fallback": ("model", lambda text, path: with_sentencepiece(text, path, byte_fallback=True)),
    "SentencePiece, <unk>": ("model", with_sentencepiece),
    "SentencePiece, user-defined": (
        "model",
        lambda text, path: with_sentencepiece(
            text, path, byte_fallback=True, user_defined_symbols=["<sep>"], add_dummy_prefix=False
        ),
    ),
    "fastBPE": ("codes", for_fastbpe),
    "YouTokenToMe": ("yttm", with_youtokentome),
}


def random_texts(number: int, seed: int) -> list[str]:
    """Return texts of up to 59 random characters."""
    draw = random.Random(seed)
    return [
        "".join(chr(draw.randrange(*draw.choice(RANGES))) for _ in range(draw.randrange(1, 60))) for _ in range(number)
    ]


def readable(texts: list[str], imported: Imported) -> list[str]:
    """Return texts without what fastBPE, which has no ids, ends words at."""
    if imported.numbering is not None:
        return texts
    return [" ".join(re.split(r"\s+", text.replace("\0", ""))).strip() or "x" for text in texts]


def differing(one: Original, other: Original, texts: list[str]) -> list[str]:
    """Return the texts that two number differently."""
    return [text for text in texts if list(one(text)) != list(other(text))]


def differing_bytes(path: Path, imported: Imported, number: int, seed: int) -> int:
    """Return how many of random words of bytes tiktoken's core numbers differently; spaces would end them."""
    ranks = tiktoken.read_ranks(path.read_bytes(), str(path))
    assert imported.numbering is not None
    core = tiktoken.encoding_of(ranks, imported.codes, imported.numbering)._core_bpe
    codes = Codes(b"#version: 0.3 bytes metaspace\n" + imported.codes.text.split(b"\n", 1)[1])
    bpe, draw = BPE(codes, numbering=Numbering(imported.numbering.ids)), random.Random(seed)
    alphabet = [byte for byte in range(256) if byte != ord(" ")]
    words = [bytes(draw.choices(alphabet, k=draw.randrange(1, 40))) for _ in range(number)]
    return sum(core.encode_single_piece(word) != bpe.encode(word) for word in words)


def of_tokenizers(path: Path) -> Original:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def of_gigatoken(path: Path) -> Original:
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_json(path.read_text(encoding="utf-8"))
    return lambda text: list(tokenizer.encode(text))


def of_kitoken(path: Path) -> Original:
    import kitoken

    model = kitoken.Kitoken.from_tokenizers_file(str(path))
    return lambda text: model.encode(text, False)


READERS = {"tokenizers": of_tokenizers, "gigatoken": of_gigatoken, "kitoken": of_kitoken}


def differing_readers(codes: Path, exported: Path, texts: list[str]) -> dict[str, int | None]:
    """Return how many texts each program that is installed numbers differently; None: it refuses the exported file."""
    ids, offsets = BPE(codes).encode_batch(texts, disallowed_special=())
    ours = [ids[begin:end].tolist() for begin, end in pairwise(offsets)]
    found: dict[str, int | None] = {}
    for name, reader in READERS.items():
        if find_spec(name) is None:
            continue
        try:
            encode = reader(exported)
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}")
            found[name] = None
        else:
            found[name] = sum(list(encode(text)) != each for text, each in zip(texts, ours, strict=True))
    return found


def files(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each format."""
    training = folder / "training.txt"
    with open(options.text, encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in islice(stream, TRAINING_LINES)]
    training.write_text("\n".join([*lines, *OTHERS * 20]) + "\n", encoding="utf-8")
    for name, (ending, make) in MAKERS.items():
        if not options.only or name in options.only:
            path = folder / f"original.{ending}"
            make(training, path)
            yield name, path
    for ranks in options.ranks:
        yield f"tiktoken, {ranks.name}", ranks


def compare(name: str, path: Path, folder: Path, options: argparse.Namespace) -> bool:
    """Print a line about a file; return whether all is the same."""
    format = importing.format_of(path)
    codes, again, out = folder / "in" / "codes", folder / "again" / "codes", folder / "out"
    for each in (codes, again):
        each.parent.mkdir(exist_ok=True)
    written = importing.import_codes(path, codes, format=format, check=options.text)
    original = importing.reader_of(format).original(path, written.imported)
    texts = readable(random_texts(options.random, options.seed), written.imported)
    wrong = differing(importing.segmentation(written.imported), original, texts)
    found = [f"{written.lines:,} lines the same", f"{len(wrong):,} of {len(texts):,} random texts differ"]
    bad = len(wrong)
    if format == "tiktoken":
        encoding = written.imported.numbering.source.get("encoding", "") if written.imported.numbering else ""
        name = f"tiktoken, {encoding or path.name}"
        bad += (of_bytes := differing_bytes(path, written.imported, options.random, options.seed))
        found.append(f"{of_bytes:,} of {options.random:,} words of random bytes differ")
    if format == "tokenizer.json":
        export_tokenizers(codes, out, pattern="published")
    else:
        export_codes(codes, out, format)
    returned = importing.import_codes(out, again, format=format, check=options.text)
    same = codes.read_bytes() == again.read_bytes()
    if written.imported.numbering is not None:
        same &= Path(manifest_path(codes)).read_bytes() == Path(manifest_path(again)).read_bytes()
    theirs = differing(original, importing.reader_of(format).original(out, returned.imported), texts)
    bytes_ = "the same file" if out.read_bytes() == path.read_bytes() else "another file"
    found.append(
        f"out ({bytes_}) and in: {'the same' if same else 'NOT THE SAME'}, {len(theirs):,} random texts differ there"
    )
    if format in ("tokenizer.json", "tiktoken"):
        export_tokenizers(codes, out, pattern="published")
        every = [*options.text.read_text(encoding="utf-8").split("\n"), *texts]
        readers = differing_readers(codes, out, every)
        bad += sum(number or 0 for number in readers.values())
        counts = (f"{program} {'refuses it' if number is None else number}" for program, number in readers.items())
        found.append(f"of {len(every):,} lines and random texts differ: {', '.join(counts)}")
    print(f"{name}: {'; '.join(found)}", *map(ascii, wrong[:2]), flush=True)
    return same and not bad and not theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, metavar="TEXT")
    parser.add_argument("--ranks", type=Path, nargs="+", default=[], metavar="PATH")
    parser.add_argument("--random", type=int, default=10_000, metavar="N", help="random texts (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=MAKERS, help="these formats, besides ranks (default: all)")
    options = parser.parse_args()
    names = ("tokenizers", "tiktoken", "sentencepiece", "fastBPE", "youtokentome")
    print(", ".join(f"{name} {version(name)}" for name in names), flush=True)
    same = True
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files(options, Path(folder)):
            try:
                same &= compare(name, path, Path(folder), options)
            except MTScaffoldError as error:
                print(f"{name}: {error}", flush=True)
                same = False
    sys.exit(not same)


if __name__ == "__main__":
    main()
