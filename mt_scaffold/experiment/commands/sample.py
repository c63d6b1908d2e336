"""mt-scaffold sample: see mt_scaffold.experiment.inference.sample."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from mt_scaffold.corpus.files import write_text
from mt_scaffold.corpus.text import read_lines
from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.commands.arguments import File, OutputFile
from mt_scaffold.experiment.inference.sample import Sampling, format_samples, sample
from mt_scaffold.options_from_signature import Option

EXAMPLES = """\
mt-scaffold sample --checkpoint averaged.pt --data binarised --prompt "Once upon a time" --temperature 0.8
"""


def run(
    *,
    checkpoint: File,
    data: Annotated[str, Option("FOLDER", "-d")],
    codes: Annotated[str | None, Option("FILE", "-c")] = None,
    prompt: Annotated[str | None, Option("TEXT")] = None,
    prompts: File | None = None,
    length: int = 100,
    number: int = 1,
    temperature: Annotated[float, Option("T")] = 1.0,
    top_k: Annotated[int, Option("K")] = 0,
    top_p: Annotated[float, Option("P")] = 1.0,
    seed: int = 1,
    gpus: int = 0,
    json_lines: Annotated[bool, Option(name="json")] = False,
    output: OutputFile | None = None,
) -> None:
    """Generate text, and show it.

    Generate text with a language model, from the start of a document or after each prompt. The output shows each prompt
    with its continuation; several are separated by lines such as --- prompt 1, sample 2. The same seed generates the
    same text on the same machine.

    checkpoint: a checkpoint of the language model
    data: the data folder that binarise-documents made
    codes: the codes it was made with (default: those in the folder)
    prompt: text to continue (default: start a document)
    prompts: or a file with a prompt per line
    length: tokens to generate, at most
    number: samples per prompt
    temperature: divisor of the logits; 0: always the likeliest token (default: 1)
    top_k: draw from the K likeliest tokens (default: 0, all)
    top_p: draw from the likeliest tokens whose probabilities sum to P (default: 1)
    seed: random seed
    gpus: 1: require a GPU (default: use one if there is one)
    json_lines: write a JSON object per sample instead
    output: output file (default: standard output)
    """
    if prompt is not None and prompts is not None:
        raise UsageError("sample: give --prompt or --prompts, not both")
    texts = read_lines(prompts) if prompts else [prompt or ""]
    if not texts:
        raise UsageError(f"--prompts {prompts}: contains no prompt; give one per line")
    samples = sample(
        checkpoint,
        data,
        texts,
        codes=codes,
        length=length,
        number=number,
        sampling=Sampling(temperature, top_k, top_p),
        seed=seed,
        gpus=gpus,
    )
    text = format_samples(samples, number)
    if json_lines:
        text = "".join(f"{json.dumps(asdict(each), ensure_ascii=False)}\n" for each in samples)
    if output:
        write_text(output, text)
    else:
        print(text, end="")
