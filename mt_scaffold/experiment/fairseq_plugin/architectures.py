"""``--arch llama`` and ``--arch gpt_neox``: causal language models of transformers, trained by fairseq."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqDecoder, FairseqLanguageModel, register_model
from omegaconf import II

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.runtime.hugging_face import import_transformers

# transformers' names of its architectures (``model_type``). The options below set their common fields; another
# architecture whose configuration has these fields only needs its name added here.
ARCHITECTURES = ("llama", "gpt_neox")


@dataclass
class CausalModelConfig(FairseqDataclass):
    """The options of an architecture of transformers, named as those of fairseq's transformer_lm."""

    decoder_layers: int = field(default=6, metadata={"help": "number of layers"})
    decoder_embed_dim: int = field(default=512, metadata={"help": "width of embeddings and layers"})
    decoder_ffn_embed_dim: int = field(default=2048, metadata={"help": "width of the feed-forward networks"})
    decoder_attention_heads: int = field(default=8, metadata={"help": "attention heads of each layer"})
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "tie the embeddings of input and output"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout, wherever the architecture has it"})
    checkpoint_activations: bool = field(
        default=False, metadata={"help": "recompute activations for the gradients, which saves memory"}
    )
    model_settings: str = field(
        default="{}",
        metadata={"help": "further settings of transformers' configuration, as JSON: '{\"num_key_value_heads\": 4}'"},
    )
    tokens_per_sample: int = II("task.tokens_per_sample")
    max_target_positions: Optional[int] = II("task.max_target_positions")  # noqa: UP045


def transformers_config(model_type: str, options: Any, dictionary: Any) -> Any:
    """Return transformers' configuration for the options of a model (``CausalModelConfig``) and a dictionary.

    Raises UsageError for settings that are not JSON, or that the architecture does not have.
    """
    auto = import_transformers(f"--arch {model_type}").AutoConfig
    known = auto.for_model(model_type).to_dict()
    settings = {
        "vocab_size": len(dictionary),
        "hidden_size": options.decoder_embed_dim,
        "num_hidden_layers": options.decoder_layers,
        "num_attention_heads": options.decoder_attention_heads,
        "intermediate_size": options.decoder_ffn_embed_dim,
        "max_position_embeddings": options.max_target_positions or options.tokens_per_sample,
        "tie_word_embeddings": options.share_decoder_input_output_embed,
        # As in fairseq, the embedding of padding is zero and gets no gradient.
        "pad_token_id": dictionary.pad(),
        "bos_token_id": dictionary.eos(),
        "eos_token_id": dictionary.eos(),
        **{name: options.dropout for name in ("attention_dropout", "hidden_dropout") if name in known},
    }
    try:
        more = json.loads(options.model_settings)
    except json.JSONDecodeError as error:
        raise UsageError(f"--model-settings {options.model_settings!r}: not JSON ({error.msg})") from None
    for name in more if isinstance(more, dict) else [options.model_settings]:
        if name in settings or name not in known:
            raise UsageError(
                f"--model-settings: {name!r} is set by another option, or not a setting of {model_type} in transformers"
                + (" (rotary positions: rope_parameters)" if str(name).startswith(("rope_", "rotary_")) else "")
            )
    return auto.for_model(model_type, **settings, **more)


class CausalDecoder(FairseqDecoder):
    """A causal language model of transformers (``config``) in place of fairseq's decoder.

    Padding is always on the right, where no token attends to it, so no mask is needed.
    """

    def __init__(self, dictionary: Any, config: Any, checkpoint_activations: bool = False) -> None:
        super().__init__(dictionary)
        library = import_transformers(f"--arch {config.model_type}")
        self.model = library.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        if checkpoint_activations:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        """Move and convert parameters, but keep the frequencies of rotary positions in fp32: bf16 is too coarse."""
        before = {name: buffer for name, buffer in self.named_buffers() if buffer.dtype == torch.float32}
        super()._apply(fn, recurse)
        for name, buffer in self.named_buffers():
            if name in before and buffer.dtype != torch.float32:
                path, _, own = name.rpartition(".")
                setattr(self.get_submodule(path), own, before[name].to(buffer.device))
        return self

    def forward(
        self,
        prev_output_tokens: torch.Tensor,
        encoder_out: None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[torch.Tensor, None]:
        """Return the logits of tokens (batch × positions × symbols); with ``features_only``, the last hidden states."""
        features = self.model.base_model(prev_output_tokens, use_cache=False).last_hidden_state
        return features if features_only else self.output_layer(features), None

    def output_layer(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logits for hidden states."""
        logits: torch.Tensor = self.model.get_output_embeddings()(features)
        return logits

    def max_positions(self) -> int:
        """Return the most tokens in the model's context."""
        return int(self.model.config.max_position_embeddings)


class CausalModel(FairseqLanguageModel):
    """The base of all architectures. model_type: transformers' name of the architecture."""

    model_type: ClassVar[str]

    @classmethod
    def build_model(cls, options: Any, task: Any) -> "CausalModel":
        """Return a new model, initialised by transformers."""
        dictionary = task.target_dictionary
        config = transformers_config(cls.model_type, options, dictionary)
        return cls(CausalDecoder(dictionary, config, options.checkpoint_activations))


for _name in ARCHITECTURES:
    register_model(_name, dataclass=CausalModelConfig)(type(_name, (CausalModel,), {"model_type": _name}))
