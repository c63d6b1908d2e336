"""The slow imports of fairseq-train before its first update, without the plug-in: the fork server imports this."""

import sys
from unittest import mock

import fairseq.trainer  # noqa: F401
import torch._dynamo  # an optimiser imports it
import torch.distributed.fsdp  # noqa: F401  (loading a checkpoint imports it)
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

# Hydra's parser caches its results.
with mock.patch.object(sys, "argv", ["fairseq-train"]):
    convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", "transformer"])
    )
