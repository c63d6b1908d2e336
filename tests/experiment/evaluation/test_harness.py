"""lm-evaluation-harness on our language models: its figures against likelihoods computed directly from logits."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

pytest.importorskip("lm_eval", reason="needs the extra 'harness'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

import torch
from fairseq_training import fairseq_train
from language_models import POSITIONS, TINY_LLAMA, binarise, documents_of, learn_codes, write_documents
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from scipy.special import stdtr

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.byte_vocabulary import Vocabulary
from mt_scaffold.experiment.evaluation import lm_eval_model
from mt_scaffold.experiment.evaluation.compare import compare
from mt_scaffold.experiment.evaluation.lm_eval import Asking, HarnessScores, as_line, run_harness
from mt_scaffold.experiment.evaluation.lm_eval_model import HarnessModel
from mt_scaffold.experiment.inference.export_transformers import export_transformers
from mt_scaffold.experiment.runtime.results import read_result

END = 2
QUESTIONS = [
    {"text": "Wer backt das Brot?", "choices": ["der Arzt", "die Frau", "das Brot"], "answer": 1},
    {"text": "Ein Haus steht", "choices": ["dort", "am See und am Fluss", "zu"], "answer": 0},
    {"text": "Kinder " * 30 + "spielen", "choices": ["im Garten", "draußen"], "answer": 1},
    {"text": "", "choices": ["Ja", "Nein"], "answer": 0},
    {"text": "The answer is", "choices": ["yes", "no", "\u65e5\u672c"], "answer": 2},
]
YAML = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
metadata:
  version: 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model after 12 updates and after 6, the folder it was trained on, and a task of five questions."""
    found = tmp_path_factory.mktemp("harness")
    write_documents(found)
    with open(found / "test", "a", encoding="utf-8") as stream:
        stream.write("Ein Haus.\nKinder am See\n" + "Das Kind und der Hund gehen an den Fluss. " * 6 + "\n")
    codes = learn_codes(found, "codes", 100)
    data = binarise(found, "data", codes, ["train", "valid", "test"])
    options = [*TINY_LLAMA, "--task", "language_modeling_resumable", "--seed", "3", "--max-update", "12"]
    saving = ["--save-dir", str(found / "model"), "--save-interval-updates", "6", "--disable-validation"]
    fairseq_train([str(data), *options, *saving])
    (found / "tasks").mkdir()
    (found / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in QUESTIONS), encoding="utf-8")
    yaml = YAML.format(name="local_questions", data=found / "questions.jsonl")
    (found / "tasks" / "local_questions.yaml").write_text(yaml, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def checkpoints(folder: Path) -> list[Path]:
    found = sorted((folder / "model").glob("checkpoint_*_*.pt"))
    assert len(found) == 2
    return found


class ByHand:
    """Likelihoods from the whole model's logits, one text at a time, without padding, parts or a state."""

    def __init__(self, checkpoint: Path, data: Path) -> None:
        from fairseq import checkpoint_utils

        self.model = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})[0][0].eval()
        self.vocabulary = Vocabulary(data / "bpe.codes")
        # The rows of the dictionary that an exported model has.
        self.kept = torch.zeros(self.model.decoder.model.config.vocab_size, dtype=torch.bool)
        self.kept[[1, END, *range(4, 4 + len(self.vocabulary.tokens))]] = True

    def ids(self, text: str) -> list[int]:
        ids: list[int] = self.vocabulary.encode([text.encode()])[0][:-1].tolist()
        return ids

    def scores(self, row: list[int]) -> torch.Tensor:
        with torch.no_grad():
            logits = self.model(torch.tensor([row]))[0][0].double()
        return torch.log_softmax(logits.masked_fill(~self.kept, -math.inf), dim=1)

    def likelihood(self, context: str, continuation: str) -> float:
        """Return the sum of log p of the tokens after the context's, within the last POSITIONS + 1 tokens of both."""
        before, whole = self.ids(context), [END, *self.ids(context + continuation)]
        after = len(whole) - 1 - len(before)
        row = whole[-(POSITIONS + 1) :]
        scores = self.scores(row[:-1])
        places = range(len(row) - 1 - after, len(row) - 1)
        return math.fsum(scores[place, row[place + 1]].item() for place in places)


def test_a_local_task_gives_the_figures_computed_by_hand(
    folder: Path, checkpoints: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Accuracies and each choice's log-likelihood are those of the logits, also with the harness's own hf model.

    One context is longer than the model.
    """
    from lm_eval.models.huggingface import HFLM

    data, output = folder / "data", folder / "scores.json"
    arguments = ["--data", str(data), "--tasks", "local_questions", "--include-path", str(folder / "tasks")]
    arguments += ["--checkpoint", *map(str, checkpoints), "--batch-size", "4"]
    assert main(["lm-eval", *arguments, "--output", str(output)]) == 0

    requests = [
        instance("loglikelihood", question["text"], f" {choice}")
        for question in QUESTIONS
        for choice in question["choices"]  # type: ignore[attr-defined]
    ]
    answers: dict[str, list[str]] = {"acc": [], "acc_norm": []}
    for checkpoint in checkpoints:
        model = ByHand(checkpoint, data)
        expected = [model.likelihood(*map(str, request.args)) for request in requests]
        exported = folder / checkpoint.stem
        export_transformers(checkpoint, data, exported)
        plain = HFLM(str(exported), dtype="float32", batch_size=2, device="cpu")
        for asked in (HarnessModel(checkpoint, data, 4), plain):
            assert [found[0] for found in asked.loglikelihood(requests)] == pytest.approx(expected, abs=1e-4)
        assert len(set(expected)) == len(expected)
        for metric in answers:
            values, right = iter(expected), []
            for question in QUESTIONS:
                lengths = [len(choice) if metric == "acc_norm" else 1 for choice in question["choices"]]  # type: ignore[attr-defined]
                of_choices = [next(values) / length for length in lengths]
                right.append(float(of_choices.index(max(of_choices)) == question["answer"]))
            answers[metric].append(as_line(right))
    scores, printed = read_result(HarnessScores, output), capsys.readouterr().out
    assert scores.questions[0].answers == answers
    for metric in answers:
        mean = fmean(value for line in scores.questions[0].values(metric) for value in line)
        assert re.search(rf"^local_questions +0-shot +{metric} +{mean:.4f}$", printed, re.MULTILINE)
    assert scores.task_versions == {"local_questions": "3"} and "lm_eval" in scores.versions
    assert len(model.ids(str(QUESTIONS[2]["text"]))) > POSITIONS
    # Both choices of that question.
    assert scores.shortened == {"local_questions, 0 solved": 2}


def instance(kind: Any, *arguments: object) -> Instance:
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def test_rolling_likelihoods_start_from_one_end(folder: Path, checkpoints: list[Path]) -> None:
    """A document is scored from one ``<|endoftext|>``, and its end does not count."""
    data = folder / "data"
    model = ByHand(checkpoints[1], data)
    texts = [document.decode() for document in documents_of(folder / "test") if b"\xff" not in document]
    kept = [number for number, text in enumerate(texts) if len(model.ids(text)) < POSITIONS]
    assert len(kept) >= 2
    found = HarnessModel(checkpoints[1], data, batch_size=3).loglikelihood_rolling(
        [instance("loglikelihood_rolling", text) for text in texts]
    )
    for number in kept:
        row = [END, *model.ids(texts[number])]
        expected = math.fsum(model.scores(row[:-1])[place, following].item() for place, following in enumerate(row[1:]))
        assert found[number] == pytest.approx(expected, rel=1e-5)
    # A longer text: windows that share one token, the last one as long as the model allows.
    long = max(texts, key=len)
    assert not HarnessModel(checkpoints[1], data).is_cut((long,))
    ids = [END, *model.ids(long)]
    assert len(ids) > 3 * POSITIONS
    expected = 0.0
    for begin in range(0, len(ids) - 1, POSITIONS):
        end = min(begin + POSITIONS, len(ids) - 1)
        scores = model.scores(ids[end - POSITIONS : end])
        expected += sum(scores[place - end, ids[place + 1]].item() for place in range(begin, end))
    assert found[texts.index(long)] == pytest.approx(expected, rel=1e-5)


def test_requests_at_the_edges(folder: Path, checkpoints: list[Path]) -> None:
    """A continuation that merges into the context is scored by itself, and one that is too long is refused."""
    data = folder / "data"
    model, hand = HarnessModel(checkpoints[0], data), ByHand(checkpoints[0], data)
    merged = next(token for token in hand.vocabulary.tokens[256:] if token.isascii() and token.isalpha()).decode()
    context, rest = merged[:-1], merged[-1]
    if len(hand.ids(context)) > 1:
        context, rest = merged[0], merged[1]
    assert len(hand.ids(context + rest)) == 1
    found = model.loglikelihood([instance("loglikelihood", context, rest)])
    row = [END, *hand.ids(context), *hand.ids(rest)]
    assert found[0][0] == pytest.approx(hand.scores(row[:-1])[-1, row[-1]].item(), abs=1e-4)
    with pytest.raises(UsageError, match="positions"):
        model.loglikelihood([instance("loglikelihood", "Ein", " Haus" * 100)])


def test_generation_is_greedy_up_to_a_stop(folder: Path, checkpoints: list[Path]) -> None:
    """Each token is the likeliest one after all before it, whatever other requests are in the batch."""
    data = folder / "data"
    model, hand = HarnessModel(checkpoints[1], data, batch_size=3), ByHand(checkpoints[1], data)
    most = 7
    long = "Das Kind und der Hund und das Haus und die Katze am"
    contexts, written = [], []
    for context in ("Ein Haus", long, "x", f"{long} Fluss", "Kinder"):
        ids = [END, *hand.ids(context)][-(POSITIONS - most + 1) :]
        start, margin = len(ids), math.inf
        while len(ids) < start + most:
            scores = hand.scores(ids)[-1]
            (best, second), (likeliest, _) = scores.topk(2)
            margin = min(margin, float(best - second))
            if (token := int(likeliest)) == END:
                break
            ids.append(token)
        # Two nearly equal tokens would make the text depend on the processor.
        if margin > 1e-4:
            contexts.append(context)
            written.append(hand.vocabulary.decode(ids[start:]).decode("utf-8", "replace"))
    assert len(contexts) >= 3
    options: dict[str, Any] = {"until": ["\n\n"], "max_gen_toks": most}
    assert model.generate_until([instance("generate_until", text, options) for text in contexts]) == written
    longest = max(written, key=len)
    stop = longest[2:4]
    stopped = options | {"until": ["\u65e5", stop]}
    (cut,) = model.generate_until([instance("generate_until", contexts[written.index(longest)], stopped)])
    assert cut == longest[: longest.index(stop)]


def test_a_task_that_fixes_its_shots_is_run_once(folder: Path, checkpoints: list[Path]) -> None:
    """With --num-fewshot 0 1 it has one value per checkpoint, and its questions are asked once; others have both."""
    (folder / "fixed").mkdir()
    for name, end in (("fixed_shots", "num_fewshot: 0\n"), ("free_shots", "fewshot_split: test\n")):
        yaml = YAML.format(name=name, data=folder / "questions.jsonl") + end
        (folder / "fixed" / f"{name}.yaml").write_text(yaml, encoding="utf-8")
    found = run_harness(
        checkpoints[:1],
        folder / "data",
        folder / "fixed.json",
        Asking(["fixed_shots", "free_shots"], num_fewshot=(0, 1), include_path=[folder / "fixed"], limit=2),
    )
    runs = {(each.task, each.num_fewshot): len(each.answers["acc"]) for each in found.questions}
    assert runs == {("fixed_shots", 0): 1, ("free_shots", 0): 1, ("free_shots", 1): 1}
    # Nothing is left to run with five.
    options: dict[str, Any] = {"num_fewshot": (0, 5), "include_path": [folder / "fixed"], "limit": 2}
    found = run_harness(checkpoints[:1], folder / "data", folder / "alone.json", Asking(["fixed_shots"], **options))
    assert [len(values) for each in found.questions for values in each.answers.values()] == [1, 1]


def test_data_that_are_not_here(folder: Path, checkpoints: list[Path]) -> None:
    """One line names the missing data or folder, and nothing is written: no task is left out."""
    yaml = YAML.format(name="absent", data=folder / "absent.jsonl")
    (folder / "more").mkdir()
    (folder / "more" / "absent.yaml").write_text(yaml, encoding="utf-8")
    output = folder / "absent.json"
    asking = Asking(["local_questions", "absent"], include_path=[folder / "tasks", folder / "more"])
    with pytest.raises(MTScaffoldError, match=r"task absent: cannot be loaded \(.*absent\.jsonl"):
        run_harness(checkpoints[:1], folder / "data", output, asking)
    with pytest.raises(MTScaffoldError, match="no such folder"):
        run_harness(checkpoints[:1], folder / "data", output, Asking(["absent"], include_path=[folder / "none"]))
    assert not output.exists()


class Invented(LM):  # type: ignore[misc]  # lm_eval has no types
    """A model with invented likelihoods: it prefers the right choice if the question ends in a word of ``likes``."""

    def __init__(self, likes: str) -> None:
        super().__init__()
        self.likes = likes.split()

    def is_cut(self, arguments: object) -> bool:
        return False

    def loglikelihood(self, requests: list[Instance], **options: object) -> list[tuple[float, bool]]:
        found = []
        for request in requests:
            context, continuation = (str(part) for part in request.args)
            right = "right" in continuation
            # Also per character, so that acc and acc_norm agree.
            a_character = -2.0 if not right else -1.0 if context.split()[-1] in self.likes else -9.0
            found.append((a_character * len(continuation) if right else a_character * 8, False))
        return found

    def loglikelihood_rolling(self, requests: list[Instance], **options: object) -> list[float]:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance], **options: object) -> list[str]:
        raise NotImplementedError


def invented_tasks(folder: Path) -> None:
    """Write two tasks, ``north`` of eight questions and ``south`` of six; the right choice is the longer one."""
    folder.mkdir()
    for task, count in (("north", 8), ("south", 6)):
        questions = [
            {"text": f"{task} q{number}", "choices": ["wrong", "the right one"], "answer": 1} for number in range(count)
        ]
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        (folder / f"{task}.jsonl").write_text(lines, encoding="utf-8")
        yaml = YAML.format(name=task, data=folder / f"{task}.jsonl")
        (folder / f"{task}.yaml").write_text(yaml, encoding="utf-8")


# The questions that the models of two systems know, by seed.
KNOWN = {
    "bpe": ("q0 q1", "q0 q1 q2", "q0"),
    "scaffold": ("q0 q1 q2 q3 q4", "q0 q1 q2 q4", "q0 q1 q2 q3 q4 q5"),
}


def test_models_with_invented_likelihoods_come_to_a_known_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks, three models of each of two systems: what each knows decides accuracies, differences, p and Holm."""
    invented_tasks(tmp_path / "tasks")
    monkeypatch.setattr(lm_eval_model, "HarnessModel", lambda path, *_: Invented(Path(path).read_text()))
    files = []
    for system, several in KNOWN.items():
        for seed, known in enumerate(several, start=1):
            checkpoint = tmp_path / f"{system}-{seed}.pt"
            checkpoint.write_text(known)
            path = tmp_path / f"{system}-{seed}.json"
            found = run_harness(
                [checkpoint],
                "data",
                path,
                Asking(["north", "south"], include_path=[tmp_path / "tasks"]),
                system=system,
                seed=seed,
            )
            answers = {each.task: each.answers for each in found.questions}
            right = [f"q{number}" in known.split() for number in range(8)]
            assert answers["north"]["acc"] == [" ".join(str(int(each)) for each in right)]
            assert answers["south"]["acc"] == [" ".join(str(int(each)) for each in right[:6])]
            files.append(path)
    comparison = compare(files, "bpe", samples=4000)
    for task, count in (("north", 8), ("south", 6)):
        expected = {
            system: [100 * len(set(known.split())) / count for known in several] for system, several in KNOWN.items()
        }
        rows = {row.system: row for row in comparison.rows if row.test_set == f"{task} acc_norm"}
        for system, values in expected.items():
            assert list(rows[system].scores["answers"].by_seed.values()) == pytest.approx(values)
        difference = fmean(expected["scaffold"]) - fmean(expected["bpe"])
        for metric in ("answers", "answers:acc"):
            test = rows["scaffold"].tests[metric]
            assert test.difference == pytest.approx(difference)
            # At least the error from the trainings alone, and, as answers are paired, at most that from both.
            trainings = sum(stdev(values) ** 2 / 3 for values in expected.values())
            marks = {
                system: [fmean(f"q{number}" in known.split() for known in several) for number in range(count)]
                for system, several in KNOWN.items()
            }
            paired = [100 * (ours - theirs) for ours, theirs in zip(marks["scaffold"], marks["bpe"], strict=True)]
            questions = stdev(paired) ** 2 / count
            assert trainings**0.5 <= test.standard_error <= (trainings + 1.05 * questions) ** 0.5
            assert test.p is not None and test.p_holm is not None and test.freedom is not None
            assert test.p == pytest.approx(
                max(2 * stdtr(test.freedom, -abs(difference) / test.standard_error), 2 / 2**count)
            )
    tests = [row.tests["answers"] for row in comparison.rows if row.system == "scaffold"]
    p_values = sorted(test.p for test in tests if test.p is not None)
    assert sorted(test.p_holm for test in tests if test.p_holm is not None) == pytest.approx(
        [2 * p_values[0], max(2 * p_values[0], p_values[1])]
    )


def test_without_the_harness(folder: Path, checkpoints: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra that it comes with."""
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(MTScaffoldError, match=r"lm_eval.*\.\[harness\]"):
        run_harness(checkpoints[:1], folder / "data", folder / "none.json", Asking(["local_questions"]))
