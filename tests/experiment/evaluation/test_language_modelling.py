"""Language models: documents to ids, bits per byte against computations by hand, errors in one line."""

import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from conftest import replace_checkpoint
from fairseq_training import fairseq_train
from language_models import POSITIONS, TINY_LM, binarise, documents_of, learn_codes

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import itertools

import numpy as np
import torch

from mt_scaffold import learn_bpe
from mt_scaffold.cli import main
from mt_scaffold.corpus.count import write_counts
from mt_scaffold.corpus.pretokenise import Pretokeniser
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.binarise.data_folder import id_type, read_documents_folder, read_ids, text_offsets
from mt_scaffold.experiment.binarise.documents import binarise_documents
from mt_scaffold.experiment.evaluation.bits_per_byte import Evaluation, LanguageModelScores, _windows, evaluate
from mt_scaffold.experiment.evaluation.losses.loss_split import LossSplit
from mt_scaffold.experiment.inference.language_model import batches, load_model
from mt_scaffold.experiment.runtime.checkpoints import load_checkpoint
from mt_scaffold.experiment.runtime.results import read_result
from mt_scaffold.experiment.training.train import train

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def text(documents: Path) -> Path:
    return documents


@pytest.fixture(scope="module")
def codes(text: Path) -> Path:
    return text / "codes"


@pytest.fixture(scope="module")
def test_data(text: Path, codes: Path) -> Path:
    return binarise(text, "test-data", codes, ["test"])


@pytest.fixture(scope="module")
def data(text: Path, codes: Path) -> Path:
    return binarise(text, "data", codes)


@pytest.fixture(scope="module")
def checkpoint(text: Path, data: Path) -> Path:
    """A model after 12 updates: no longer uniform, not yet good."""
    arguments = [str(data), *TINY_LM, "--task", "language_modeling_resumable", "--seed", "3", "--max-update", "12"]
    fairseq_train([*arguments, "--save-dir", str(text / "model"), "--disable-validation"])
    return text / "model" / "checkpoint_last.pt"


@pytest.mark.parametrize("kind", ["scaffold", "bpe"])
def test_the_ids_of_a_folder_are_the_raw_documents(text: Path, codes: Path, tmp_path: Path, kind: str) -> None:
    """The ids restore every byte of every document, and each ends in </s>."""
    if kind == "bpe":
        codes = learn_codes(text, "bpe-codes", algorithm="bpe")
    described = binarise_documents(tmp_path / "data", codes, [text / "train"], test=[text / "test"], num_workers=2)
    vocabulary = Vocabulary(codes)
    for split in ("train", "test"):
        ids, offsets = read_ids(tmp_path / "data" / split)
        each = [ids[begin:end].tolist() for begin, end in itertools.pairwise(offsets)]
        documents = documents_of(text / split)
        assert [vocabulary.decode(document) for document in each] == documents
        assert all(document[-1] == 2 and min(document[:-1]) > 3 for document in each)
        assert ids.dtype == np.uint16 and max(map(max, each)) < 4 + described.n_vocab <= described.symbols
        found = described.splits[split]
        assert (found.documents, found.bytes, found.tokens) == (len(documents), sum(map(len, documents)), len(ids))
        assert np.diff(text_offsets(tmp_path / "data", split)).tolist() == list(map(len, documents))
    assert read_documents_folder(tmp_path / "data") == described and described.symbols % 8 == 0


def test_fairseq_reads_the_dictionary_and_the_ids(text: Path, tmp_path: Path) -> None:
    """A token spelled like one of fairseq's symbols has a separate id, and fairseq's keep theirs."""
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    (tmp_path / "train").write_bytes(b"</s> </s> <s> <s> <pad> <pad> madeupword0000 madeupword0000\n" * 3)
    learn_bpe(tmp_path / "train", tmp_path / "codes", 40, pretokenise=r"\S+", algorithm="bpe")
    vocabulary = Vocabulary(tmp_path / "codes")
    assert {b"</s>", b"<s>", b"<pad>"} <= set(vocabulary.tokens)
    described = binarise_documents(tmp_path / "data", tmp_path / "codes", [tmp_path / "train"])
    dictionary = Dictionary.load(str(tmp_path / "data" / "dict.txt"))
    assert len(dictionary) == described.symbols and len(dictionary) % 8 == 0
    assert (dictionary.bos(), dictionary.pad(), dictionary.eos(), dictionary.unk()) == (0, 1, 2, 3)
    names = [dictionary[number] for number in range(4, 4 + len(vocabulary.tokens))]
    assert names[ord("<")] == "<" and names[0] == "Ā" and names[vocabulary.tokens.index(b"<s>")] == "<s>"
    ids, offsets = read_ids(tmp_path / "data" / "train")
    stored = MMapIndexedDataset(str(tmp_path / "data" / "train"))
    documents = np.split(ids, offsets[1:-1])
    assert [stored[number].tolist() for number in range(3)] == [document.tolist() for document in documents]
    assert dictionary.count[4:] == np.bincount(ids, minlength=len(dictionary)).tolist()[4:]
    assert (id_type(1 << 16), id_type((1 << 16) + 1)) == ("<u2", "<u4")


def test_a_test_set_of_its_own_has_the_dictionary_of_the_training_data(text: Path, test_data: Path, data: Path) -> None:
    """Except for the counts: the ids must mean the same to a model."""
    own, trained = (
        [line.split(" ")[0] for line in (folder / "dict.txt").read_text(encoding="utf-8").splitlines()]
        for folder in (test_data, data)
    )
    assert own == trained and own[-1].startswith("madeupword")
    described = [read_documents_folder(folder) for folder in (test_data, data)]
    assert described[0].vocabulary == described[1].vocabulary == Vocabulary(text / "codes").digest


@pytest.fixture(scope="module")
def scores(checkpoint: Path, test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> LanguageModelScores:
    return evaluate(
        checkpoint, test_data, tmp_path_factory.mktemp("scores") / "scores.json", settings=Evaluation(context_window=8)
    )


def by_hand(checkpoint: Path, data: Path, context: int, numbers: Sequence[int]) -> list[float]:
    """The bits of some documents: one softmax per token, given what the model may see of the document before it."""
    model = load_model(checkpoint, data, read_documents_folder(data)).model
    ids, offsets = read_ids(data / "test")
    bits = []
    for number in numbers:
        document = ids[offsets[number] : offsets[number + 1]].astype(np.int64)
        inputs = [2, *document[:-1].tolist()]
        total = 0.0
        for place, token in enumerate(document.tolist()):
            late = max(0, place - POSITIONS) // (POSITIONS - context) + 1 if place >= POSITIONS else 0
            begin = late * (POSITIONS - context)
            assert place < POSITIONS or context <= place - begin < POSITIONS
            with torch.no_grad():
                logits = model(torch.tensor([inputs[begin : place + 1]]))[0][0, -1].double().numpy()
            total -= math.log2(math.exp(logits[token]) / np.exp(logits).sum())
        bits.append(total)
    return bits


def test_bits_are_those_of_one_softmax_per_token(
    checkpoint: Path, test_data: Path, scores: LanguageModelScores, tmp_path: Path
) -> None:
    """Batches, windows and padding change nothing but the last digits; long documents are there."""
    lengths = np.diff(read_ids(test_data / "test")[1]).tolist()
    long = min(length for length in lengths if length > 2 * POSITIONS)
    numbers = [lengths.index(min(lengths)), lengths.index(long)]
    assert min(lengths) < POSITIONS
    other = evaluate(checkpoint, test_data, tmp_path / "one.json", settings=Evaluation(context_window=0, max_tokens=1))
    for found, context in ((scores, 8), (other, 0)):
        bits = [found.by_document.bits[number] for number in numbers]
        assert bits == pytest.approx(by_hand(checkpoint, test_data, context, numbers), rel=1e-5)
    assert scores.signature.startswith("bpb|end:yes|positions:32|context:8|")
    assert scores.bits != pytest.approx(other.bits, rel=1e-7), "the overlap must reach the model"


def test_the_documents_add_up(text: Path, scores: LanguageModelScores, test_data: Path) -> None:
    """Bits per byte is a ratio of sums, divided by the raw bytes."""
    documents = documents_of(text / "test")
    assert scores.by_document.bytes == [len(document) for document in documents]
    assert scores.bits == math.fsum(scores.by_document.bits)
    assert scores.bits_per_byte == scores.bits / sum(map(len, documents))
    assert scores.tokens == len(read_ids(test_data / "test")[0])
    assert scores.perplexity_per_token == pytest.approx(2 ** (scores.bits / scores.tokens))
    assert "not comparable between vocabularies" in scores.note


def test_the_loss_divides_by_word_and_token(
    checkpoint: Path, text: Path, test_data: Path, scores: LanguageModelScores, tmp_path: Path
) -> None:
    """Classes are those of the counted words, and every partition adds up to each document's bits."""
    counts = tmp_path / "words.counts"
    write_counts(counts, text / "train", pretokenise="gpt2")
    command = ["evaluate", "--checkpoint", str(checkpoint), "--data", str(test_data), "--context-window", "8"]
    command += ["--output", str(tmp_path / "scores.json")]
    assert main([*command, "--counts", str(counts)]) == 2
    assert main([*command, "--counts", str(counts), "--losses", str(tmp_path / "losses.json")]) == 0
    found = read_result(LossSplit, tmp_path / "losses.json")
    assert found.bits == scores.bits
    documents = documents_of(text / "test")
    for parts in (found.by_rank, found.by_count):
        assert np.sum([part.bits for part in parts.values()], axis=0) == pytest.approx(scores.by_document.bits)
        assert np.sum([part.bytes for part in parts.values()], axis=0).tolist() == [len(each) for each in documents]
    trained = Counter(word for each in documents_of(text / "train") for word in Pretokeniser("gpt2").split(each))
    unseen = [word for each in documents for word in Pretokeniser("gpt2").split(each) if word not in trained]
    assert unseen and sum(found.by_count["0"].words) == len(unseen)
    assert sum(found.by_count["0"].bytes) == sum(map(len, unseen)) and found.by_rank["end"].words == [1] * len(
        documents
    )
    ids, _ = read_ids(test_data / "test")
    assert sum(found.tokens.occurrences) == len(ids) and math.fsum(found.tokens.bits) == pytest.approx(found.bits)


def test_a_test_set_without_the_last_tokens(checkpoint: Path, text: Path, codes: Path, tmp_path: Path) -> None:
    """Ids that do not occur in a test set are still in the vocabulary."""
    (tmp_path / "short").write_bytes(b"a\n")
    binarise_documents(tmp_path / "data", codes, test=[tmp_path / "short"])
    write_counts(tmp_path / "words.counts", text / "train", pretokenise="gpt2")
    split = {"counts": tmp_path / "words.counts", "losses": tmp_path / "losses.json"}
    evaluate(checkpoint, tmp_path / "data", tmp_path / "scores.json", **split)  # type: ignore[arg-type]
    found = read_result(LossSplit, tmp_path / "losses.json")
    assert sum(sum(part.words) for part in found.by_rank.values()) == 2


def test_words_between_spaces_are_refused(checkpoint: Path, text: Path, test_data: Path, tmp_path: Path) -> None:
    """Spaces belong to no word there, so losses cannot be split by word."""
    write_counts(tmp_path / "words.counts", text / "train", byte_level=True)
    split = {"counts": tmp_path / "words.counts", "losses": tmp_path / "losses.json"}
    with pytest.raises(MTScaffoldError, match="counts of words between spaces; count those of a pre-tokeniser"):
        evaluate(checkpoint, test_data, tmp_path / "scores.json", **split)  # type: ignore[arg-type]


def test_fairseq_eval_lm_gives_the_same(
    checkpoint: Path, test_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loss per token, times the tokens, over documents that fit into the model's positions."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq_cli import eval_lm

    short = tmp_path / "short"
    short.write_bytes(b"".join(each[:20] + b"\n" for each in documents_of(test_data.parent / "test")))
    binarise_documents(tmp_path / "data", test_data.parent / "codes", test=[short])
    # fairseq's code for one document per sample asks for a name that NumPy 2 no longer has.
    monkeypatch.setattr(np, "compat", SimpleNamespace(long=int), raising=False)
    arguments = [str(tmp_path / "data"), "--path", str(checkpoint), "--gen-subset", "test", "--cpu"]
    arguments += ["--task", "language_modeling", "--sample-break-mode", "eos", "--no-progress-bar"]
    with mock.patch.object(sys, "argv", ["fairseq-eval-lm"]):
        parsed = options.parse_args_and_arch(options.get_eval_lm_parser(), arguments)
    results = eval_lm.main(convert_namespace_to_omegaconf(parsed))
    ours = evaluate(checkpoint, tmp_path / "data", tmp_path / "scores.json")
    assert ours.bits == pytest.approx(float(results["loss"]) * ours.tokens, rel=1e-5)


def test_scores_are_written_and_shown(
    checkpoint: Path, test_data: Path, scores: LanguageModelScores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file holds the returned scores; the command marks those that cannot be compared."""
    command = ["evaluate", "--checkpoint", str(checkpoint), "--data", str(test_data), "--context-window", "8"]
    assert main([*command, "--output", str(tmp_path / "scores.json"), "--system", "scaffold", "--seed", "3"]) == 0
    read = read_result(LanguageModelScores, tmp_path / "scores.json")
    assert (read.system, read.seed, read.test_set) == ("scaffold", 3, "test-data")
    assert read.by_document == scores.by_document
    shown = capsys.readouterr().out
    assert f"bits per byte: {scores.bits_per_byte:.4f}  bpb|" in shown and "not comparable between vocab" in shown


def other_vocabulary(text: Path) -> Path:
    return learn_codes(text, "other-codes", symbols=59)


@pytest.mark.parametrize("broken", ["truncated", "code", "translation", "vocabulary", "size", "split", "window", "idx"])
def test_what_cannot_be_evaluated_is_said_in_one_line(
    text: Path, checkpoint: Path, test_data: Path, tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and no code of a checkpoint runs."""
    model, data, more = tmp_path / "model.pt", test_data, []
    state = load_checkpoint(checkpoint)
    if broken == "truncated":
        model.write_bytes(checkpoint.read_bytes()[:-1000])
    elif broken == "code":
        torch.save({"model": {}, "args": _Calls(tmp_path / "called")}, model)
    elif broken == "translation":
        state["cfg"]["task"]["_name"] = "translation"
    elif broken == "vocabulary":
        data = binarise(text, "other-vocabulary", other_vocabulary(text), ["test"])
    elif broken == "size":
        state["task_state"] = {}
        data = tmp_path / "padded"
        binarise_documents(data, text / "codes", test=[text / "test"], padding_factor=128)
    elif broken == "split":
        more = ["--split", "train"]
    elif broken == "window":
        more = ["--context-window", str(POSITIONS)]
    else:
        data = tmp_path / "damaged"
        binarise_documents(data, text / "codes", test=[text / "test"])
        (data / "test.idx").write_bytes((data / "test.idx").read_bytes()[:-8])
    if not model.exists():
        replace_checkpoint(state, model)
    command = ["evaluate", "--checkpoint", str(model), "--data", str(data), "--output", str(tmp_path / "scores.json")]
    assert main([*command, *more]) == (2 if broken in ("split", "window") else 1)
    says = {
        "truncated": "not a complete checkpoint",
        "code": "could run code",
        "translation": "a model of the task translation",
        "vocabulary": "was trained with another vocabulary",
        "size": "its embeddings do not fit the dictionary",
        "split": "no split called train; choose one of test",
        "window": "--context-window 32: the model has 32 positions; give 0 to 31",
        "idx": "test.idx: incomplete",
    }
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert says[broken] in line
    assert not (tmp_path / "scores.json").exists() and not (tmp_path / "called").exists()


def test_files_of_two_folders_are_not_evaluated_together(text: Path, codes: Path, tmp_path: Path) -> None:
    """The bits of one text divided by the bytes of another would look like a score."""

    texts = {"few": b"one\ntwo\n", "short": b"a\n" * len(documents_of(text / "test"))}
    for name, content in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_bytes(content)
        binarise_documents(tmp_path / name / "data", codes, test=[tmp_path / name / "text"])
    binarise_documents(tmp_path / "whole", codes, test=[text / "test"])
    for other, names in (
        ("few", ["test.offsets.npy"]),
        ("few", ["test.bin", "test.idx"]),
        ("few", ["binarised.json"]),
        ("short", ["test.bin", "test.idx"]),
    ):
        data = shutil.copytree(tmp_path / "whole", tmp_path / f"{other}-{names[0]}")
        for name in names:
            shutil.copy(tmp_path / other / "data" / name, data)
        with pytest.raises(MTScaffoldError, match="test: its files do not belong together"):
            evaluate(tmp_path / "no.pt", data, tmp_path / "scores.json")


def test_a_batch_has_no_more_tokens_than_asked_for() -> None:
    """Padding counts, as it takes memory too; a single window may be longer."""
    windows = [window for number, size in enumerate((4, 4, 4, 2, 9)) for window in _windows(number, size, 4, 0)]
    for most, sizes in ((8, [2, 2, 2, 1]), (11, [2, 2, 2, 1]), (12, [3, 3, 1]), (3, [1] * 7)):
        assert [len(batch) for batch in batches(windows, lambda window: window.end - window.begin, most)] == sizes


class _Calls:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--codes codes --output data", "nothing to binarise"),
        ("--codes codes --train empty --output data", "empty: no document with any text; every split needs one"),
        ("--codes characters --train train --output data", "only codes of bytes after a pre-tokeniser have ids"),
        ("--codes codes --train train missing --output data", "missing: No such file or directory"),
        ("--codes codes --train train --padding-factor 0 --output data", "must be 1 or more"),
        ("--codes codes --train train --output full", "holds something else"),
    ],
)
def test_what_cannot_be_binarised_leaves_nothing(
    text: Path,
    codes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    says: str,
) -> None:
    """One line, and no folder that a training would treat as complete."""
    for name in ("train", "test", "codes"):
        (tmp_path / name).write_bytes((text / name).read_bytes())
    (tmp_path / "empty").write_bytes(b"\n\n")
    (tmp_path / "characters").write_text("#version: 0.2\na b\n", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["binarise-documents", *arguments.split()]) in (1, 2)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert says in line
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"train", "test", "codes", "empty", "characters", "full"}


def test_an_adaptive_softmax_gives_probabilities_too(data: Path, test_data: Path, tmp_path: Path) -> None:
    """Its clusters are normalised separately."""
    options = [option for option in TINY_LM if option != "--share-decoder-input-output-embed"]
    options[options.index("cross_entropy")] = "adaptive_loss"
    arguments = [str(data), *options, "--adaptive-softmax-cutoff", "40,200", "--ddp-backend", "legacy_ddp"]
    arguments += ["--task", "language_modeling_resumable", "--max-update", "2", "--save-dir", str(tmp_path)]
    fairseq_train([*arguments, "--disable-validation"])
    checkpoint = tmp_path / "checkpoint_last.pt"
    found = evaluate(checkpoint, test_data, tmp_path / "scores.json")
    model = load_model(checkpoint, test_data, read_documents_folder(test_data)).model
    ids, offsets = read_ids(test_data / "test")
    document = ids[: offsets[1]].astype(np.int64)
    assert len(document) < POSITIONS
    with torch.no_grad():
        scores = model.get_normalized_probs(model(torch.tensor([[2, *document[:-1]]])), log_probs=True)[0].double()
    assert scores.exp().sum(1).tolist() == pytest.approx([1.0] * len(document), rel=1e-5)
    bits = -sum(float(row[token]) for row, token in zip(scores, document, strict=True)) / math.log(2)
    assert found.by_document.bits[0] == pytest.approx(bits, rel=1e-5)


def test_translation_folders_and_language_model_folders_are_told_apart(tiny_data: Path, test_data: Path) -> None:
    """Each step says what it was given instead of failing within fairseq."""
    with pytest.raises(
        MTScaffoldError, match="holds sentence pairs for translation; make a folder with mt-scaffold bi"
    ):
        read_documents_folder(tiny_data)
    with pytest.raises(MTScaffoldError, match=r"no training set in this folder \(it has test\)"):
        train(test_data, test_data.parent / "none", TINY_LM)
    with pytest.raises(UsageError, match="gpus"):
        evaluate(test_data, test_data, test_data.parent / "none.json", settings=Evaluation(gpus=2))


def test_the_commands_load_no_pytorch_to_say_no() -> None:
    """A wrong option is reported at once."""
    program = "import sys; from mt_scaffold.cli import main\n"
    program += "try: main(['evaluate', '--nonsense'])\nexcept SystemExit: pass\n"
    program += "print(sorted({'torch', 'fairseq'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
