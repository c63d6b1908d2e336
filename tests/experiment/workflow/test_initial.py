"""``mt-scaffold init``: a configuration for a user's files, with a description of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, load_experiment
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
from mt_scaffold.experiment.workflow.initial import Pair, ParallelTexts, init_documents, init_translation


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel texts with typical names."""
    monkeypatch.chdir(tmp_path)
    for name, lines in {"train": 100, "dev": 10, "test": 5, "newstest2014": 7}.items():
        write(f"{name}.en", "A dog isn't a cat.\n" * lines)
        write(f"{name}.de", "Ein Hund ist keine Katze.\n" * lines)


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def parallel(source: str = "train.en", target: str = "train.de") -> ParallelTexts:
    return ParallelTexts([Pair(source, target)])


def test_a_translation_experiment_is_ready_to_run_from_two_files() -> None:
    """Languages and the other sets come from the names; the sizes are in a comment, and a file is never replaced."""
    written = init_translation(parallel())
    config, text = load_experiment(written.path), written.path.read_text(encoding="utf-8")
    assert isinstance(config, Config) and config.data.files is not None and config.data.files.valid is not None
    assert (config.name, config.languages.source, config.languages.target) == ("en_de", "en", "de")
    assert config.data.files.valid[0].source.path == "dev.en" and config.test_sets == ["newstest2014", "test"]
    assert "#   train: 100 pairs, en raw and de raw: train.en, train.de\n" in text and not written.warnings
    assert len(config.seeds) == 3 and set(config.systems) == {"bpe", "scaffold"}
    with pytest.raises(UsageError, match=r"en_de\.yaml: exists already; choose another name with --output"):
        init_translation(parallel())


def test_without_a_validation_set_pairs_are_held_out() -> None:
    """A test set must still be given, as its sentences must never have been trained on."""
    for name in ("dev.en", "dev.de"):
        Path(name).unlink()
    config = load_experiment(init_translation(parallel(), "ours.yaml").path)
    assert isinstance(config, Config) and config.data.valid_every == 10 and config.name == "ours"
    for path in Path().glob("*test*"):
        path.unlink()
    with pytest.raises(UsageError, match=r"no test set next to it .*--test SOURCE TARGET, or .* --hold-out 1000"):
        init_translation(parallel(), "other.yaml")
    given = ParallelTexts([Pair("train.en", "train.de")], tests={"mine": Pair("train.en", "train.de")})
    assert load_experiment(init_translation(given, "other.yaml").path).test_sets == ["mine"]


def test_a_test_set_is_held_out_on_request() -> None:
    """Many users have a single text: no pair may be in both parts, and none may be lost."""
    write("all.en", "".join(f"{number} dogs\n" for number in range(1, 24)) + "the last")
    write("all.de", "".join(f"{number} Hunde\n" for number in range(1, 25)))
    written = init_translation(parallel("all.en", "all.de"), "ours.yaml", hold_out=5)
    config = load_experiment(written.path)
    assert isinstance(config, Config) and config.data.files is not None and config.test_sets == ["test"]
    assert config.data.files.train[0].source.path == "ours.train.en"
    held_out = Path("ours.test.de").read_text(encoding="utf-8")
    assert held_out == "".join(f"{number} Hunde\n" for number in (4, 8, 12, 16, 20))
    assert Path("ours.test.en").read_text(encoding="utf-8") == held_out.replace("Hunde", "dogs")
    rest = Path("ours.train.en").read_text(encoding="utf-8").splitlines()
    assert len(rest) == 19 and rest[:4] == ["1 dogs", "2 dogs", "3 dogs", "5 dogs"] and rest[-1] == "the last"
    Path("ours.yaml").unlink()
    with pytest.raises(UsageError, match=r"ours\.train\.en: exists already"):
        init_translation(parallel("all.en", "all.de"), "ours.yaml", hold_out=5)
    short = Pair("train.en", "all.de")
    with pytest.raises(MTScaffoldError):
        init_translation(replace(parallel("all.en", "all.de"), valid=short), "again.yaml", hold_out=5)
    assert not list(Path().glob("again*"))
    with pytest.raises(UsageError, match=r"--hold-out 13: of 24 pairs, hold out 1 to 12"):
        init_translation(parallel("all.en", "all.de"), "more.yaml", hold_out=13)


def test_pairs_that_cleaning_drops_are_said() -> None:
    """It was only a comment in the file, so that a tenth of Europarl was dropped unnoticed."""
    assert not init_translation(parallel()).warnings
    write("train.en", "A dog isn't a cat.\n" * 94 + "A dog\n" * 4 + "\n" + "a " * 251 + "\n")
    write("train.de", "Ein Hund ist keine Katze.\n" * 99 + "a " * 251 + "\n")
    written = init_translation(parallel(), "dropped.yaml")
    (warning,) = written.warnings
    assert warning == (
        "train.en: cleaning drops about 6 % of the pairs (max_ratio 1.5, 1 to 250 words); if they are good, change "
        "clean in dropped.yaml"
    )
    assert "by their word counts: 94 % of the first pairs." in written.path.read_text(encoding="utf-8")


def test_text_that_is_tokenised_is_not_tokenised_again_and_segmented_text_refused() -> None:
    """Tokenised again, &apos; becomes three words; segmented text has no words to compare systems on."""
    write("train.en", "A dog isn &apos;t a cat .\n" * 100)
    written = init_translation(parallel(), "tokenised.yaml")
    assert written.found[0].startswith("train: 100 pairs, en tokenised and de raw")
    config = load_experiment(written.path)
    assert isinstance(config, Config)
    assert [config.tokenise.of_side(side).none for side in ("source", "target")] == [True, False]
    write("train.de", "Ein Hund , &quot; sagt er &quot; , ist keine Katze .\n" * 100)
    assert "\ntokenise: none\n" in init_translation(parallel(), "both.yaml").path.read_text(encoding="utf-8")
    write("train.en", "A do@@ g is@@ n't a cat .\n" * 100)
    with pytest.raises(UsageError, match=r"train\.en: looks segmented already"):
        init_translation(parallel(), "segmented.yaml")
    write("train.en", "A dog isn't a cat.\n" * 100)
    write("train.de", "Ein Hund ist keine Katze.\n" * 100)
    write("test.en", "A dog isn &apos;t a cat .\n" * 5)
    assert "test.en: looks tokenised already, but the training" in init_translation(parallel(), "raw.yaml").warnings[0]
    for language in ("en", "de"):
        write(f"test.bpe.{language}", "A do@@ g\n")
    written = init_translation(parallel(), "next_to.yaml")
    assert "test.bpe.en: looks segmented already, and is not used" in written.warnings[0]
    assert "test.bpe" not in written.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("train.en", "dev.de", r"train\.en has 100 lines, but dev\.de 10"),
        ("train.en", "nope.de", r"nope\.de: No such file"),
        ("train.en", "train.en", "are not two languages; give them, as in --languages en de"),
    ],
)
def test_texts_that_are_no_pair_are_named(source: str, target: str, says: str) -> None:
    """Before a file is written."""
    with pytest.raises((UsageError, MTScaffoldError), match=says):
        init_translation(parallel(source, target))
    assert not list(Path().glob("*.yaml"))


def test_a_path_that_yaml_would_read_otherwise_is_quoted() -> None:
    """A space, a colon or a comma is part of a name."""
    Path("my, texts: 1").mkdir()
    for name in ("train.en", "train.de", "test.en", "test.de"):
        Path(name).rename(Path("my, texts: 1", name))
    config = load_experiment(init_translation(parallel("my, texts: 1/train.en", "my, texts: 1/train.de")).path)
    assert isinstance(config, Config) and config.data.files is not None
    assert config.data.files.train[0].source.path == "my, texts: 1/train.en"


def test_language_models_are_ready_to_run_from_documents() -> None:
    """Documents are held out for validation and test if none are given."""
    config = load_experiment(init_documents(["train.*"]).path)
    assert isinstance(config, LanguageModelConfig) and config.data.documents is not None
    assert config.data.documents.train == ["train.*"] and config.data.held_out_every == 100
    given = load_experiment(init_documents(["train.en"], ["dev.en"], ["test.en"], "lm.yaml").path)
    assert given.test_sets == ["test"] and given.name == "lm"
    with pytest.raises(UsageError, match="give both --valid and --test, or neither"):
        init_documents(["train.en"], ["dev.en"], output="more.yaml")


def test_documents_that_are_tokenised_or_segmented_are_warned_of() -> None:
    """They are not raw text; JSONL is not inspected."""
    raw, words = "It isn't here, he said.\n" * 20, "It isn &apos;t here , he said .\n" * 20
    for name, text in (("raw.txt", raw), ("words.txt", words), ("bpe.txt", "It is@@ n't\n" * 20), ("a.jsonl", words)):
        Path(name).write_text(text, encoding="utf-8")
    names = ("raw.txt", "words.txt", "bpe.txt", "a.jsonl")
    written = {name: init_documents([name], output=f"{name}.yaml") for name in names}
    assert written["raw.txt"].warnings == written["a.jsonl"].warnings == []
    assert "words.txt: looks tokenised already (such as '&apos;t')" in written["words.txt"].warnings[0]
    assert "bpe.txt: looks segmented already" in written["bpe.txt"].warnings[0]
