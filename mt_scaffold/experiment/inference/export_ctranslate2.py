"""A trained fairseq transformer → a folder that CTranslate2 translates from.

CTranslate2's own converter builds the model with fairseq, which evaluates some of the options in a checkpoint. This
one does without fairseq: it loads the checkpoint with PyTorch's ``weights_only``, puts every parameter in its place in
CTranslate2's specification, and refuses a model with a parameter that has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import appears_complete, refuse_other_content
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.configuration.limits import SPECIAL_SYMBOLS
from mt_scaffold.experiment.configuration.translating import Quantization
from mt_scaffold.experiment.inference.model_files import ModelFiles, TranslationModel, read_model
from mt_scaffold.experiment.runtime.provenance import versions
from mt_scaffold.experiment.runtime.results import write_result
from mt_scaffold.manifest import raw_digest

if TYPE_CHECKING:
    import numpy

QUANTIZATIONS: tuple[str, ...] = get_args(Quantization)
DESCRIPTION = "mt_scaffold.json"

# The architectures of fairseq's models `transformer` and `transformer_align`, which translate in the same way.
_ARCHITECTURES = (
    *("transformer", "transformer_tiny", "transformer_iwslt_de_en", "transformer_wmt_en_de"),
    *("transformer_wmt_en_de_big", "transformer_wmt_en_de_big_t2t", "transformer_vaswani_wmt_en_de_big"),
    *("transformer_vaswani_wmt_en_fr_big", "transformer_align", "transformer_wmt_en_de_big_align"),
)
# fairseq's names → those of CTranslate2's Activation.
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh", "gelu_fast": "GELUTanh"}
# Options that change a model without adding a parameter, so that check_all_used would not notice them.
_REFUSED = (
    *("no_token_positional_embeddings", "no_cross_attention", "cross_self_attention", "adaptive_input"),
    *("adaptive_softmax_cutoff", "merge_src_tgt_embed", "char_inputs", "base_layers", "quant_noise_scalar"),
    *("encoder_layers_to_keep", "decoder_layers_to_keep", "encoder_xformers_att_config"),
    "decoder_xformers_att_config",
)
# Buffers that fairseq ignores as well.
_BUFFERS = ("version", "embed_positions._float_tensor", "embed_positions.weights")
# fairseq numbers positions from the id after padding.
_FIRST_POSITION = SPECIAL_SYMBOLS.index("<pad>") + 1


@dataclass(frozen=True)
class Exported:
    """The origin of an exported folder, its ``mt_scaffold.json``.

    checkpoint: the name of its file. quantization: of the parameters; None: float32. tokenise: how text becomes words.
    segmentation.json next to it defines how words become subwords.
    """

    source: str
    target: str
    quantization: str | None = field(metadata={"omit_none": True})
    tokenise: Tokenise | None = field(metadata={"omit_none": True})
    checkpoint: str
    sha256: dict[str, str]
    versions: dict[str, str]


def export_ctranslate2(files: ModelFiles, output: PathLike, quantization: str | None = None) -> Exported:
    """Write the folder ``output``, for ``ctranslate2.Translator``, from the files of a trained model.

    It holds ``model.bin``, ``config.json`` and the vocabularies, as CTranslate2 reads them; the codes and
    ``segmentation.json``, if ``files`` has a segmentation; and ``mt_scaffold.json``. The folder appears only once it is
    complete; one that was exported before is replaced.

    quantization: one of QUANTIZATIONS, for the file; None keeps float32. If a processor does not compute in that type,
    CTranslate2 converts the parameters when it loads them.

    Raises MTScaffoldError if a file is missing, damaged or unsafe, or if CTranslate2 does not support the model;
    UsageError for an unknown quantization or a segmentation without codes.
    """
    output = Path(output)
    if quantization is not None and quantization not in QUANTIZATIONS:
        raise UsageError(f"--quantization {quantization}: choose one of {', '.join(QUANTIZATIONS)}")
    if files.segmentation is not None and not files.segmentation.kind.has_codes:
        title = files.segmentation.kind.title
        raise UsageError(f"{files.segmentation.codes[0]}: a {title} model; only systems with codes can be exported")
    refuse_other_content(output, DESCRIPTION)
    model = read_model(files)
    with appears_complete(output) as folder:
        write_model(model, folder, quantization)
        digests: dict[str, str] = {}
        if files.segmentation is not None:
            digests |= files.segmentation.store(folder, files.languages)
        exported = Exported(
            *files.languages,
            quantization,
            files.tokenise,
            files.checkpoint.name,
            {files.checkpoint.name: raw_digest(files.checkpoint), **digests},
            versions(),
        )
        write_result(folder / DESCRIPTION, exported)
    return exported


def check_installed() -> None:
    """Raise MTScaffoldError if CTranslate2 is not installed."""
    if find_spec("ctranslate2") is None:
        raise MTScaffoldError("CTranslate2 is not installed; pip install ctranslate2, or make venv for everything")


def write_model(model: TranslationModel, folder: Path, quantization: str | None = None) -> None:
    """Write a model as CTranslate2 reads it into an existing folder; quantization: as for ``export_ctranslate2``.

    Raises MTScaffoldError for a model that CTranslate2 cannot compute as fairseq does.
    """
    check_installed()
    from ctranslate2.specs import transformer_spec

    _check(model)
    parameters = _Parameters(model)
    sides = [_Side(model, parameters, name) for name in ("encoder", "decoder")]
    encoder = transformer_spec.TransformerEncoderSpec(**sides[0].settings)
    decoder = transformer_spec.TransformerDecoderSpec(**sides[1].settings)
    sides[0].fill(encoder, encoder.embeddings[0])
    sides[1].fill(decoder, decoder.embeddings)
    _fill_linear(decoder.projection, parameters, ["decoder.output_projection"], parameters.width("decoder"), bias=False)
    parameters.check_all_used()

    specification = transformer_spec.TransformerSpec(encoder, decoder)
    specification.register_source_vocabulary(model.symbols[0])
    specification.register_target_vocabulary(model.symbols[1])
    # In fairseq, </s> is the decoder's first input and the encoder's last.
    specification.config.decoder_start_token = specification.config.eos_token
    specification.config.add_source_eos = True
    specification.validate()
    specification.optimize(quantization)
    specification.save(str(folder))


def _check(model: TranslationModel) -> None:
    """Raise MTScaffoldError for a model that CTranslate2 would compute differently from fairseq."""
    options = model.options
    if options.get("arch") not in _ARCHITECTURES:
        raise model.error(
            f"architecture {options.get('arch')}: CTranslate2 takes only fairseq's transformer; translate with fairseq"
        )
    active = [name for name in _REFUSED if options.get(name)]
    activation = str(options.get("activation_fn") or "relu")
    if activation not in _ACTIVATIONS:
        active.append(f"activation-fn {activation}")
    if active:
        option = active[0].replace("_", "-")
        raise model.error(f"trained with --{option}, which CTranslate2 does not support; use fairseq")
    for path, symbols in zip(model.files.dictionaries, model.symbols, strict=True):
        if twice := next((each for each in SPECIAL_SYMBOLS if symbols.count(each) > 1), None):
            raise MTScaffoldError(
                f"{path}: has a subword {twice}, which CTranslate2 cannot tell from fairseq's symbol; use fairseq"
            )


class _Parameters:
    """The parameters of a model, each to be taken once, as float32."""

    def __init__(self, model: TranslationModel) -> None:
        self._model = model
        self._left = {name for name in model.parameters if not name.endswith(_BUFFERS)}

    def __contains__(self, name: str) -> bool:
        return name in self._model.parameters

    def width(self, side: str) -> int:
        """Return the width of a side's embeddings."""
        return int(self._model.parameters[f"{side}.embed_tokens.weight"].shape[1])

    def require(self, name: str) -> None:
        if name not in self:
            raise self._model.error(f"no parameter {name}; give a checkpoint of fairseq's transformer")

    def take(self, name: str, *shape: int | None) -> numpy.ndarray[Any, Any]:
        """Return a parameter; shape: required, None for any size, as CTranslate2 does not check sizes."""
        self.require(name)
        found = tuple(self._model.parameters[name].shape)
        if len(found) != len(shape) or any(size not in (None, each) for size, each in zip(shape, found, strict=True)):
            raise self._model.error(
                f"parameter {name} has {' × '.join(map(str, found))} numbers, which does not fit the others; give a "
                "checkpoint of fairseq's transformer"
            )
        self._left.discard(name)
        # A copy: CTranslate2 quantises in place.
        taken: numpy.ndarray[Any, Any] = self._model.parameters[name].detach().float().numpy().copy()
        return taken

    def check_all_used(self) -> None:
        if self._left:
            raise self._model.error(f"no place for {min(self._left)} in CTranslate2's transformer; use fairseq")


class _Side:
    """The encoder or the decoder of a model."""

    def __init__(self, model: TranslationModel, parameters: _Parameters, name: Literal["encoder", "decoder"]) -> None:
        self._options, self._parameters, self._name = model.options, parameters, name
        self._decoder = name == "decoder"
        self._layers = self._number(model, "layers")
        # Checked before a specification is built with any number of layers that the checkpoint claims.
        parameters.require(f"{name}.layers.{self._layers - 1}.self_attn.q_proj.weight")
        self._heads = self._number(model, "attention_heads")
        self._width = parameters.width(name)
        if self._width % self._heads:
            raise model.error(
                f"its {name} is {self._width} wide, which is not a multiple of its {self._heads} attention heads; give "
                "a checkpoint of fairseq's transformer"
            )
        self._positions = model.positions("target" if self._decoder else "source")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The arguments of CTranslate2's specification of this side."""
        from ctranslate2.specs import common_spec

        pre_norm = bool(self._options.get(f"{self._name}_normalize_before"))
        activation = _ACTIVATIONS[self._options.get("activation_fn") or "relu"]
        return {
            "num_layers": self._layers,
            "num_heads": self._heads,
            "pre_norm": pre_norm,
            "no_final_norm": pre_norm and f"{self._name}.layer_norm.weight" not in self._parameters,
            "activation": getattr(common_spec.Activation, activation),
            "layernorm_embedding": f"{self._name}.layernorm_embedding.weight" in self._parameters,
        }

    def fill(self, side: Any, embeddings: Any) -> None:
        """Set all parameters of a side except the output projection."""
        name, parameters = self._name, self._parameters
        width, other_width = self._width, parameters.width("encoder")
        embeddings.weight = parameters.take(f"{name}.embed_tokens.weight", None, width)
        side.scale_embeddings = 1.0 if self._options.get("no_scale_embedding") else math.sqrt(width)
        side.position_encodings.encodings = self._position_encodings(width)
        for attribute in ("layer_norm", "layernorm_embedding"):
            if hasattr(side, attribute):
                _fill_norm(getattr(side, attribute), parameters, f"{name}.{attribute}", width)
        for number, layer in enumerate(side.layer):
            prefix = f"{name}.layers.{number}"
            own = [f"{prefix}.self_attn.{part}_proj" for part in ("q", "k", "v", "out")]
            _fill_linear(layer.self_attention.linear[0], parameters, own[:3], width, width)
            _fill_linear(layer.self_attention.linear[1], parameters, own[3:], width, width)
            _fill_norm(layer.self_attention.layer_norm, parameters, f"{prefix}.self_attn_layer_norm", width)
            if self._decoder:
                other = [f"{prefix}.encoder_attn.{part}_proj" for part in ("q", "k", "v", "out")]
                for linear, names in zip(layer.attention.linear, (other[:1], other[1:3], other[3:]), strict=True):
                    _fill_linear(linear, parameters, names, other_width if len(names) == 2 else width, width)
                _fill_norm(layer.attention.layer_norm, parameters, f"{prefix}.encoder_attn_layer_norm", width)
            _fill_linear(layer.ffn.linear_0, parameters, [f"{prefix}.fc1"], width)
            inner = len(layer.ffn.linear_0.bias)
            _fill_linear(layer.ffn.linear_1, parameters, [f"{prefix}.fc2"], inner, width)
            _fill_norm(layer.ffn.layer_norm, parameters, f"{prefix}.final_layer_norm", width)

    def _number(self, model: TranslationModel, option: str) -> int:
        value = self._options.get(f"{self._name}_{option}")
        if not isinstance(value, int) or value < 1:
            raise model.error(f"does not say its --{self._name}-{option.replace('_', '-')}; give one of fairseq-train")
        return value

    def _position_encodings(self, width: int) -> numpy.ndarray[Any, Any]:
        """Return the encodings of the positions that the side accepts (positions × width)."""
        learned = f"{self._name}.embed_positions.weight"
        if learned in self._parameters:
            return self._parameters.take(learned, None, width)[_FIRST_POSITION:]
        return sinusoidal_positions(self._positions, width)


def sinusoidal_positions(positions: int, width: int) -> numpy.ndarray[Any, Any]:
    """Return fairseq's sinusoidal encodings, all sines before the cosines (positions × width, float32).

    Vaswani et al. 2017, section 3.5, interleave them. The first position is 2, after fairseq's padding.
    """
    import torch

    half = width // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(1, half - 1)))
    angles = torch.arange(_FIRST_POSITION, _FIRST_POSITION + positions, dtype=torch.float)[:, None] * rates
    odd = torch.zeros(positions, width % 2)
    found: numpy.ndarray[Any, Any] = torch.cat([torch.sin(angles), torch.cos(angles), odd], dim=1).numpy()
    return found


def _fill_linear(
    linear: Any, parameters: _Parameters, names: list[str], inputs: int, outputs: int | None = None, bias: bool = True
) -> None:
    """Set a linear layer to one of fairseq's, or to several concatenated; outputs: of each, None for any number."""
    import numpy

    weights = [parameters.take(f"{name}.weight", outputs, inputs) for name in names]
    linear.weight = numpy.concatenate(weights)
    if bias:
        linear.bias = numpy.concatenate(
            [parameters.take(f"{name}.bias", len(weight)) for name, weight in zip(names, weights, strict=True)]
        )


def _fill_norm(norm: Any, parameters: _Parameters, name: str, width: int) -> None:
    norm.gamma, norm.beta = (parameters.take(f"{name}.{part}", width) for part in ("weight", "bias"))
