"""A causal language model of transformers in a folder, with its tokenizer, behind the interface of ours."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.documents import blocks_of, digest_block, non_empty_documents
from mt_scaffold.experiment.inference.language_model import LanguageModel, device_of
from mt_scaffold.experiment.runtime.hugging_face import import_transformers, in_one_line
from mt_scaffold.manifest import raw_digest


@dataclass(frozen=True)
class CausalModel:
    """A model and its tokenizer. end: the id after a document. vocabulary: a digest of the tokens and their ids."""

    language_model: LanguageModel
    tokenizer: Any
    end: int
    vocabulary: str
    n_vocab: int


@dataclass(frozen=True)
class EncodedDocuments:
    """The ids of documents, each with its end, and the offset of each.

    bytes: of each document, or of the text that the tokenizer decodes for it if that is shorter. changed: the number of
    documents that it does not restore exactly. sha256: of the documents.
    """

    ids: Any
    offsets: Any
    bytes: list[int]
    changed: int
    sha256: str


class _Decoder:
    """A model of transformers in place of fairseq's decoder; its features are already the logits."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, tokens: Any, features_only: bool = True) -> tuple[Any]:
        return (self._model(tokens, use_cache=False).logits,)

    def output_layer(self, logits: Any) -> Any:
        return logits


class _Network:
    def __init__(self, model: Any) -> None:
        self.decoder = _Decoder(model)


def load_folder(
    folder: PathLike, gpus: int = 0, positions: int | None = None, trust_remote_code: bool = False
) -> CausalModel:
    """Load a causal model, in fp32, and its tokenizer from a folder of transformers; nothing is downloaded.

    gpus: as for ``load_model``. positions: the most tokens to give it at once; None for all that its configuration
    allows. trust_remote_code: let it run the Python files in the folder.

    Raises MTScaffoldError if the folder is missing, or holds no such model or no tokenizer with an end of text;
    UsageError for more positions than it has.
    """
    import torch

    place = Path(folder)
    if not (place / "config.json").is_file():
        raise MTScaffoldError(f"{folder}: no config.json; give a folder that transformers' save_pretrained wrote")
    device = device_of(gpus)
    library = import_transformers("evaluate --model")
    # Registers our tokenizer.
    import mt_scaffold.integrations.transformers  # noqa: F401

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(str(place), **options)
        model, found = library.AutoModelForCausalLM.from_pretrained(
            str(place), dtype=torch.float32, output_loading_info=True, **options
        )
    except MTScaffoldError:
        raise
    except Exception as error:  # transformers does not check a configuration, and may fail in any way.
        what = in_one_line(error)
        raise MTScaffoldError(f"{folder}: transformers cannot load it ({what}); check what the folder holds") from error
    if lacking := [*found["missing_keys"], *(each[0] for each in found["mismatched_keys"])]:
        raise MTScaffoldError(
            f"{folder}: {len(lacking)} of the model's weights are not in its files, such as {min(lacking)}; give "
            "the folder of a whole causal model"
        )
    try:
        check_causal(model.eval(), folder)
    except MTScaffoldError:
        raise
    except Exception as error:
        what = in_one_line(error)
        raise MTScaffoldError(f"{folder}: the model computes nothing ({what}); check its config.json") from error
    end = tokenizer.eos_token_id
    if end is None:
        raise MTScaffoldError(f"{folder}: its tokenizer has no eos_token, which ends a document; set one and save it")
    start = end if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    most = getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length
    if not isinstance(most, int | float) or most < 1:
        raise MTScaffoldError(
            f"{folder}: its config.json or tokenizer_config.json gives {most!r} positions; correct it"
        )
    if positions is not None and not 1 <= positions <= most:
        raise UsageError(f"--positions {positions}: the model has {most}; give 1 to {most}")
    files = sorted([*place.glob("*.safetensors"), *place.glob("*.bin")])
    digest = hashlib.sha256("".join(raw_digest(path) for path in files).encode()).hexdigest()
    tokens = json.dumps(sorted(tokenizer.get_vocab().items()), ensure_ascii=False)
    symbols = int(model.get_output_embeddings().weight.shape[0])
    network = _Network(model.to(device).eval())
    return CausalModel(
        LanguageModel(network, device, positions or int(most), symbols, digest, start),
        tokenizer,
        end,
        hashlib.sha256(tokens.encode("utf-8", "surrogatepass")).hexdigest(),
        len(tokenizer),
    )


def check_causal(model: Any, folder: PathLike) -> None:
    """Raise MTScaffoldError for a model whose logits depend on later tokens, and so are no likelihoods.

    model: of transformers, in evaluation mode. folder: its name in the error.
    """
    import torch

    ids = torch.arange(8).remainder(model.get_input_embeddings().weight.shape[0])[None]
    with torch.no_grad():
        one, other = (model(each).logits[0, :-1] for each in (ids, torch.cat([ids[:, :-1], ids[:, :1]], 1)))
    if not torch.allclose(one, other, rtol=0, atol=1e-5 * max(1.0, float(one.abs().max()))):
        raise MTScaffoldError(f"{folder}: the model is not causal: a token's scores depend on later ones; give another")


def encode_documents(
    model: CausalModel, documents: Sequence[PathLike], format: str | None, field: str | None
) -> EncodedDocuments:
    """Return the ids of the documents that are not empty, by the tokenizer of a model.

    A tokenizer may lower-case, normalise or drop text. Such text costs no bits and so must not count as bytes: the ids
    are decoded and compared with the document. A warning on stderr counts the documents that differ, and shows the
    first.

    Raises MTScaffoldError for a document that is not UTF-8 or that the tokenizer has no token for a part of, and if it
    keeps nothing of any document.
    """
    import numpy

    digest = hashlib.sha256()
    rows: list[Any] = []
    sizes: list[int] = []
    changed, first = 0, ""
    for block in blocks_of(non_empty_documents(documents, format, field)):
        digest_block(digest, block)
        texts = [_text(document, len(sizes) + number) for number, document in enumerate(block, start=1)]
        encoded = model.tokenizer(
            texts, add_special_tokens=False, return_attention_mask=False, split_special_tokens=True, verbose=False
        )
        for number, (text, row) in enumerate(zip(texts, encoded["input_ids"], strict=True), start=len(sizes) + 1):
            if has_unknown(model.tokenizer, row):
                raise MTScaffoldError(
                    f"document {number}: the tokenizer has no token for some of it, so that bits per byte would leave "
                    "text out; evaluate on other text, or a model whose tokenizer has bytes"
                )
            rows.append(numpy.array([*row, model.end], numpy.int64))
            back = given_back(model.tokenizer, row, text)
            size = len(text.encode())
            if back != text:
                changed += 1
                first = first or f"document {number}: {difference(text, back)}"
                # Text that a decoder adds, such as spaces between words, has cost nothing either.
                size = min(size, len(back.encode()))
            sizes.append(size)
    if not rows:
        raise MTScaffoldError("no document to evaluate on: all are empty; give other files")
    if not sum(sizes):
        raise MTScaffoldError("the tokenizer preserves nothing of the documents; evaluate on other text")
    if changed:
        print(
            f"warning: {first}; it changes {changed:,} of {len(rows):,} documents, so that bits per byte are over the "
            "bytes that its ids decode to (text:decoded in the signature)",
            file=sys.stderr,
        )
    offsets = numpy.concatenate([[0], numpy.cumsum([len(row) for row in rows])])
    return EncodedDocuments(numpy.concatenate(rows), offsets, sizes, changed, digest.hexdigest())


def has_unknown(tokenizer: Any, ids: Sequence[int]) -> bool:
    """Return whether a tokenizer of transformers had no token for a part of a text, from its ids."""
    return tokenizer.unk_token_id is not None and tokenizer.unk_token_id in ids


def given_back(tokenizer: Any, ids: Sequence[int], text: str) -> str:
    """Return the text that a tokenizer of transformers decodes from ids, without a space that it adds at the start."""
    back = tokenizer.decode(
        list(ids),
        skip_special_tokens=False,
        clean_up_tokenization_spaces=False,
        spaces_between_special_tokens=False,
    )
    return text if back == f" {text}" else str(back)


def difference(text: str, back: str) -> str:
    """Return a description of the first difference between a text and the one that a tokenizer decodes."""
    shared = next((place for place, (one, other) in enumerate(zip(text, back, strict=False)) if one != other), None)
    place = min(len(text), len(back)) if shared is None else shared
    here = slice(place, place + 20)
    return f"the tokenizer turns {text[here]!r} into {back[here]!r} (at character {place})"


def _text(document: bytes, number: int) -> str:
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MTScaffoldError(
            f"document {number}: not UTF-8 (byte 0x{document[error.start]:02X} at offset {error.start}); convert it"
        ) from None
