"""A checkpoint of an architecture of transformers, with its codes → a folder that transformers loads."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_scaffold.codes import Codes
from mt_scaffold.corpus.files import PathLike
from mt_scaffold.corpus.text import bytes_to_notation
from mt_scaffold.corpus.vocabulary_file import SPECIAL_SYMBOLS
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import FIRST_ID, Vocabulary
from mt_scaffold.experiment.binarise.data_folder import codes_of, read_documents_folder
from mt_scaffold.experiment.binarise.dictionary import END_ID
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete, refuse_other_content
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.inference.language_model import load_model
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.hugging_face import import_transformers
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.experiment.runtime.schema import nearest
from mt_scaffold.manifest import raw_digest

DESCRIPTION = "mt_scaffold.json"
# The names of </s> and <pad> in the export; fairseq's names may be tokens of the codes.
END, PADDING = "<|endoftext|>", "<|padding|>"
_PAD_ID = SPECIAL_SYMBOLS.index("<pad>")


@dataclass(frozen=True)
class ExportedModel:
    """The origin of an exported folder. rows: the number of rows kept. dropped: the symbols of the others."""

    checkpoint: str
    sha256: str
    vocabulary: str
    rows: int
    dropped: list[str]
    versions: dict[str, str]


def trained_model(
    experiment: PathLike, system: str, comparison: str | None = None, seed: int | None = None
) -> tuple[Path, Path]:
    """Return the averaged checkpoint of a training of an experiment, and its data folder.

    comparison, seed: None for the first of the configuration. Raises UsageError for a name or seed that it lacks.
    """
    layout = LanguageModelLayout.read(experiment)
    config = layout.config
    comparison = next(iter(config.comparisons)) if comparison is None else comparison
    seed = config.seeds[0] if seed is None else seed
    for kind, name, known in (
        ("system", system, config.systems),
        ("comparison", comparison, config.comparisons),
        ("seed", str(seed), {str(each): each for each in config.seeds}),
    ):
        if name not in known:
            raise UsageError(f"{experiment}: no {kind} is called {name}{nearest(name, known)}")
    return layout.averaged(layout.run_in(comparison, system, seed)), layout.binarised_of(system)


def export_transformers(checkpoint: PathLike, data: PathLike, output: PathLike) -> ExportedModel:
    """Write the folder ``output``: config.json, model.safetensors and the tokenizer, as transformers loads them.

    For codes of plain BPE there is a ``tokenizer.json`` too, which llama.cpp's converter reads.

    data: a folder of ``binarise_documents`` with the dictionary and the codes of the model. Ids are those of
    ``BPE.encode``, then the end of a document (``</s>``, exported as ``<|endoftext|>``, which is also the start) and
    padding; the other rows of the dictionary, which stand for no text, are dropped. Parameters keep their type. The
    folder appears only once it is complete; one that was exported before is replaced.

    Raises MTScaffoldError as ``load_model`` does, and for a model that transformers does not have.
    """
    output = Path(output)
    refuse_other_content(output, DESCRIPTION)
    library = import_transformers("export transformers")
    from mt_scaffold.integrations.tokenizers import check_expressible, export_tokenizers
    from mt_scaffold.integrations.transformers import MTScaffoldTokenizer

    binarised = read_documents_folder(data)
    loaded = load_model(checkpoint, data, binarised)
    trained = getattr(loaded.model.decoder, "model", None)
    if not isinstance(trained, library.PreTrainedModel):
        raise MTScaffoldError(f"{checkpoint}: transformers has no such model; train one with --arch llama or gpt_neox")
    vocabulary = Vocabulary(codes_of(data))
    for name in (END, PADDING):
        if name in map(bytes_to_notation, vocabulary.tokens):
            raise MTScaffoldError(f"{vocabulary.codes}: '{name}' is a token of the codes, and marks ends in the export")
    tokenizer = MTScaffoldTokenizer(
        vocabulary.codes,
        bos_token=END,
        eos_token=END,
        pad_token=PADDING,
        prepend_bos=True,
        append_eos=False,
        model_max_length=loaded.positions,
    )
    rows = [*range(FIRST_ID, FIRST_ID + len(vocabulary.tokens)), END_ID, _PAD_ID]
    _keep_rows(trained.cpu(), rows, tokenizer)
    exported = ExportedModel(
        Path(checkpoint).name,
        raw_digest(checkpoint),
        binarised.vocabulary,
        len(rows),
        [name for number, name in enumerate(SPECIAL_SYMBOLS) if number not in rows]
        + [f"madeupword{number:04d}" for number in range(binarised.symbols - FIRST_ID - len(vocabulary.tokens))],
        versions(),
    )
    with appears_complete(output) as folder:
        trained.to(_type_of(checkpoint)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        with contextlib.suppress(MTScaffoldError):  # scaffold tokens, for example, are in no tokenizer.json
            check_expressible(Codes.read(vocabulary.codes))
            export_tokenizers(vocabulary.codes, folder / "tokenizer.json", special_tokens=[END, PADDING])
        write_result(folder / DESCRIPTION, exported)
    return exported


def _keep_rows(model: Any, rows: list[int], tokenizer: Any) -> None:
    """Keep only ``rows`` of a model's embeddings, in this order, and set the special tokens of a tokenizer."""
    import torch

    read, written = model.get_input_embeddings(), model.get_output_embeddings()
    tied = written.weight is read.weight
    read.weight = torch.nn.Parameter(read.weight.detach()[rows])
    written.weight = read.weight if tied else torch.nn.Parameter(written.weight.detach()[rows])
    read.num_embeddings = written.out_features = model.config.vocab_size = len(rows)
    read.padding_idx = model.config.pad_token_id = tokenizer.pad_token_id
    for config in (model.config, model.generation_config):
        config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id


def _type_of(checkpoint: PathLike) -> Any:
    """Return the type of a checkpoint's parameters."""
    return next(each.dtype for each in load_checkpoint(checkpoint)["model"].values() if each.is_floating_point())
