"""The WMT'14 experiments: their options against the published facts, and all of them at small scale."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

import yaml
from fork_server import SNAKEFILE, ForkServer, Snakemake
from wmt14_archives import CONFIGS, derived_config, make_archives

from mt_scaffold.errors import UsageError
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.configuration import Config, load_config
from mt_scaffold.experiment.configuration.training import Batch, Train
from mt_scaffold.experiment.runtime.fairseq import WHOLE_DATA_SET, option_arguments, user_dir
from mt_scaffold.experiment.runtime.schema import OptionValue

ROOT = CONFIGS.parent
# Every value as the publication has it, by the option's name.
FACTS = {
    "share-all-embeddings": True,
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "clip-norm": 0.0,
    "lr-scheduler": "inverse_sqrt",
    "warmup-updates": 4000,
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "weight-decay": 0.0,
    "fp16": True,
}
GERMAN = {"arch": "transformer_vaswani_wmt_en_de_big", "dropout": 0.3, "max-tokens": 3584}
FRENCH = {"arch": "transformer_vaswani_wmt_en_fr_big", "dropout": 0.1, "max-tokens": 5120}
# By the configuration's name without wmt14_en_.
OF_CONFIG = {"de": GERMAN, "de_gehring": GERMAN, "fr": FRENCH}
# For French the learning rate of the published log, for German that of the published page.
OF_BATCH: dict[str, dict[str, Any]] = {"large": {"update-freq": 16}, "small": {"lr": 0.0005, "update-freq": 1}}
LARGE_RATE = {"de": 0.001, "de_gehring": 0.001, "fr": 0.0007}
BOTH = [(name, batch) for name in OF_CONFIG for batch in OF_BATCH]
# Merges; limits of words and ratio; for training text: normalise, remove non-printing characters, split at dashes.
PREPARATION = {
    "de": (32000, 80, 9, (False, False, False)),
    "de_gehring": (40000, 250, 1.5, (True, True, True)),
    "fr": (40000, 250, 1.5, (True, True, True)),
}

TINY = {
    "encoder-layers": 1,
    "decoder-layers": 1,
    "encoder-embed-dim": 16,
    "decoder-embed-dim": 16,
    "encoder-ffn-embed-dim": 16,
    "decoder-ffn-embed-dim": 16,
    "encoder-attention-heads": 2,
    "decoder-attention-heads": 2,
    "fp16": False,
    "num-workers": 0,
    "save-interval-updates": 2,
}


def wmt14(name: str, batch: str = "large") -> Config:
    return load_config(CONFIGS / f"wmt14_en_{name}.yaml", {"train": {"batch": batch}})


@pytest.mark.parametrize(("name", "batch"), BOTH)
def test_the_options_are_those_that_were_published(name: str, batch: str) -> None:
    """A recipe that departs from the publication in one value cannot be compared with any result."""
    config = wmt14(name, batch)
    expected = {**FACTS, **OF_CONFIG[name], "lr": LARGE_RATE[name], **OF_BATCH[batch]}
    options = config.train.all_options
    assert {name: options.get(name) for name in expected} == expected
    assert float(str(options["warmup-init-lr"])) == 1e-7
    merges, words, ratio, steps = PREPARATION[name]
    assert config.codes.symbols == merges
    assert config.translate.options["beam"] == 4 and config.translate.options["lenpen"] == 0.6
    assert (config.clean.max_tokens, config.clean.max_ratio, config.average.last) == (words, ratio, 10)
    for part, wanted in (("train", steps), ("newstest2014", (False, False, steps[2]))):
        tokenise = config.tokenise_for(part)
        found = (tokenise.normalise_punctuation, tokenise.remove_nonprinting, tokenise.aggressive_dash_splitting)
        assert found == wanted
    # Google's script has no rule for apostrophes, fairseq's scripts have one for the test set.
    assert config.tokenise_for("newstest2014").straight_apostrophes == (name != "de")
    # A limit would cut Scaffold-BPE's dictionary and not BPE's; a test over trainings takes three.
    assert (config.binarise.nwordssrc, config.binarise.nwordstgt, config.seeds) == (-1, -1, [1, 2, 3])
    segmenting = [(system.algorithm, system.resamplings[0].amount) for system in config.systems.values()]
    assert segmenting == [("bpe", 0), ("bpe", 0.1), ("scaffold", 0), ("scaffold", 0.1)]


@pytest.mark.parametrize("name", list(OF_CONFIG))
def test_one_large_gpu_trains_with_the_batch_of_the_published_scores(name: str) -> None:
    """Another number of tokens per update, or its learning rate, would be another experiment."""
    published, single = wmt14(name, "large").train, wmt14(name, "h200").train
    assert (published.batch_gpus, single.batch_gpus) == (8, 1)

    def tokens(train: Train) -> int:
        options = train.all_options
        sizes = (options["max-tokens"], options["update-freq"])
        return math.prod(size for size in sizes if isinstance(size, int)) * train.batch_gpus

    assert tokens(single) == tokens(published) == {"fr": 655360}.get(name, 458752)
    own = {"max-tokens", "update-freq"}
    assert {key: value for key, value in single.all_options.items() if key not in own} == {
        key: value for key, value in published.all_options.items() if key not in own
    }


def test_each_german_text_is_the_published_one() -> None:
    """News Commentary v11 is Google's, v9 that of WMT'14; scores of systems trained on them cannot be compared."""
    ott, gehring = wmt14("de"), wmt14("de_gehring")
    texts = []
    for config in (ott, gehring):
        assert config.data.archives is not None
        texts.append([pair.source.rsplit("/", 1)[-1] for pair in config.data.archives.train])
    shared = ["europarl-v7.de-en.en", "commoncrawl.de-en.en"]
    assert texts == [[*shared, "news-commentary-v11.de-en.en"], [*shared, "news-commentary-v9.de-en.en"]]
    assert ott.data.valid_every is None
    assert (gehring.data.valid_every, gehring.data.valid_cut) == (100, "before_cleaning")
    published = {
        config.name: {(each.by, each.score) for each in config.compare_with if not each.by.startswith("Lian et al.")}
        for config in (ott, gehring)
    }
    assert published == {
        "wmt14_en_de": {("Ott et al. 2018", 29.3), ("Ott et al. 2018", 28.6)},
        "wmt14_en_de_gehring": {("Gehring et al. 2017", 25.16)},
    }


@pytest.mark.parametrize(("name", "batch"), BOTH)
def test_fairseq_accepts_the_command_line(name: str, batch: str) -> None:
    """Nothing is misspelt before days of training."""
    from fairseq import options

    arguments = option_arguments(wmt14(name, batch).train.all_options)
    parser = options.get_training_parser()
    parsed = options.parse_args_and_arch(parser, ["data", *arguments])
    assert parsed.update_freq == [OF_BATCH[batch]["update-freq"]] and parsed.encoder_embed_dim == 1024


@pytest.mark.parametrize("name", ["de", "fr"])
@pytest.mark.parametrize(
    ("batch", "gpus", "update_freq"),
    [("large", 8, 16), ("large", 4, 32), ("large", 16, 8), ("large", 128, 1), ("small", 1, 8), ("large", 0, 128)],
)
def test_the_batch_is_the_same_on_any_number_of_gpus(name: str, batch: str, gpus: int, update_freq: int) -> None:
    """Fewer GPUs, or a CPU, gather gradients over more steps."""
    options = wmt14(name, batch).train.options_on(gpus)
    assert options == wmt14(name, batch).train.all_options | {"update-freq": update_freq}


@pytest.mark.parametrize(("batch", "gpus"), [("large", 12), ("large", 256), ("small", 16)])
def test_a_batch_that_the_gpus_cannot_share_is_refused(batch: str, gpus: int) -> None:
    """A different batch size would be a different experiment."""
    with pytest.raises(UsageError, match=f"train.batches.{batch}: .* cannot be shared by {gpus} GPUs"):
        wmt14("de", batch).train.options_on(gpus)


@pytest.mark.parametrize("update_freq", ["2,4", "2", True])
def test_a_batch_whose_parts_are_not_counted_is_refused(update_freq: OptionValue) -> None:
    """fairseq also accepts a value per epoch, which would make the batch depend on the epoch."""
    batch = Batch(options={"update-freq": update_freq}, gpus=8)
    train = Train({}, batch="mine", batches={"mine": batch})
    with pytest.raises(UsageError, match=rf"train\.batches\.mine: .* must be a whole number .*, not {update_freq}"):
        train.options_on(4)


@pytest.fixture(scope="module")
def one_pair(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of one pair: more only take longer, with transformer-big on a CPU."""
    folder = tmp_path_factory.mktemp("one")
    for language in ("en", "de"):
        line, _, _ = (tiny_words / f"train.{language}").read_text(encoding="utf-8").partition("\n")
        (folder / f"pair.{language}").write_text(f"{line}\n", encoding="utf-8")
    codes = joint_segmentation(tiny_words / "codes")
    binarise(folder / "data", "en", "de", codes, folder / "pair", folder / "pair")
    return folder / "data"


@pytest.mark.long
@pytest.mark.parametrize(("name", "batch"), [each for each in BOTH if each[0] != "de_gehring"])
def test_the_real_architecture_does_an_update(
    fairseq_programs: ForkServer, one_pair: Path, tmp_path: Path, name: str, batch: str
) -> None:
    """One update of transformer-big, on the CPU; all but the precision is as it will be on the GPUs."""
    options = wmt14(name, batch).train.all_options | {
        "fp16": False,
        "num-workers": 0,
        "max-update": 1,
        "no-save": True,
    }
    arguments = [str(one_pair), "--source-lang", "en", "--target-lang", "de", "--user-dir", str(user_dir()), "--cpu"]
    # Validating would cost as much again.
    options |= {"disable-validation": True, **WHOLE_DATA_SET}
    command = ["-m", "fairseq_cli.train", *arguments, *option_arguments(options)]
    assert fairseq_programs.wait(fairseq_programs.start(command, tmp_path, tmp_path / "log")) == 0
    log = (tmp_path / "log").read_text(encoding="utf-8")
    # Six layers of 1024 on either side, and a tiny dictionary.
    assert 176e6 < int(re.findall(r"num\. shared model params: ([\d,]+)", log)[0].replace(",", "")) < 178e6
    assert "done training" in log and "num_updates 1 " in log


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "systems"), [("de", None), ("fr", ["bpe", "scaffold_dropout"])], ids=["en-de", "en-fr"]
)
def test_the_whole_at_small_scale_without_a_network(
    snakemake: Snakemake, tmp_path: Path, target: str, systems: list[str] | None
) -> None:
    """From archives with the real names and formats to the table, through the rules unchanged."""
    (tmp_path / "cache").mkdir()
    config = derived_config(target, tmp_path / "cache", make_archives(tmp_path / "cache", target))
    config["codes"]["symbols"] = 200
    config["clean"]["max_ratio"] = 3.0
    config["train"]["options"] |= TINY
    config["train"]["batches"]["large"]["options"] |= {"max-update": 4}
    config["average"]["last"], config["seeds"] = 2, [1]
    config["translate"]["options"] |= {"fp16": False, "max-len-b": 10}
    config["score"]["bootstrap_samples"] = 20
    if systems is not None:
        config["systems"] = {name: {**config["systems"][name], "baseline": "bpe"} for name in systems}
        config["compare_with"] = [entry for entry in config["compare_with"] if entry["beside"] in systems]
    (tmp_path / "wmt14.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    folders = {"output": tmp_path / "out", "cache": tmp_path / "cache"}
    done = run_workflow(snakemake, tmp_path / "wmt14.yaml", tmp_path, **folders, sample=50)
    assert done.returncode == 0, done.stdout

    out = tmp_path / "out"
    report = json.loads((out / "data-report.json").read_text())
    archives = 5 if target == "fr" else 3
    assert report["get-data"]["corpora"]["train"]["lines"] == 50 * archives
    assert report["get-data"]["corpora"]["valid"]["lines"] == (120 if target == "fr" else 60)
    assert report["tokenise"]["train.en"]["lines"] == 50 * archives
    assert report["clean"]["train"]["pairs_read"] == 50 * archives
    assert report["get-data"]["test_overlap"]["newstest2014"]["pair_in_train"] >= 1
    assert "the training text: newstest2014 (of 20, " in done.stdout
    assert "\u2019" in (out / "raw" / f"newstest2014.{target}").read_text()
    assert ("\u2019" in (out / "words" / f"newstest2014.{target}").read_text()) == (target == "de")
    left = sorted(path.name for path in (out / "words").iterdir() if path.is_file())
    names = ("newstest2014", "train", "valid")
    assert left == sorted(f"{name}.{language}" for name in names for language in ("en", target))
    recorded = sorted(path.name for path in (tmp_path / "cache").glob("*.sha256"))
    unknown = ["training-giga-fren.tar.sha256", "training-parallel-un.tgz.sha256"]
    assert recorded == (unknown if target == "fr" else [])

    comparison = json.loads((out / "comparison.json").read_text())
    assert {row["system"] for row in comparison["rows"]} == set(systems or config["systems"])
    words = [entry for entry in comparison["published"] if entry["metric"] != "bleu"]
    assert {entry["by"].partition(" 20")[0] for entry in words} == {"Ott et al.", "Lian et al."}
    (entry,) = [entry for entry in words if entry["by"] == "Ott et al. 2018"]
    assert entry["beside"] == "bpe"
    assert entry["score"] == {"de": 29.3, "fr": 43.2}[target]
    assert entry["metric"] == {"de": "tokenised_bleu_split", "fr": "tokenised_bleu"}[target]
    assert entry["difference"] == pytest.approx(entry["ours"] - entry["score"])
    assert "not measured here" in (out / "comparison.txt").read_text()
    command = (out / "bpe" / "seed-1" / "command.txt").read_text()
    assert f"transformer_vaswani_wmt_en_{target}_big" in command and "--update-freq 128" in command


@pytest.mark.long
def test_gehrings_validation_set_is_cut_out_before_cleaning(snakemake: Snakemake, tmp_path: Path) -> None:
    """Every 100th pair of the tokenised text, whatever cleaning drops, as in the published script."""
    (tmp_path / "cache").mkdir()
    config = derived_config("de_gehring", tmp_path / "cache", make_archives(tmp_path / "cache", "de", pairs=120))
    config["clean"]["max_tokens"] = 12
    (tmp_path / "gehring.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    out = tmp_path / "out"
    folders = {"output": out, "cache": tmp_path / "cache"}
    done = run_workflow(snakemake, tmp_path / "gehring.yaml", tmp_path, out / "data-report.json", **folders)
    assert done.returncode == 0, done.stdout
    train = json.loads((out / "data-report.json").read_text())["clean"]["train"]
    assert train["held_out"]["pairs_read"] == 3 and train["pairs_read"] == 357
    assert train["pairs_kept"] < 340, "cleaning must drop some, or this shows nothing"
    assert len((out / "words" / "valid.de").read_text().splitlines()) == train["held_out"]["pairs_kept"]


def run_workflow(
    snakemake: Snakemake, config: Path, folder: Path, target: Path | None = None, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in ``folder``, to ``target`` or to completion."""
    options = ["--cores", "2", *([] if target is None else [str(target)]), "--configfile", str(config)]
    return snakemake.run(folder, *options, "--config", *(f"{name}={value}" for name, value in settings.items()))


@pytest.mark.parametrize("name", list(OF_CONFIG))
def test_a_dry_run_shows_the_whole_graph(snakemake: Snakemake, tmp_path: Path, name: str) -> None:
    """It works with a cluster's profile too, and leaves nothing behind."""
    options = ["--configfile", str(CONFIGS / f"wmt14_en_{name}.yaml"), "--config", f"output={tmp_path / 'out'}"]
    options += ["--profile", str(SNAKEFILE.parent / "profiles" / "slurm")]
    done = snakemake.run(tmp_path, "-n", "--quiet", "rules", *options)
    counts = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2 and line[-1].isdigit())
    assert counts["train"] == counts["score"] == "12" and counts["compare"] == "1"
    assert not (tmp_path / "out").exists()
