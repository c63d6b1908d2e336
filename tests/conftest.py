"""Fixtures that several tests share: a tiny parallel text, models trained on it, and a server of forked programs."""

import contextlib
import gc
import importlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forked_program
import pytest
from fork_server import ForkServer, Snakemake

TINY_MODEL = (
    "--arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 16 --decoder-embed-dim 16 "
    "--encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2 "
    "--share-all-embeddings --dropout 0.1 --optimizer adam --lr 0.005 --criterion label_smoothed_cross_entropy "
    "--label-smoothing 0.1 --max-tokens 400"
).split()

# Set before OpenMP is loaded, because its waiting threads spin by default. With several trainings at once, which have
# more threads than cores, the spinning took as long as the trainings.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_configure() -> None:
    """Refuse to test a core other than the one that `make sanitize` built; run hypothesis without deadlines.

    HYPOTHESIS_PROFILE=soak tries as many times as many examples as SOAK says, by default 20 times, new ones each time.
    """
    with contextlib.suppress(ImportError):
        from hypothesis import settings

        settings.register_profile("any machine", deadline=None)
        settings.register_profile("soak", deadline=None, max_examples=100 * int(os.environ.get("SOAK", "20")))
        settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "any machine"))
    folder = os.environ.get("MT_SCAFFOLD_TESTED")
    if folder is not None:
        core = importlib.import_module("mt_scaffold._core").__file__
        if not str(core).startswith(folder):
            pytest.exit(f"{core} would be tested instead of the core in {folder}", returncode=1)


# Servers of the tests are on this machine; and tests must not behave as a SLURM job, even if they run in one.
os.environ.update(dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"))
for name in [name for name in os.environ if name.startswith("SLURM_")]:
    del os.environ[name]

# Modules that fairseq imports only for tasks other than translation: a third of fairseq-train's start-up time.
UNUSED_BY_TRANSLATION = {
    "sklearn/__init__.py": "",
    "sklearn/metrics.py": "f1_score = matthews_corrcoef = roc_curve = None\n",
    # Everything but stats remains.
    "scipy/__init__.py": "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
    "scipy/stats.py": "pearsonr = spearmanr = None\n",
}


@pytest.fixture(scope="session", autouse=True)
def fairseq_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Start programs that use fairseq, which takes seconds to import, with one thread each.

    Commands of fairseq and of steps are forked as well, except with ``environment_without_forks()``. All programs
    import empty modules in place of large ones; this process has the real ones.
    """
    folder = tmp_path_factory.mktemp("left-out-by-conftest")
    for name, text in UNUSED_BY_TRANSLATION.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "sitecustomize.py").symlink_to(forked_program.__file__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        # run_command sets the seed.
        environment = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        # The path of a socket has at most 108 characters, and a job's TMPDIR may be almost as long.
        with tempfile.TemporaryDirectory(dir="/tmp") as short:
            address = Path(short) / "server"
            with ForkServer("fairseq_started", address=address, **environment) as server:
                patch.setenv("FORK_SERVER", str(address))
                yield server


@pytest.fixture(scope="session")
def snakemake(fairseq_programs: ForkServer) -> Iterator[Snakemake]:
    """Snakemake with mt_scaffold/experiment/workflow/Snakefile, started once for many short runs."""
    with Snakemake() as server:
        yield server


@pytest.fixture(scope="module")
def plugin() -> Iterator[None]:
    """fairseq in this process with our plug-in, on one thread."""
    from fairseq_training import load_plugin
    from language_models import one_thread

    load_plugin()
    with one_thread():
        yield


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents {train,valid,test}, for a language model; ``codes`` of bytes."""
    from language_models import learn_codes, write_documents

    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder)
    learn_codes(folder, "codes")
    return folder


@pytest.fixture(scope="session")
def tiny_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with {train,valid,odd.1,test1}.{en,de}: 200, 20, 13 and 9 tokenised pairs; and ``codes``."""
    from mt_scaffold.experiment.data.synthetic import sentence_pairs
    from mt_scaffold.methods.learn import learn_bpe

    folder = tmp_path_factory.mktemp("words")
    pairs = sentence_pairs(1)
    for name, number in {"train": 200, "valid": 20, "odd.1": 13, "test1": 9}.items():
        chosen = [next(pairs) for _ in range(number)]
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    learn_bpe(paths=[folder / "train.en", folder / "train.de"], outfile=folder / "codes", num_symbols=150)
    return folder


@pytest.fixture(scope="session")
def tiny_data(tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same text, binarised; the test sets keep their unusual names."""
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation

    folder = tmp_path_factory.mktemp("data") / "binarised"
    texts = [tiny_words / name for name in ("train", "valid", "odd.1", "test1")]
    binarise(folder, "en", "de", joint_segmentation(tiny_words / "codes"), texts[0], texts[1], texts[2:])
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted training of three epochs."""
    from mt_scaffold.experiment.training.train import train

    folder = tmp_path_factory.mktemp("model")
    train(tiny_data, folder, [*TINY_MODEL, "--max-epoch", "3"], seed=7)
    return folder


def replace_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Save a checkpoint in place of the one that it was loaded from, which is still mapped."""
    import torch

    new = path.with_suffix(".new")
    torch.save(state, new)
    new.replace(path)


# A process started in the background ignores Ctrl-C, and so would the programs that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A process started with nohup ignores SIGHUP.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def models_of_transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package transformers, which imports torchaudio, whose wheel may not load with a torch without CUDA."""
    pytest.importorskip("torch")
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        for module in ("transformers.utils", "transformers.utils.import_utils"):
            monkeypatch.setattr(f"{module}.is_torchaudio_available", lambda: False)
    return importlib.import_module("transformers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as long that need the whole experiment of a module's fixture; run tests with trainings first.

    So no file that takes minutes is left to one worker when the others have finished.
    """
    items.sort(key=lambda item: "experiment" not in item.path.parts)
    for item in items:
        if item.path.parent.name == "workflow" and "experiment" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Exclude the modules that the tests import from garbage collection, which they slow down by half a second."""
    gc.collect()
    gc.freeze()
