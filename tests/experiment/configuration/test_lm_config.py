"""The configuration of language models: what is accepted and filled in, and one clear line for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("yaml", reason="PyYAML comes with the extra 'workflow'")

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.configuration import load_config, load_experiment, parse_experiment
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig

CONFIGS = ROOT / "configs"

SMALL = """\
task: language_modeling
name: small
data:
  documents:
    train: [train.jsonl]
    valid: [valid.jsonl]
    tests:
      news: [news.jsonl]
codes:
  symbols: 400
systems:
  bpe: {algorithm: bpe}
  scaffold: {algorithm: scaffold}
baseline: bpe
comparisons:
  equal_tokens: {tokens: 1000}
  equal_text: {text_of: equal_tokens}
train:
  options: {arch: transformer_lm, lr: 0.001}
"""


def load(tmp_path: Path, text: str, **arguments: Any) -> LanguageModelConfig:
    path = tmp_path / "small.yaml"
    path.write_text(text, encoding="utf-8")
    config = load_experiment(path, **arguments)
    assert isinstance(config, LanguageModelConfig)
    return config


def test_a_short_configuration_is_a_complete_one(tmp_path: Path) -> None:
    """Defaults are filled in; codes are of bytes, after GPT-2's pre-tokenisation."""
    config = load(tmp_path, SMALL)
    assert (config.codes.pretokenise, config.codes.split_digits, config.codes.total_symbols) == ("gpt2", True, False)
    assert (config.average.last, config.seeds, config.prepare.shards) == (1, [1], 1)
    assert config.test_sets == ["news"] and not config.synthetic
    assert list(config.all_codes) == ["bpe-400", "scaffold-400"]
    assert parse_experiment(config.to_dict()) == config


def test_no_training_is_run_twice(tmp_path: Path) -> None:
    """If a comparison takes as much text as the baseline read, one training of the baseline serves both."""
    config = load(tmp_path, SMALL)
    assert config.trainings == [("bpe", "equal_tokens"), ("scaffold", "equal_tokens"), ("scaffold", "equal_text")]
    assert config.run_of("bpe", "equal_text") == "equal_tokens"
    by_number = load(tmp_path, SMALL.replace("text_of: equal_tokens", "text: 5000"))
    assert len(by_number.trainings) == 4


def test_held_out_documents_are_the_test_set(tmp_path: Path) -> None:
    """One corpus is enough for an experiment."""
    files = "    valid: [valid.jsonl]\n    tests:\n      news: [news.jsonl]\n"
    assert load(tmp_path, SMALL.replace(files, "  held_out_every: 10\n")).test_sets == ["test"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("language_modeling", "language_modelling", 1, "task: must be translation or language_modeling, not 'lang"),
        ("name: small", "name: small\nlanguages: {}", 3, "languages: unknown key (known: task, name, data, codes, sy"),
        ("  documents:", "  archives: {}\n  documents:", 4, "data.archives: unknown key (known: synthetic, docum"),
        ("  symbols: 400", "  symbols: 256\n  total_symbols: true", 10, "codes.symbols: total_symbols includes the 25"),
        ("  symbols: 400", "  symbols: 400\n  bytes: false", 11, "codes.bytes: the ids of a language model need codes"),
        ("  symbols: 400", "  symbols: 400\n  pretokenise: gpt5", 11, "codes.pretokenise: "),
        ("  symbols: 400", "  symbols: 400\n  pretokenise: spaces", 11, "codes.pretokenise: words between spaces"),
        ("algorithm: bpe", "symbols: 3", 12, "systems.bpe.algorithm: missing: give scaffold, bpe, picky, trimmed, r"),
        ("algorithm: bpe", "algorithm: bpe, dropout: 2", 12, "systems.bpe.dropout: removed; language models ar"),
        ("algorithm: bpe}", "codes: a, symbols: 3}", 12, "systems.bpe.symbols: has no effect on codes that are given"),
        ("  scaffold: {", "  counts: {", 13, "systems.counts: reserved for a folder or file"),
        ("algorithm: scaffold", "algorithm: scaffold, baseline: bp", 13, "systems.scaffold.baseline: no system is ca"),
        ("tokens: 1000", "tokens: 1000, text: 5", 16, "comparisons.equal_tokens: give exactly one of tokens, text,"),
        ("text_of: equal_tokens", "text_of: equal_token", 17, "comparisons.equal_text.text_of: no comparison is"),
        ("text_of: equal_tokens", "text_of: equal_text", 17, "comparisons.equal_text.text_of: name a comparison that"),
        ("lr: 0.001", "max-update: 5", 19, "train.options.max-update: the comparisons say when a training ends"),
        ("lr: 0.001}", "lr: 0.1, lr-scheduler: fixed}\n  schedule: linear", 19, "train.options.lr-scheduler: set by"),
        ("lr: 0.001}", "end-learning-rate: 1}\n  schedule: linear", 19, "train.options.end-learning-rate: train.sche"),
        ("lr: 0.001", "task: language_modeling", 19, "train.options.task: set by this kind of experiment"),
        ("    valid: [valid.jsonl]\n", "", 3, "data: give either documents.valid or held_out_every (given: neither)"),
        ("  documents:", "  held_out_every: 5\n  documents:", 3, "data: give either documents.valid or held_out_every"),
        ("      news:", "      train:", 8, "data.documents.tests.train: a test set cannot be called train"),
        ("name: small", "name: small\nprepare: {max_memory: much}", 3, "prepare.max_memory: "),
        ("name: small", "name: small\naverage: {last: 2, by: updates}", 3, "average.by: updates needs save-interval"),
        ("name: small", "name: small\ntasks: {num_fewshot: [0]}", 3, "tasks.names: missing"),
        ("name: small", "name: small\ntasks: {names: [piqa, piqa]}", 3, "tasks.names: duplicate entry; list each once"),
        ("name: small", "name: small\ntasks: {names: [a]}", 20, "train.options.arch: tasks need a model of"),
        ("name: small", "name: small\ntasks: {names: [a], num_fewshot: [-1]}", 3, "tasks.num_fewshot[0]: must be 0 or"),
        ("name: small", f"name: small\nseeds: [{2**32 + 1}]", 3, "seeds[0]: a seed must be from 0 to 4000000000"),
        (
            "name: small", "name: small\ntasks: {names: [a], paper_setting: {x: 1B}}", 3,
            "tasks.paper_setting: removed; tools/paper.json has",
        ),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    """The user can go straight to the mistake; a key of translation is named as such."""
    assert old in SMALL
    with pytest.raises(UsageError) as raised:
        load(tmp_path, SMALL.replace(old, new, 1))
    assert str(raised.value).startswith(f"{tmp_path / 'small.yaml'}:{line}: {message}")
    assert "\n" not in str(raised.value)


def test_no_system_may_have_a_model_that_cannot_be_asked_tasks(tmp_path: Path) -> None:
    """Its training would be for nothing: the harness would refuse the model."""
    text = SMALL.replace("transformer_lm", "llama").replace(
        "name: small", "name: small\ntasks: {names: [a], download: true}"
    )
    own = "algorithm: bpe, train: {options: {arch: transformer_lm}}"
    with pytest.raises(UsageError, match=r"systems\.bpe\.train\.options\.arch: tasks need a model of transformers"):
        load(tmp_path, text.replace("algorithm: bpe", own))
    replaced = text.replace("arch: llama", "arch: transformer_lm")
    for name in ("bpe", "scaffold"):
        replaced = replaced.replace(f"algorithm: {name}", f"algorithm: {name}, train: {{options: {{arch: llama}}}}")
    assert load(tmp_path, replaced).tasks is not None


def test_each_task_has_its_own_commands(tmp_path: Path) -> None:
    """A translation command refuses a configuration of language models at once."""
    with pytest.raises(UsageError, match=r"lm_demo.yaml: task: language_modeling: give the configuration of a transla"):
        load_config(CONFIGS / "lm_demo.yaml")
    translation = (CONFIGS / "demo.yaml").read_text(encoding="utf-8")
    (tmp_path / "both.yaml").write_text(translation + "comparisons: {equal_tokens: {tokens: 3}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"comparisons: unknown key.*; it is one of task: language_modeling"):
        load_experiment(tmp_path / "both.yaml")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("lm_468m", [468_255_744]),
        ("lm_1b", [1_204_914_176]),
        ("lm_7b", [6_738_481_152]),
        ("lm_small", [33_505_792, 41_697_792, 58_081_792]),
        ("lm_mdn", [2_017_664, 3_041_664]),
        ("lm_german", [2_841_728]),
    ],
)
def test_the_recipes_models_have_the_sizes_that_their_comments_say(name: str, parameters: list[int]) -> None:
    """The paper's 468M, 1.2B and 6.7B follow from LLaMA's block and the widths that were inferred."""
    torch = pytest.importorskip("torch", reason="needs the extra 'fairseq'")
    pytest.importorskip("fairseq", reason="needs the extra 'fairseq'")
    pytest.importorskip("transformers", reason="needs the extra 'transformers'")
    from fairseq.data import Dictionary
    from fairseq_training import fairseq_config

    from mt_scaffold.experiment.runtime.fairseq import option_arguments
    from mt_scaffold.experiment.training.language_model_options import training_options

    config = load_experiment(CONFIGS / f"{name}.yaml")
    assert isinstance(config, LanguageModelConfig)
    options = training_options(config, *config.trainings[0])
    model = fairseq_config(["data", "--task", "language_modeling_resumable", *option_arguments(options)]).model
    found = set()
    for size in {setting.method.amount for setting in config.all_codes.values() if setting.method}:
        dictionary = Dictionary()
        dictionary.indices = {str(number): number for number in range(size + 4 + -(size + 4) % 8)}
        dictionary.symbols = list(dictionary.indices)
        found.add(_parameters(torch, model, dictionary))
    print(f"{name}: {sorted(found)} parameters")
    assert sorted(found) == parameters
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    assert all(f"{number:,}" in text for number in parameters)


def _parameters(torch: Any, model: Any, dictionary: Any) -> int:
    """Count the parameters of a language model without allocating them."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    class Task:
        source_dictionary = target_dictionary = dictionary

    Task.source_dictionary = Task.target_dictionary = dictionary
    with torch.device("meta"):
        built = ARCH_MODEL_REGISTRY[model._name].build_model(model, Task())
    return sum(parameter.numel() for parameter in built.parameters())
