"""Getting the data: cache, digests, downloads, generated text, and one clear line when something is missing."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import http.server
import json
import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("pooch", reason="pooch comes with the extra 'workflow'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, load_config, parse_config
from mt_scaffold.experiment.configuration.data import DataFile
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.clean import CleanRecord
from mt_scaffold.experiment.data.download import fetch
from mt_scaffold.experiment.data.parallel import RawCorpus, RawPart, RawRecord, get_data
from mt_scaffold.experiment.data.record import DataRecord, gather_records
from mt_scaffold.experiment.data.tokenise import TokeniseRecord
from mt_scaffold.experiment.evaluation.score import Scores
from mt_scaffold.experiment.runtime.results import read_result, write_result
from mt_scaffold.experiment.tasks.translation import score as scored_step

CONFIGS = ROOT / "configs"
MULTI30K = CONFIGS.parent.parent / "shared" / "data" / "multi30k"

TRAIN_EN, TRAIN_DE = b"A dog .\nTwo dogs .\nthree", b"Ein Hund .\r\nZwei Hunde .\ndrei\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def configuration(train: Sequence[Sequence[Any]], other: Sequence[Any], **data: Any) -> Config:
    pairs = [{"source": source, "target": target} for source, target in train]
    others = [{"source": other[0], "target": other[1]}]
    return parse_config(
        {
            "name": "small",
            "languages": {"source": "en", "target": "de"},
            "data": {"files": {"train": pairs, "valid": others, "tests": {"news": others}}, **data},
            "codes": {"symbols": 10},
            "systems": {"bpe": {"algorithm": "bpe"}},
            "baseline": "bpe",
            "train": {"options": {}},
        }
    )


@pytest.fixture
def local(tmp_path: Path) -> Config:
    """A configuration on local files: train is two plain files and two compressed ones."""
    contents = {
        "a.en": TRAIN_EN,
        "a.de": TRAIN_DE,
        "b.en.gz": gzip.compress(b"four\n"),
        "b.de.gz": gzip.compress(b"vier\n"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    a, b = (
        tuple({"path": str(tmp_path / f"{stem}")} for stem in pair)
        for pair in (("a.en", "a.de"), ("b.en.gz", "b.de.gz"))
    )
    return configuration([a, b], b)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a web server on this machine, on the folder ``served``."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    (tmp_path / "served").mkdir()
    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def test_files_are_joined_in_order_decompressed_and_otherwise_untouched(tmp_path: Path, local: Config) -> None:
    """A CR stays, a missing LF at a file's end is added: line i must remain line i."""
    numbers = get_data(local, tmp_path / "new" / "raw")
    raw = tmp_path / "new" / "raw"
    assert (raw / "train.en").read_bytes() == TRAIN_EN + b"\nfour\n"
    assert (raw / "train.de").read_bytes() == TRAIN_DE + b"vier\n"
    assert (raw / "news.de").read_bytes() == (raw / "valid.de").read_bytes() == b"vier\n"
    assert numbers.corpora["train"] == RawCorpus(4, {"en": 8, "de": 8})
    assert not numbers.synthetic


def test_a_test_set_may_have_several_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are fetched, searched for in the training text, and scored, the first also by forced decoding."""
    monkeypatch.chdir(tmp_path)
    train = "The dog sleeps here today .\nTwo dogs run .\n", "Der Hund schläft heute hier .\nZwei Hunde rennen .\n"
    texts = {"train.en": train[0], "train.de": train[1], "t.en": "a cat\nThat one\n", "a.de": "Katze\nJener\n"}
    texts |= {"b.de": "Kater\nDer Hund schläft nun hier .", "c.de": "Mieze\n"}
    for name, content in texts.items():
        Path(name).write_text(content, encoding="utf-8")
    command = ["init", "train.en", "train.de", "--valid", "train.en", "train.de", "-o", "c.yaml", "--test", "t.en"]
    assert main([*command, "a.de", "c.de"]) == 2
    assert main([*command, "a.de", "b.de"]) == 0
    config = load_config("c.yaml")
    assert parse_config(config.to_dict()) == config
    report = get_data(config, "x/raw")
    layout = TranslationLayout(Path("x"), config)
    assert [path.read_text("utf-8") for path in layout.references("test")] == [texts["a.de"], texts["b.de"] + "\n"]
    overlap = report.test_overlap["test"]
    assert report.references == {"test": 2} and (overlap.near, overlap.near_target) == ([1], 1)
    run = Run("bpe", 1)
    for form in ("", "words"):
        path = layout.translation(run, "test", form)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts["b.de"], encoding="utf-8")
    layout.words("test", "de").parent.mkdir()
    layout.scores(run, "test").parent.mkdir()
    layout.words("test", "de").write_text(texts["a.de"], encoding="utf-8")
    scored_step(layout, run, "test")
    scores = read_result(Scores, layout.scores(run, "test"))
    assert scores.references == ["reference", "reference_2"]
    assert scores.metrics["chrf"].score == 100 and "nrefs:2" in scores.metrics["chrf"].signature
    document = config.to_dict()
    for place, says in (("train", "only test sets have several"), ("valid", "only test sets have several")):
        wrong = json.loads(json.dumps(document))
        wrong["data"]["files"][place][0]["references"] = [{"path": "b.de"}]
        with pytest.raises(UsageError, match=rf"data\.files\.{place}\[0\]\.references: {says}"):
            parse_config(wrong)


def test_a_sample_takes_the_first_pairs_of_each_training_corpus_only(tmp_path: Path, local: Config) -> None:
    """A rehearsal is short, but scored on the whole test sets."""
    sampled = parse_config(local.to_dict() | {"data": local.to_dict()["data"] | {"sample": 2}})
    record = get_data(sampled, tmp_path / "raw")
    assert (tmp_path / "raw" / "train.en").read_bytes() == b"A dog .\nTwo dogs .\nfour\n"
    assert [part.lines for part in record.parts["train"]] == [2, 1]
    assert (tmp_path / "raw" / "valid.en").read_bytes() == b"four\n"


@pytest.mark.parametrize(("english", "german", "counts"), [(b"1\n2\n3\n", b"1\n", (3, 1)), (b"1", b"1\n2\n3", (1, 3))])
def test_unequal_sides_name_both_files_and_counts(
    tmp_path: Path, english: bytes, german: bytes, counts: tuple[int, int]
) -> None:
    """From the first missing line on, every pair would be wrong."""
    (tmp_path / "x.en").write_bytes(english)
    (tmp_path / "x.de").write_bytes(german)
    files = ({"path": str(tmp_path / "x.en")}, {"path": str(tmp_path / "x.de")})
    with pytest.raises(MTScaffoldError, match=f"x.en has {counts[0]} lines and .*x.de has {counts[1]}:"):
        get_data(configuration([files], files), tmp_path / "raw")
    assert not list((tmp_path / "raw").iterdir())


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    """It is reported here, not by a later step that cannot explain it."""
    (tmp_path / "x").write_bytes(b"")
    files = ({"path": str(tmp_path / "x")}, {"path": str(tmp_path / "x")})
    with pytest.raises(MTScaffoldError, match="news: the corpus is empty"):
        get_data(configuration([files], files), tmp_path / "raw")


def test_a_local_file_with_another_digest_is_refused(tmp_path: Path) -> None:
    """A digest in the configuration holds for local files too."""
    (tmp_path / "x").write_bytes(b"one\n")
    for digest in (sha256(b"one\n"), sha256(b"one\n").upper()):
        assert fetch(DataFile(path=str(tmp_path / "x"), sha256=digest), tmp_path).name == "x"
    with pytest.raises(MTScaffoldError, match=f"x: sha256 mismatch: found {sha256(b'one' + bytes([10]))}, "):
        fetch(DataFile(path=str(tmp_path / "x"), sha256=sha256(b"two\n")), tmp_path)


def test_corpora_with_files_of_the_same_name_share_a_cache(tmp_path: Path, server: str) -> None:
    """Neither replaces the other."""
    for folder in ("one", "two"):
        (tmp_path / "served" / folder).mkdir()
        (tmp_path / "served" / folder / "train.en").write_bytes(folder.encode())
    files = [DataFile(url=f"{server}/{name}/train.en", sha256=sha256(name.encode())) for name in ("one", "two")]
    paths = [fetch(file, tmp_path / "cache") for file in files]
    assert [path.read_bytes() for path in paths] == [b"one", b"two"]


def test_without_a_network_the_error_says_where_to_put_the_file(tmp_path: Path) -> None:
    """The user can continue with a file from elsewhere."""
    (tmp_path / "train.en").write_bytes(b"half a fi")
    with pytest.raises(MTScaffoldError) as raised:
        fetch(DataFile(url="http://127.0.0.1:9/train.en", sha256=sha256(b"hello\n")), tmp_path)
    assert "no connection" in str(raised.value) and f"put the file into {tmp_path} as train.en" in str(raised.value)
    assert "the train.en there has another digest" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_the_server_does_not_have_is_an_error(tmp_path: Path, server: str) -> None:
    """The server's answer is shown, not stored as the corpus."""
    with pytest.raises(MTScaffoldError, match="the server answers 404"):
        fetch(DataFile(url=f"{server}/none.en", sha256=sha256(b"")), tmp_path / "cache")


def test_the_demonstration_text_is_generated_whole_and_labelled_synthetic(tmp_path: Path) -> None:
    """The label comes with the text, from the first step on."""
    arguments = ["--config", CONFIGS / "demo.yaml", "--output-dir", tmp_path / "raw", "--report", tmp_path / "raw.json"]
    assert main(["get-data", *map(str, arguments)]) == 0
    numbers = json.loads((tmp_path / "raw.json").read_text())
    assert numbers["synthetic"] is True
    # Nearly all sentences of a grammar resemble others of it, so their lines are listed only for other text.
    assert numbers["test_overlap"]["test"]["near_source"] > 0 and "near" not in numbers["test_overlap"]["test"]
    data = load_config(CONFIGS / "demo.yaml").data.synthetic
    assert data is not None and data.pairs >= 10000
    for name, count in {"train": data.pairs, "valid": data.valid, "test": data.test}.items():
        assert numbers["corpora"][name]["lines"] == count
        assert all((tmp_path / "raw" / f"{name}.{side}").read_bytes().count(b"\n") == count for side in ("en", "de"))


def test_the_generated_test_set_does_not_depend_on_the_size_of_train(tmp_path: Path) -> None:
    """A rehearsal and the whole experiment are scored on the same sentences."""
    for name, overrides in {"all": {}, "few": {"synthetic": {"pairs": 50}}, "sample": {"sample": 50}}.items():
        get_data(load_config(CONFIGS / "demo.yaml", {"data": overrides}), tmp_path / name)
    tests = {(tmp_path / name / "test.de").read_bytes() for name in ("all", "few", "sample")}
    assert len(tests) == 1
    assert (tmp_path / "few" / "train.en").read_bytes() == (tmp_path / "sample" / "train.en").read_bytes()


@pytest.mark.parametrize("target", ["de", "fr"])
def test_multi30k_comes_from_a_folder_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The digests in the configurations are those of the data set."""
    if not MULTI30K.is_dir():
        pytest.skip(f"no Multi30k in {MULTI30K.name} next to the repository")
    monkeypatch.setenv("MT_SCAFFOLD_CACHE", str(MULTI30K))
    numbers = get_data(load_config(CONFIGS / f"multi30k_en_{target}.yaml"), tmp_path)
    lines = {name: corpus.lines for name, corpus in numbers.corpora.items()}
    assert lines == {
        "train": 29000,
        "valid": 1014,
        "test_2016_flickr": 1000,
        "test_2017_flickr": 1000,
        "test_2017_mscoco": 461,
    }
    with gzip.open(MULTI30K / f"test_2016_flickr.{target}.gz") as stream:
        assert (tmp_path / f"test_2016_flickr.{target}").read_bytes() == stream.read()


def test_reports_of_all_steps_become_one(tmp_path: Path) -> None:
    """The page takes its table of the data from it; the written report can be read back."""
    raw = RawRecord("small", False, {"train": RawCorpus(2, {"en": 8})}, {"train": [RawPart("train.en", 2)]})
    clean = CleanRecord(2, 1, {"too short": 1}, (8, 7), (4, 4))
    write_result(tmp_path / "raw", raw)
    write_result(tmp_path / "train.en", TokeniseRecord("en", 2, 9, "0"))
    write_result(tmp_path / "clean", clean)
    report = gather_records([tmp_path / "raw"], {"train.en": tmp_path / "train.en"}, {"train": tmp_path / "clean"})
    assert report == DataRecord(raw, {"train.en": TokeniseRecord("en", 2, 9, "0")}, {"train": clean})
    write_result(tmp_path / "report.json", report)
    assert read_result(DataRecord, tmp_path / "report.json") == report
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["get-data"]["parts"]["train"] == [{"from": "train.en", "lines": 2}]
    assert "generator" not in written["get-data"]


def test_the_results_of_a_diverged_training_are_read_back(tmp_path: Path) -> None:
    """Only values with bounds must be finite; keys of other types than text are also checked."""
    write_result(tmp_path / "result", Measured(math.nan, {3: math.inf}))
    found = read_result(Measured, tmp_path / "result")
    assert found.loss is not None and math.isnan(found.loss) and found.by_epoch == {3: math.inf}
    (tmp_path / "result").write_text('{"by_epoch": {"x": 1}}')
    with pytest.raises(MTScaffoldError, match=r"result: by_epoch\.x: not a valid name; must be a whole number"):
        read_result(Measured, tmp_path / "result")


@dataclasses.dataclass(frozen=True)
class Measured:
    loss: float | None = dataclasses.field(metadata={"omit_none": True})
    by_epoch: dict[int, float]


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "not JSON: .*"), ('{"lines": 3}', "lines: unknown key.*"), ("{}", "experiment: missing")],
)
def test_a_malformed_report_is_named(tmp_path: Path, content: str, says: str) -> None:
    """The error says what is wrong and which step to run again."""
    (tmp_path / "broken").write_text(content)
    with pytest.raises(MTScaffoldError, match=f"broken: {says}; run the step that writes this file again"):
        gather_records([tmp_path / "broken"], {}, {})


def test_a_part_can_be_written_by_itself(tmp_path: Path, local: Config) -> None:
    """A test set that is added later changes no other file, and its overlap with the training text is counted."""
    assert local.data.files is not None
    whole = get_data(local, tmp_path / "whole")
    folder = tmp_path / "parts"
    train = get_data(local, folder, parts=["train", "valid"])
    assert {path.name for path in folder.iterdir()} == {"train.en", "train.de", "valid.en", "valid.de"}
    assert train.test_overlap == {} and train.corpora.keys() == {"train", "valid"}
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    news = get_data(local, folder, parts=["news"])
    assert {path: path.stat().st_mtime_ns for path in before} == before and (folder / "news.en").is_file()
    # If the training text is gone, its source is read again.
    for language in ("en", "de"):
        (folder / f"train.{language}").unlink()
    assert get_data(local, folder, parts=["news"]) == news and not (folder / "train.en").exists()
    assert news.test_overlap == whole.test_overlap and news.test_overlap["news"].pair_in_train == 1
    assert whole.corpora == train.corpora | news.corpora
    write_result(tmp_path / "train.json", train)
    write_result(tmp_path / "news.json", news)
    assert gather_records([tmp_path / "train.json", tmp_path / "news.json"], {}, {}).raw == whole
    with pytest.raises(UsageError, match="no part test; give some of train, valid, news"):
        get_data(local, folder, parts=["test"])


def test_generated_parts_are_the_same_each_by_itself(tmp_path: Path) -> None:
    """They are pieces of one sequence, in which the test set is first."""
    config = load_config(CONFIGS / "demo.yaml", {"data": {"synthetic": {"pairs": 30, "valid": 5, "test": 7}}})
    get_data(config, tmp_path / "whole")
    for part in ("train", "valid", "test"):
        get_data(config, tmp_path / "parts", parts=[part])
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "parts" / path.name).read_bytes()
