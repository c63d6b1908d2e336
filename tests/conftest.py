"""What several tests need: a tiny parallel text, and a model trained on it."""

import signal
from pathlib import Path

import pytest

TINY_MODEL = (
    "--arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16 "
    "--encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--share-all-embeddings --dropout 0.1 --optimizer adam --lr 0.005 --criterion label_smoothed_cross_entropy "
    "--label-smoothing 0.1 --max-tokens 400"
).split()


def split_words(line: str) -> str:
    """Split each word of more than three characters into two subwords: enough of a segmentation to train on."""
    return " ".join(f"{word[:3]}@@ {word[3:]}" if len(word) > 3 else word for word in line.split(" "))


@pytest.fixture(scope="session")
def tiny_subwords(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with {train,valid,odd.1,test1}.{en,de}: 200, 20, 13 and 9 pairs, in subwords."""
    from mt_scaffold.experiment.synthetic import sentence_pairs

    folder = tmp_path_factory.mktemp("subwords")
    pairs = sentence_pairs(1)
    for name, number in {"train": 200, "valid": 20, "odd.1": 13, "test1": 9}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{split_words(pair[side])}\n" for pair in chosen)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tiny_data(tiny_subwords: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, binarised; the test sets keep their names, odd as they are."""
    from mt_scaffold.experiment.binarise import binarise

    folder = tmp_path_factory.mktemp("data") / "binarised"
    tests = [tiny_subwords / "odd.1", tiny_subwords / "test1"]
    binarise(tiny_subwords / "train", tiny_subwords / "valid", tests, folder, "en", "de")
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted training of three epochs."""
    from mt_scaffold.experiment.train import train

    folder = tmp_path_factory.mktemp("model")
    train(tiny_data, folder, [*TINY_MODEL, "--max-epoch", "3"], seed=7)
    return folder


# A process started in the background ignores Ctrl-C, and so would the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
