"""The plug-in inside fairseq: the segmentation of a sentence in each epoch, however training is stopped or shared."""

import argparse
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from fairseq_training import Step, fairseq_config, fairseq_train, load_plugin, run_processes
from fork_server import ForkServer
from reference.distribution import dropout_distribution
from segmenting import reference_of
from test_average import Malicious

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.runtime.fairseq import user_dir
from mt_scaffold.methods.learn import learn_bpe
from mt_scaffold.segment.apply import BPE

MODEL = (
    "--arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16 "
    "--encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--share-all-embeddings --dropout 0.1 --optimizer adam --lr 0.01 --criterion label_smoothed_cross_entropy "
    "--label-smoothing 0.1 --max-tokens 1200 --seed 3"
).split()
ON_THE_FLY = ["--task", "translation_bpe_dropout"]
SEED, PAIRS = 3, 400


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    load_plugin()


def store(output: Path, train: Path, valid: Path, codes: Path, *tests: Path) -> None:
    """Make a data folder of words with joint codes."""
    binarise_words(output, "en", "de", joint_segmentation(codes), train, valid, tests)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """{train,valid,valid.x}.{en,de} (400, 30 and 30 pairs), and for each algorithm its codes and data folder."""
    from mt_scaffold.experiment.data.synthetic import sentence_pairs

    folder = tmp_path_factory.mktemp("words")
    pairs = sentence_pairs(1)
    for name, number in {"train": PAIRS, "valid": 30, "valid.x": 30}.items():
        chosen = list(islice(pairs, number))
        for side, language in enumerate(("en", "de")):
            (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in chosen), encoding="utf-8")
    for algorithm in ("bpe", "scaffold"):
        codes = folder / f"{algorithm}.codes"
        texts = [folder / "train.en", folder / "train.de"]
        codes.write_bytes(learn_bpe(paths=texts, num_symbols=300, algorithm=algorithm).text)
        store(folder / algorithm, folder / "train", folder / "valid", codes)
    return folder


def training_set(data: Path, *options: str, epoch: int = 1) -> Any:
    """The training set as the task opens it."""
    from fairseq import tasks

    config = fairseq_config([str(data), *MODEL, *ON_THE_FLY, *options])
    task = tasks.setup_task(config.task)
    task.load_dataset("train", epoch=epoch, combine=True)
    return task.dataset("train")


def batches_of(dataset: Any, epoch: int, max_tokens: int = 1200) -> list[list[int]]:
    dataset.set_epoch(epoch)
    batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=max_tokens)
    return [[int(number) for number in batch] for batch in batches]


def ids(sample: dict[str, Any]) -> tuple[list[int], list[int]]:
    return sample["source"].tolist(), sample["target"].tolist()


@pytest.mark.parametrize("algorithm", [pytest.param("bpe", marks=pytest.mark.long), "scaffold"])
def test_without_dropout_it_is_the_standard_task_on_segmented_text(
    words: Path, tmp_path: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batches, in the same order, with the same losses to the last bit, over several epochs."""
    from fairseq_cli import preprocess

    bpe = BPE(words / f"{algorithm}.codes")
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        bpe.process_file(words / name, tmp_path / name)
    arguments = f"--source-lang en --target-lang de --trainpref {tmp_path}/train --validpref {tmp_path}/valid"
    arguments += f" --destdir {tmp_path}/data --joined-dictionary --srcdict {words}/{algorithm}/dict.en.txt"
    monkeypatch.setattr(sys, "argv", ["fairseq-preprocess", *arguments.split()])
    preprocess.cli_main()
    common = [*MODEL, "--max-epoch", "3", "--no-save"]
    standard = fairseq_train([f"{tmp_path}/data", *common])
    ours = fairseq_train([str(words / algorithm), *common, *ON_THE_FLY, "--bpe-dropout", "0"])
    assert len(standard) > 20 and ours == standard


@pytest.fixture(scope="module")
def uninterrupted(words: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Step], Path]:
    """Six epochs with dropout, and the folder of the checkpoints."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    return fairseq_train([*with_dropout(words), "--save-dir", str(folder), "--max-epoch", "6"]), folder


def with_dropout(words: Path) -> list[str]:
    return [str(words / "scaffold"), *MODEL, *ON_THE_FLY, "--bpe-dropout", "0.2"]


@pytest.mark.long
def test_a_training_stopped_in_an_epoch_resumes_as_if_never_stopped(
    words: Path, uninterrupted: tuple[list[Step], Path], tmp_path: Path
) -> None:
    """The same batches and losses, even if it resumes with another number of workers."""
    import torch

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    steps, folder = uninterrupted
    in_an_epoch = len(steps) // 6
    stop = 2 * in_an_epoch + in_an_epoch // 2
    common = [*with_dropout(words), "--save-dir", str(tmp_path), "--max-epoch", "6"]
    before = fairseq_train([*common, "--max-update", str(stop), "--num-workers", "0"])
    after = fairseq_train([*common, "--num-workers", "2"])
    assert len(before) == stop and before + after == steps
    resumed = load_checkpoint(tmp_path / "checkpoint_last.pt")["model"]
    for name, tensor in load_checkpoint(folder / "checkpoint_last.pt")["model"].items():
        assert torch.equal(tensor, resumed[name]), name


def test_it_learns(uninterrupted: tuple[list[Step], Path]) -> None:
    """The loss falls: source and target of a pair belong together."""
    steps, _ = uninterrupted
    tokens = [sum(sum(token != 1 for token in sentence) for sentence in step.target) for step in steps]
    per_token = [step.loss / number for step, number in zip(steps, tokens, strict=True)]
    sixth = len(steps) // 6
    assert sum(per_token[-sixth:]) < 0.95 * sum(per_token[:sixth])


def test_a_sentence_is_a_function_of_seed_epoch_side_and_number(
    words: Path, uninterrupted: tuple[list[Step], Path]
) -> None:
    """The model's input, whatever the batch and the worker, is the output of one call of the core."""
    from fairseq.data import Dictionary

    dictionary = Dictionary.load(str(words / "scaffold" / "dict.en.txt"))
    encoder = BPE(words / "scaffold.codes").encoder(dictionary.indices, dictionary.unk())
    texts = [(words / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")]
    steps, _ = uninterrupted
    epoch, seen = 1, 0
    for step in steps:
        for number, source, target in zip(step.ids, step.source, step.target, strict=True):
            for side, trained_on in enumerate((source, target)):
                encoded, _ = encoder.encode([texts[side][number]], 0.2, 2 * SEED + side, epoch, [number])
                without_padding = [token for token in trained_on if token != dictionary.pad()]
                assert without_padding == [*encoded.tolist(), dictionary.eos()]
            seen += 1
        if seen == epoch * PAIRS:
            epoch += 1
    assert epoch == 7


def test_the_sentences_of_an_epoch_do_not_depend_on_earlier_epochs(words: Path) -> None:
    """Epochs may be set one after the other, out of order, or directly."""
    one = training_set(words / "bpe", "--bpe-dropout", "0.3")
    other = training_set(words / "bpe", "--bpe-dropout", "0.3", "--num-workers", "3", epoch=4)
    sentences = {}
    for epoch in (1, 2, 3, 4):
        one.set_epoch(epoch)
        sentences[epoch] = [ids(sample) for sample in one.__getitems__(range(PAIRS))]
    for epoch in (4, 2):
        other.set_epoch(epoch)
        assert [ids(other[number]) for number in range(PAIRS)] == sentences[epoch]
        assert batches_of(other, epoch) == batches_of(one, epoch)
    different = sum(first != second for first, second in zip(sentences[1], sentences[2], strict=True))
    assert different > 0.9 * PAIRS


def test_batches_keep_to_the_lengths_that_were_drawn(words: Path) -> None:
    """Sentences that are too long in one epoch are left out of that epoch only."""
    dataset = training_set(words / "scaffold", "--bpe-dropout", "0.5")
    left_out = []
    for epoch in (1, 2, 3):
        batches = batches_of(dataset, epoch, max_tokens=500)
        assert sorted(number for batch in batches for number in batch) == list(range(PAIRS))
        for batch in batches:
            collated = dataset.collater(dataset.__getitems__(batch))
            assert max(collated["net_input"]["src_tokens"].numel(), collated["target"].numel()) <= 500
            lengths = [(len(source), len(target)) for source, target in map(ids, dataset.__getitems__(batch))]
            assert [dataset.size(number) for number in batch] == lengths
        kept, ignored = dataset.filter_indices_by_size(dataset.ordered_indices(), (40, 1024))
        assert all(len(dataset[number]["source"]) > 40 for number in ignored)
        assert all(len(dataset[int(number)]["source"]) <= 40 for number in kept)
        left_out.append(set(ignored))
    assert left_out[0] and left_out[0] != left_out[1]


def test_truncating_and_bucketing_use_the_lengths_that_were_drawn(words: Path) -> None:
    """fairseq's options for lengths act on this epoch's segmentation."""
    dataset = training_set(words / "bpe", "--bpe-dropout", "0.5", "--truncate-source", "--max-source-positions", "20")
    sources = [ids(dataset[number])[0] for number in range(50)]
    assert max(map(len, sources)) == 20 and all(source[-1] == 2 for source in sources)
    dataset = training_set(words / "bpe", "--bpe-dropout", "0.5", "--num-batch-buckets", "3")
    for epoch in (1, 2):
        batches = batches_of(dataset, epoch)
        shapes = {dataset.collater(dataset.__getitems__(batch))["target"].shape[1] for batch in batches}
        assert len(shapes) <= 3
        assert sorted(number for batch in batches for number in batch) == list(range(PAIRS))


def test_the_sides_are_drawn_independently_and_may_differ_in_dropout(words: Path, tmp_path: Path) -> None:
    """The same text on both sides is not segmented alike."""
    for name in ("train", "valid"):
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_bytes((words / f"{name}.en").read_bytes())
    codes = words / "bpe.codes"
    store(tmp_path / "data", tmp_path / "train", tmp_path / "valid", codes)
    both = training_set(tmp_path / "data", "--bpe-dropout", "0.5")
    same = sum(source == target for source, target in map(ids, both.__getitems__(range(PAIRS))))
    assert same < 0.1 * PAIRS
    one = training_set(tmp_path / "data", "--bpe-dropout", "0.5", "--bpe-dropout-src", "0")
    plain = training_set(tmp_path / "data", "--bpe-dropout", "0")
    for sample, without, dropped in zip(*(each.__getitems__(range(50)) for each in (one, plain, both)), strict=True):
        assert ids(sample) == (ids(without)[0], ids(dropped)[1])


def test_validation_and_generation_use_no_dropout(words: Path) -> None:
    """Generation takes the task from the checkpoint, and still uses no dropout, even on the training set."""
    from fairseq import tasks

    task = tasks.setup_task(fairseq_config([str(words / "bpe"), *MODEL, *ON_THE_FLY, "--bpe-dropout", "0.5"]).task)
    bpe = BPE(words / "bpe.codes")
    for split in ("valid", "train"):
        task.load_dataset(split, task_cfg=task.cfg)
        for number, line in enumerate((words / f"{split}.de").read_text(encoding="utf-8").splitlines()):
            assert task.tgt_dict.string(task.dataset(split)[number]["target"]) == bpe.segment(line)


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
def test_a_sentence_is_drawn_from_the_exact_distribution(words: Path, tmp_path: Path, algorithm: str) -> None:
    """Compare segmentations of ten copies over 100 epochs with their enumerated probabilities (chi-square)."""
    from scipy.stats import chisquare

    codes = words / f"{algorithm}.codes"
    reference = reference_of(codes.read_bytes())
    known = sorted(set((words / "train.en").read_text(encoding="utf-8").split()))
    short = ((word, dropout_distribution(reference, word, 0.4)) for word in known if 4 <= len(word) <= 6)
    chosen = list(islice(((word, possible) for word, possible in short if len(possible) > 4), 2))
    exact: dict[str, float] = {"": 1.0}
    for _, possible in chosen:
        exact = {
            f"{before} {'@@ '.join(pieces)}".strip(): probability * chance
            for before, probability in exact.items()
            for pieces, chance in possible.items()
        }
    sentence = " ".join(word for word, _ in chosen)
    for name in ("train.en", "train.de", "valid.en", "valid.de"):
        (tmp_path / name).write_text(f"{sentence}\n" * 10)
    store(tmp_path / "data", tmp_path / "train", tmp_path / "valid", codes)
    dataset = training_set(tmp_path / "data", "--bpe-dropout", "0.4")
    for side in ("source", "target"):
        found: Counter[str] = Counter()
        for epoch in range(1, 101):
            dataset.set_epoch(epoch)
            found.update(dataset.src_dict.string(dataset[number][side]) for number in range(10))
        assert found.keys() <= exact.keys()
        rare = [form for form, probability in exact.items() if 1000 * probability < 5]
        common = [form for form in exact if form not in rare]
        observed = [found[form] for form in common] + [sum(found[form] for form in rare)]
        expected = [1000 * exact[form] for form in common] + [1000 * sum(exact[form] for form in rare)]
        assert chisquare(observed[: len(common) + bool(rare)], expected[: len(common) + bool(rare)]).pvalue > 0.001


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold"])
@pytest.mark.parametrize("dropout", [0, 0.1, 0.5, 1])
def test_no_unknown_subword_is_trained_on(words: Path, tmp_path: Path, algorithm: str, dropout: float) -> None:
    """Even characters that the codes do not have, and words that look like fairseq's own symbols, have ids."""
    odd = "🙂 x🙂y </s> <unk>s 日本\u00a0語\n"
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text((words / name).read_text(encoding="utf-8") + odd, encoding="utf-8")
    codes = words / f"{algorithm}.codes"
    store(tmp_path / "data", tmp_path / "train", words / "valid", codes)
    dataset = training_set(tmp_path / "data", "--bpe-dropout", str(dropout))
    for epoch in range(1, 6):
        dataset.set_epoch(epoch)
        for sample in dataset.__getitems__(range(PAIRS + 1)):
            for sentence in ids(sample):
                # 0 to 3 are <s>, <pad>, </s> and <unk>.
                assert sentence[-1] == 2 and min(sentence[:-1]) > 3
    odd_again = dataset.tgt_dict.string(dataset[PAIRS]["target"])
    assert (odd_again + " ").replace("@@ ", "").strip() == odd.strip()


def test_the_training_set_is_not_validated_on(words: Path) -> None:
    """It would be validated with dropout, and reset to epoch 1 in the middle of another."""
    with pytest.raises(UsageError, match="--valid-subset train"):
        fairseq_train([*with_dropout(words), "--max-epoch", "1", "--no-save", "--valid-subset", "valid,train"])


def test_a_folder_that_was_not_finished_is_refused(words: Path, tmp_path: Path) -> None:
    """It may contain one side of one text and the other side of another."""
    data = shutil.copytree(words / "bpe", tmp_path / "data")
    (data / "binarised.json").unlink()
    with pytest.raises(MTScaffoldError, match="not a folder that mt-scaffold binarise made"):
        training_set(data)


def test_a_dictionary_that_does_not_fit_is_refused(words: Path, tmp_path: Path) -> None:
    """Codes of another folder would silently train on <unk>."""
    with pytest.raises(MTScaffoldError, match=r"its dictionary of .. lacks subwords that BPE-dropout makes"):
        training_set(words / "scaffold", "--bpe-codes", str(words / "bpe.codes"))
    with pytest.raises(MTScaffoldError, match="its dictionary of"):
        training_set(words / "scaffold", "--bpe-separator", "##")
    with pytest.raises(UsageError, match=r"--bpe-dropout: the dropout probability must be between 0 and 1, not 1\.5"):
        training_set(words / "scaffold", "--bpe-dropout", "1.5")
    with pytest.raises(MTScaffoldError, match="make the folder with mt-scaffold binarise-words"):
        fairseq_train([str(words / "bpe"), *MODEL, *ON_THE_FLY, "--valid-subset", "nothing"])


@pytest.mark.long
def test_it_trains_in_processes_that_fairseq_spawns(words: Path) -> None:
    """As on a node with two GPUs: the data-loading workers of a spawned process read the words too."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    program = "import torch; torch.cuda.device_count = lambda: 2\nfrom fairseq_cli.train import cli_main\n"
    program += "if __name__ == '__main__': cli_main()\n"
    path = words / "spawning.py"
    path.write_text(program)
    arguments = [*with_dropout(words), "--max-epoch", "1", "--no-save", "--cpu", "--user-dir", str(user_dir())]
    arguments += ["--num-workers", "1", "--distributed-world-size", "2", "--distributed-backend", "gloo"]
    arguments += ["--ddp-backend", "legacy_ddp", "--distributed-init-method", f"tcp://localhost:{port}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    training = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, timeout=300, env=environment
    )
    assert training.returncode == 0, training.stderr[-2000:]


@pytest.mark.long
def test_two_processes_share_the_batches_of_one(fairseq_programs: ForkServer, words: Path, tmp_path: Path) -> None:
    """With gloo on the CPU, their batches and losses are those of one process that gathers two batches."""
    arguments = [*with_dropout(words), "--max-epoch", "2", "--dropout", "0"]
    # Stopped within the first epoch and resumed, they make the steps of one uninterrupted run.
    saved = [*arguments, "--save-dir", str(tmp_path / "model")]
    stopped = run_processes(fairseq_programs, [*saved, "--max-update", "5"], tmp_path)
    ended = run_processes(fairseq_programs, saved, tmp_path)
    ranks = [before + after for before, after in zip(stopped, ended, strict=True)]
    assert len(stopped[0]) == 5
    alone = fairseq_train([*arguments, "--update-freq", "2", "--no-save"])
    in_turn = [step for steps in zip(*ranks, strict=True) for step in steps]
    assert len(alone) > 10
    # If the number of batches is odd, the second process ends an epoch with a batch that does not count.
    counted: Iterator[Step] = (step for step in in_turn)
    for step in alone:
        other = next(counted)
        while other.ids != step.ids:
            other = next(counted)
        assert other[:3] == step[:3]
        assert other.loss == pytest.approx(step.loss, rel=1e-3)
    assert len(in_turn) - len(alone) <= 2


HYDRA = """
common: {{user_dir: {user_dir}, seed: 3, cpu: true, log_format: json}}
checkpoint: {{no_save: true}}
task: {{_name: translation_bpe_dropout, data: {data}, source_lang: en, target_lang: de, bpe_dropout_src: 0.3}}
dataset: {{max_tokens: 1200, num_workers: 1, disable_validation: true}}
criterion: {{_name: label_smoothed_cross_entropy, label_smoothing: 0.1}}
optimization: {{max_epoch: 2, lr: [0.01]}}
optimizer: {{_name: adam}}
lr_scheduler: {{_name: fixed}}
model:
  _name: transformer
  dropout: 0.1
  share_all_embeddings: true
  encoder: {{layers: 1, embed_dim: 16, ffn_embed_dim: 16, attention_heads: 2}}
  decoder: {{layers: 1, embed_dim: 16, ffn_embed_dim: 16, attention_heads: 2}}
"""


def test_a_hydra_configuration_trains_as_the_command_line_does(
    fairseq_programs: ForkServer, words: Path, tmp_path: Path
) -> None:
    """The task's options in it are used, and the others have their defaults: the losses are the same."""
    (tmp_path / "training.yaml").write_text(HYDRA.format(user_dir=user_dir(), data=words / "scaffold"))
    hydra = ["fairseq_cli.hydra_train", "--config-dir", str(tmp_path), "--config-name", "training"]
    options = [str(words / "scaffold"), "--user-dir", str(user_dir()), "-s", "en", "-t", "de", *MODEL, *ON_THE_FLY]
    options += ["--bpe-dropout-src", "0.3", "--max-epoch", "2", "--no-save", "--disable-validation", "--cpu"]
    said = []
    for command in (hydra, ["fairseq_cli.train", *options, "--log-format", "json"]):
        log = tmp_path / f"{command[0]}.log"
        fairseq_programs.wait(fairseq_programs.start(["-m", *command], tmp_path, log))
        said.append(log.read_text())
    epochs = [re.findall(r'"train_loss": "([\d.]+)".*?"train_wpb": "([\d.]+)"', each) for each in said]
    assert len(epochs[0]) == 2 and epochs[0] == epochs[1], said[0][-2000:]


RAW = ["Yu don't know Plack - undra, 3.5 (la) grea!", "Wem na loockmucked?"]


@pytest.fixture(scope="module", params=["bpe", "scaffold"])
def model(words: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder that can be passed on: checkpoint, dictionaries and codes."""
    folder = tmp_path_factory.mktemp("model")
    fairseq_train([str(words / request.param), *MODEL, *ON_THE_FLY, "--save-dir", str(folder), "--max-epoch", "1"])
    for name in ("dict.en.txt", "dict.de.txt", "bpe.codes"):
        (folder / name).write_bytes((words / request.param / name).read_bytes())
    return folder


def test_raw_text_goes_in_and_raw_text_comes_out(model: Path, tmp_path: Path) -> None:
    """fairseq-interactive, started in another folder, translates ordinary text and prints ordinary text."""
    from sacremoses import MosesDetokenizer

    command = [sys.executable, "-P", "-m", "fairseq_cli.interactive", str(model)]
    command += ["--path", str(model / "checkpoint_last.pt")]
    command += ["--user-dir", str(user_dir()), "--bpe", "scaffold_bpe", "--bpe-codes", str(model / "bpe.codes")]
    command += ["--tokenizer", "moses", "-s", "en", "-t", "de", "--cpu", "--max-len-b", "20", "--beam", "2"]
    done = subprocess.run(
        command, input="\n".join(RAW), capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "LC_ALL": "C"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = [line.split("\t") for line in done.stdout.splitlines()]
    sources = [fields[-1] for fields in said if fields[0].startswith("S-")]
    assert len(sources) == 2 and "@@" in sources[0]
    hypotheses = [fields[-1] for fields in said if fields[0].startswith("H-")]
    translations = [fields[-1] for fields in said if fields[0].startswith("D-")]
    for hypothesis, translation in zip(hypotheses, translations, strict=True):
        joined = (hypothesis + " ").replace("@@ ", "").strip()
        assert translation == MosesDetokenizer("de").detokenize(joined.split())


def test_the_hub_example_of_the_documentation_runs(model: Path, tmp_path: Path) -> None:
    """A reader can paste it and translate."""
    from fairseq.models.transformer import TransformerModel

    translator = TransformerModel.from_pretrained(
        str(model),
        checkpoint_file="checkpoint_last.pt",
        user_dir=str(user_dir()),
        bpe="scaffold_bpe",
        bpe_codes=str(model / "bpe.codes"),
        tokenizer="moses",
        source_lang="en",
        target_lang="de",
    )
    for sentence, translation in zip(RAW, translator.translate(RAW, beam=2), strict=True):
        assert isinstance(translation, str) and "@@" not in translation
        assert set(translator.encode(sentence).tolist()).isdisjoint({0, 1})
        assert translator.apply_bpe(translator.tokenize(sentence)).count("@@") > 0
    assert translator.decode(translator.encode(RAW[1])) == RAW[1]
    known = set(translator.src_dict.symbols)
    unseen = {form for form in BPE(model / "bpe.codes").surface_forms() if "@@" not in form} - known
    for word in unseen:
        parts = {*(f"{letter}@@" for letter in word[:-1]), word[-1]}
        assert translator.src_dict.unk() not in translator.encode(word).tolist() or not parts <= known, word


def test_fairseqs_bpe_segments_with_codes(tmp_path: Path) -> None:
    """As apply-bpe does."""
    from fairseq.data import Dictionary
    from fairseq.tasks import FairseqTask

    from mt_scaffold.experiment.fairseq_plugin.bpe import ScaffoldBPE, ScaffoldBPEConfig

    (tmp_path / "codes").write_text("#version: 0.2\nb c\na b\n")
    options = argparse.Namespace(bpe="scaffold_bpe", bpe_codes=str(tmp_path / "codes"), bpe_separator="@@")
    assert ScaffoldBPE(ScaffoldBPEConfig(bpe_codes=options.bpe_codes)).encode("abcd abe") == "a@@ bc@@ d ab@@ e"
    # The training text had ``ab`` at the end of a word only; what has no id is split further, to characters.
    dictionary = Dictionary()
    for symbol in ("a@@", "b@@", "ab", "c@@", "d"):
        dictionary.add_symbol(symbol)
    bpe = FairseqTask.build_bpe(types.SimpleNamespace(source_dictionary=dictionary), options)
    assert bpe.encode("abcd abe") == "a@@ b@@ c@@ d a@@ b@@ e"


def test_the_hub_interface_refuses_a_checkpoint_that_would_run_code(model: Path, tmp_path: Path) -> None:
    """fairseq alone would unpickle anything."""
    import torch
    from fairseq.models.transformer import TransformerModel

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    state = load_checkpoint(model / "checkpoint_last.pt")
    torch.save({**state, "more": Malicious(tmp_path / "owned")}, model / "evil.pt")
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        TransformerModel.from_pretrained(str(model), checkpoint_file="evil.pt", user_dir=str(user_dir()))
    assert not (tmp_path / "owned").exists()


def test_an_option_of_a_checkpoint_is_not_run_as_code(model: Path, tmp_path: Path) -> None:
    """fairseq evaluates some of the options with which it builds the model."""
    import torch
    from fairseq import utils
    from fairseq.models.transformer import TransformerModel

    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    assert utils.eval_str_list("[0.9, 1e-3]") == [0.9, 0.001] and utils.eval_str_list("[(2, 3)] * 2", tuple)
    assert utils.eval_bool("False") is False
    state = load_checkpoint(model / "checkpoint_last.pt")
    state["cfg"]["model"].adaptive_softmax_cutoff = f"[__import__('os').mkdir({str(tmp_path / 'owned')!r}) or 100]"
    torch.save(state, model / "options.pt")
    with pytest.raises(MTScaffoldError, match="holds code"):
        TransformerModel.from_pretrained(
            str(model), checkpoint_file="options.pt", user_dir=str(user_dir()), source_lang="en", target_lang="de"
        )
    assert not (tmp_path / "owned").exists()


def test_checkpoints_with_running_bleu_can_be_loaded(words: Path, tmp_path: Path) -> None:
    """``--eval-bleu`` stores its counts as arrays, which the safe loader must accept."""
    from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint

    arguments = [*with_dropout(words), "--save-dir", str(tmp_path), "--eval-bleu", "--eval-bleu-remove-bpe"]
    arguments += ["--eval-bleu-args", '{"beam": 1, "max_len_b": 5}', "--best-checkpoint-metric", "bleu"]
    fairseq_train([*arguments, "--maximize-best-checkpoint-metric", "--max-epoch", "1"])
    assert load_checkpoint(tmp_path / "checkpoint_last.pt")["model"]
    assert fairseq_train([*arguments, "--maximize-best-checkpoint-metric", "--max-epoch", "2"])


def test_missing_codes_are_reported() -> None:
    """The error is one line, not a traceback from Hydra."""
    from mt_scaffold.experiment.fairseq_plugin.bpe import ScaffoldBPE, ScaffoldBPEConfig

    with pytest.raises(UsageError, match="needs --bpe-codes FILE"):
        ScaffoldBPE(ScaffoldBPEConfig())


def test_the_commands_train_and_translate_accept_a_folder_of_words(words: Path, tmp_path: Path) -> None:
    """mt-scaffold train and translate choose the task themselves."""
    from mt_scaffold.experiment.inference.translate import translate
    from mt_scaffold.experiment.training.train import train

    data = tmp_path / "data"
    store(data, words / "train", words / "valid", words / "scaffold.codes", words / "valid.x")
    assert train(data, tmp_path / "model", [*MODEL[:-2], "--max-epoch", "1", "--bpe-dropout", "0.1"]).epochs == 1
    checkpoint = tmp_path / "model" / "checkpoints" / "checkpoint_last.pt"
    translations = translate(data, "valid.x", checkpoint, tmp_path, ["--beam", "1", "--max-len-b", "10"])
    assert len(translations) == 30
