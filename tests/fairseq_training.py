"""Train with fairseq in this process and keep every batch and its loss; as a program, do so in a separate process."""

import argparse
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from fork_server import ForkServer


class Step(NamedTuple):
    """One batch that the model was trained on, and its loss."""

    ids: list[int]
    source: list[list[int]]
    target: list[list[int]]
    loss: float


def load_plugin() -> None:
    """Load the plug-in as --user-dir does."""
    from fairseq import utils

    from mt_scaffold.experiment.runtime.fairseq import user_dir

    utils.import_user_module(argparse.Namespace(user_dir=str(user_dir())))


def fairseq_config(arguments: list[str]) -> Any:
    """Return the configuration that fairseq-train makes from a command line."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    load_plugin()
    # fairseq would look for --user-dir in the arguments of this process.
    with mock.patch.object(sys, "argv", ["fairseq-train"]):
        parser = options.get_training_parser()
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))


def fairseq_train(arguments: list[str], signal_at: int = 0) -> list[Step]:
    """Run fairseq-train on the CPU, with SIGUSR1 in step ``signal_at``; return the batch and loss of each step."""
    from fairseq.tasks import FairseqTask

    steps: list[Step] = []
    train_step = FairseqTask.train_step

    def recorded(self: Any, sample: Any, *rest: Any, **named: Any) -> Any:
        if len(steps) + 1 == signal_at:
            os.kill(os.getpid(), signal.SIGUSR1)
        result = train_step(self, sample, *rest, **named)
        source = sample["net_input"]["src_tokens"].tolist()
        steps.append(Step(sample["id"].tolist(), source, sample["target"].tolist(), result[0].item()))
        return result

    with mock.patch.object(FairseqTask, "train_step", recorded):
        train_on_cpu(arguments)
    return steps


def train_on_cpu(arguments: list[str]) -> None:
    """Run fairseq-train on the CPU, and restore the signal handlers that the plug-in replaces."""
    from fairseq.distributed import utils as distributed
    from fairseq_cli import train
    from torch.utils.data import _utils

    config = fairseq_config([*arguments, "--cpu", "--no-progress-bar", "--required-batch-size-multiple", "1"])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGINT)}
    try:
        # This process has other threads, so that a data-loading worker may miss its end; it checks again this often.
        with mock.patch.object(_utils, "MP_STATUS_CHECK_INTERVAL", 0.5):
            distributed.call_main(config, train.main)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def run_processes(
    server: ForkServer, command: list[str], folder: Path, signal_at: int = 0, signalled: int = 1, number: int = 2
) -> list[list[Step]]:
    """Train in several processes and return the steps of each. One of them gets SIGUSR1 in step ``signal_at``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*command, "--distributed-world-size", str(number), "--distributed-backend", "gloo"]
    command += ["--distributed-no-spawn", "--distributed-init-method", f"tcp://127.0.0.1:{port}"]
    command += ["--ddp-backend", "legacy_ddp"]
    folder.mkdir(exist_ok=True)
    programs = []
    for rank in range(number):
        arguments = [__file__, str(folder / f"{rank}.json"), *command, "--distributed-rank", str(rank)]
        environment = {"SIGNAL_AT": str(signal_at if rank == signalled else 0)}
        programs.append(server.start(arguments, folder, folder / f"{rank}.log", environment))
    assert [server.wait(program) for program in programs] == [0] * number, (folder / "0.log").read_text()
    return [[Step(*step) for step in json.loads((folder / f"{rank}.json").read_text())] for rank in range(number)]


if __name__ == "__main__":
    signalled = int(os.environ.get("SIGNAL_AT", "0"))
    Path(sys.argv[1]).write_text(json.dumps(fairseq_train(sys.argv[2:], signalled)))
