"""Packed models: raw text to raw text as in the experiment, from a folder that runs no code and notices changes."""

import dataclasses
import gzip
import json
import math
import multiprocessing
import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clear_model import Built
from paths import ROOT

pytest.importorskip("safetensors", reason="comes with the extra 'fairseq'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import Config, parse_config
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.inference.beam_search import beam_search
from mt_scaffold.experiment.packing.pack import OTHER_ENGINE, _described, model_card, pack
from mt_scaffold.experiment.packing.packed_model import PackedModel, read_manifest

# The lines of the test set have 10 to 57 subwords, so that batches of 100 have several sentences, most of them padded.
CONFIGURATION: dict[str, Any] = {
    "name": "tiny",
    "description": "a rehearsal",
    "languages": {"source": "en", "target": "de"},
    "data": {
        "files": {
            "train": [{"source": {"path": "text/train.en"}, "target": {"path": "text/train.de"}}],
            "valid": [{"source": {"path": "text/valid.en"}, "target": {"path": "text/valid.de"}}],
            "tests": {"odd.1": [{"source": {"path": "text/odd.1.en"}, "target": {"path": "text/odd.1.de"}}]},
        }
    },
    "codes": {"symbols": 150},
    "systems": {"scaffold": {"algorithm": "scaffold"}, "bpe": {"algorithm": "bpe"}},
    "baseline": "bpe",
    "seeds": [7],
    "train": {"options": {"arch": "transformer", "max-epoch": 3}},
    "average": {"last": 2},
    "translate": {"options": {"beam": 3, "lenpen": 0.6, "max-len-b": 15, "max-tokens": 100, "num-workers": 0}},
}


@pytest.fixture(scope="module")
def experiment(
    tiny_words: Path, tiny_data: Path, tiny_model: Path, clear_model: Built, tmp_path_factory: pytest.TempPathFactory
) -> TranslationLayout:
    """An experiment as the workflow leaves it: one system, trained, averaged, its test set translated and scored.

    The model has clear choices, so that a sentence has the same translation in any batch.
    """
    from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
    from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
    from mt_scaffold.experiment.configuration.layout import write_config
    from mt_scaffold.experiment.data.tokenise import tokenise
    from mt_scaffold.experiment.evaluation.score import Scoring, Texts, score
    from mt_scaffold.experiment.inference.translate import translate

    layout = TranslationLayout(tmp_path_factory.mktemp("experiments") / "tiny", parse_config(CONFIGURATION))
    training = layout.training(Run("scaffold", 7))
    segmentation = layout.segmentation_of("scaffold")
    codes = layout.codes_of("scaffold")[0]
    for folder in (codes.parent, layout.folder / "raw", layout.folder / "words", training / "scores"):
        folder.mkdir(parents=True)
    write_config(layout.config, layout.config_file)
    shutil.copy(tiny_words / "codes", codes)
    shutil.copytree(tiny_data, layout.dictionaries(segmentation), ignore=shutil.ignore_patterns("*.bin", "*.idx"))
    for language in layout.languages:
        lines = (tiny_words / f"odd.1.{language}").read_text(encoding="utf-8").splitlines()
        # References of twice the length, which would change the batches if these depended on them.
        text = "".join(f"{line} {line if language == 'de' else ''}\n" for line in lines)
        layout.raw("odd.1", language).write_text(text, encoding="utf-8")
        tokenise(layout.raw("odd.1", language), layout.words("odd.1", language), language)
    binarised = layout.binarised_test(segmentation, "odd.1")
    dictionaries = layout.dictionaries(segmentation)
    words = [layout.words_prefix("odd.1")]
    binarise(binarised, "en", "de", joint_segmentation(codes), tests=words, dictionaries=dictionaries)
    shutil.copy(tiny_model / "training.json", training)
    shutil.copy(clear_model.files.checkpoint, layout.averaged(Run("scaffold", 7)))
    options = ["--beam", "3", "--lenpen", "0.6", "--max-len-b", "15", "--max-tokens", "100"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        translate(binarised, "odd.1", layout.averaged(Run("scaffold", 7)), training / "translations", options)
    translation, reference = layout.translation(Run("scaffold", 7), "odd.1"), layout.raw("odd.1", "de")
    score(
        Texts(translation, [reference]),
        layout.scores(Run("scaffold", 7), "odd.1"),
        Scoring(metrics=["bleu", "chrf"]),
        config=layout.config,
    )
    return layout


@pytest.fixture(scope="module")
def packed(experiment: TranslationLayout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The system, packed."""
    folder = tmp_path_factory.mktemp("packed") / "scaffold"
    pack(experiment.folder / "scaffold", folder)
    return folder


@pytest.fixture(scope="module")
def model(packed: Path) -> PackedModel:
    """The packed model, to translate in this process."""
    return PackedModel(packed, device="cpu")


@pytest.fixture(scope="module")
def sources(experiment: TranslationLayout) -> list[str]:
    """The raw lines of the test set."""
    return experiment.raw("odd.1", "en").read_text(encoding="utf-8").splitlines()


def test_raw_text_gets_the_translations_and_scores_of_the_table(
    experiment: TranslationLayout, packed: Path, model: PackedModel, sources: list[str], tmp_path: Path
) -> None:
    """To the last bit, so that any difference in tokenising, segmenting, batching, searching or joining would show."""
    from mt_scaffold.experiment.evaluation.score import Scoring, Texts, score

    reference, translation = experiment.raw("odd.1", "de"), experiment.translation(Run("scaffold", 7), "odd.1")
    hypotheses = [best[0] for best in model.hypotheses(sources)]
    assert [best.text for best in hypotheses] == translation.read_text(encoding="utf-8").splitlines()
    generated = translation.with_name("odd.1.generate.txt").read_text(encoding="utf-8")
    scores = dict(re.findall(r"^H-(\d+)\t(\S+)\t", generated, re.MULTILINE))
    assert [best.score for best in hypotheses] == [float(scores[str(place)]) for place in range(13)]
    assert len({len(line.split()) for line in sources}) > 3

    output = tmp_path / "odd.1.de"
    arguments = ["translate-text", "--model", str(packed), "--input", str(experiment.raw("odd.1", "en"))]
    assert main([*arguments, "--output", str(output), "--num-workers", "2", "--device", "cpu"]) == 0
    found = score(
        Texts(output, [reference]),
        tmp_path / "scores.json",
        Scoring(metrics=["bleu", "chrf"]),
        config=experiment.config,
    )
    expected = json.loads(experiment.scores(Run("scaffold", 7), "odd.1").read_text())
    stated = read_manifest(packed).test_sets["odd.1"].scores
    for metric in ("bleu", "chrf"):
        assert found.metrics[metric].score == expected["metrics"][metric]["score"] == stated[metric].score
        assert found.metrics[metric].signature == stated[metric].signature


def test_a_folder_holds_no_pickle_and_no_path(experiment: TranslationLayout, packed: Path, tiny_data: Path) -> None:
    """It runs no code, and reveals nothing about the machine that made it."""
    names = {path.name for path in packed.iterdir()}
    own = {"model.safetensors", "config.json", "manifest.json", "README.md", "experiment.yaml", "segmentation.json"}
    assert names == {*own, "bpe.codes", "dict.en.txt", "dict.de.txt"}
    for path in packed.iterdir():
        content = path.read_bytes()
        assert str(experiment.folder).encode() not in content and str(tiny_data).encode() not in content, path
        assert path.stat().st_mode & 0o444 == 0o444
    options = json.loads((packed / "config.json").read_text())
    assert options["encoder_embed_dim"] == 32 and options["arch"] == "transformer"
    assert not {"data", "save_dir", "user_dir", "encoder_embed_path", "tensorboard_logdir", "seed"} & options.keys()
    # Tied parameters once: three names of one matrix.
    tied = read_manifest(packed).tied
    assert {name for name, first in tied.items() if first == "encoder.embed_tokens.weight"} == {
        "decoder.embed_tokens.weight",
        "decoder.output_projection.weight",
    }


def test_line_i_translates_line_i(model: PackedModel, sources: list[str]) -> None:
    """Nothing is dropped or moved: empty lines, lines of white space, and line breaks other than LF."""
    separate = [model.translate([line])[0] for line in sources[:3]]
    odd = ["", sources[0], " \t ", sources[1], "\u2028", f"{sources[2]}\r"]
    assert model.translate(odd) == ["", separate[0], "", separate[1], "", separate[2]]
    assert model.translate([]) == [] and model.translate(["", ""]) == ["", ""]


def test_what_is_no_text_is_refused(model: PackedModel, packed: Path) -> None:
    """Rather than translated letter by letter, or as the text "None"."""
    wrong: list[Any] = ["a dog", b"a dog", [b"a dog"], [None], ["a\ud800b"]]
    for lines in wrong:
        with pytest.raises(UsageError, match=r"line.* string|lone surrogate"):
            model.translate(lines)
    for lenpen in (math.nan, math.inf):
        with pytest.raises(UsageError, match=r"--lenpen .*: must be a number"):
            PackedModel(packed, device="cpu", lenpen=lenpen)


def test_a_beam_search_that_cannot_be_is_refused(packed: Path, tmp_path: Path) -> None:
    """fairseq only asserts it, which would end in a traceback."""
    folder = edited(packed, tmp_path / "cold", lambda each: each["translate"].update({"temperature": 0}))
    with pytest.raises(MTScaffoldError, match="invalid beam-search settings: --temperature must be greater than 0"):
        PackedModel(folder, device="cpu")


def test_the_output_does_not_depend_on_the_number_of_workers(
    packed: Path, model: PackedModel, sources: list[str]
) -> None:
    """Nor do the scores, to the last bit."""
    lines = [*sources, "", *reversed(sources)]
    before = multiprocessing.active_children()  # data loaders of other tests
    with PackedModel(packed, device="cpu", num_workers=3, batch_tokens=40) as several:
        first, again = several.hypotheses(lines, 2), several.hypotheses(lines, 2)
    with PackedModel(packed, device="cpu", batch_tokens=40) as one:
        assert one.hypotheses(lines, 2) == first == again
    assert model.translate(lines) == [each[0].text for each in first]
    assert not set(multiprocessing.active_children()) - set(before)


def test_a_worker_that_dies_is_an_error_of_one_line(packed: Path, sources: list[str]) -> None:
    """The kernel kills one that takes too much memory; the others must not wait for it forever."""
    before = multiprocessing.active_children()
    with PackedModel(packed, device="cpu", num_workers=2, batch_tokens=40) as model:
        model.translate(sources)
        worker = next(each for each in multiprocessing.active_children() if each not in before)
        worker.kill()
        worker.join()
        with pytest.raises(MTScaffoldError, match="a process that translates died"):
            model.translate(sources)


def test_blocks_keep_the_order(
    packed: Path, model: PackedModel, sources: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a block ends at an empty line, the input is compressed, and the last line has no LF."""
    lines = [sources[0], "", *sources[1:8]]
    with gzip.open(tmp_path / "text.gz", "wb") as stream:
        stream.write("\n".join(lines).encode())
    shared = ["translate-text", "--model", str(packed), "--device", "cpu", "--num-workers", "1"]
    for block in ("1", "2", "100"):
        out = tmp_path / f"out.{block}"
        arguments = ["--input", str(tmp_path / "text.gz"), "--output", str(out), "--block", block]
        assert main([*shared, *arguments]) == 0
        assert out.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in model.translate(lines))
    (tmp_path / "bad").write_bytes(b"one\ntwo\nth\xffree\n")
    assert main([*shared, "--input", str(tmp_path / "bad"), "--output", str(tmp_path / "none")]) == 1
    assert not (tmp_path / "none").exists()


def test_n_best_and_scores_are_written_as_other_tools_do(
    packed: Path, model: PackedModel, sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Moses' n-best list, which rerankers read, or with the score before each line."""
    (tmp_path / "text").write_text(f"{sources[0]}\n\n{sources[1]}\n", encoding="utf-8")
    shared = ["translate-text", "-m", str(packed), "-i", str(tmp_path / "text"), "--device", "cpu"]
    first, _, last = model.hypotheses([sources[0], "", sources[1]], 2)
    assert first[0].score >= first[1].score and first[0].text != first[1].text
    assert main([*shared, "--n-best", "2"]) == 0
    best = [f"{line} ||| {each.text} ||| {each.score:.4f}" for line, found in ((0, first), (2, last)) for each in found]
    assert capsys.readouterr().out.splitlines() == [*best[:2], "1 |||  ||| 0.0000", *best[2:]]
    assert main([*shared, "--scores"]) == 0
    assert capsys.readouterr().out == (
        f"{first[0].score:.4f}\t{first[0].text}\n0.0000\t\n{last[0].score:.4f}\t{last[0].text}\n"
    )
    assert main([*shared, "--n-best", "4"]) == 2 and main([*shared, "--scores", "--n-best", "2"]) == 2
    assert "--n-best 4: must be 1 to the size of the beam, 3" in capsys.readouterr().err
    assert main([*shared, "--n-best", "4", "--beam", "4"]) == 0


def test_a_sentence_that_is_too_long_is_translated_in_parts_with_a_warning(
    packed: Path, sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """fairseq-generate would fail; cutting it off would drop text silently. The lines after it stay in place."""
    folder = edited(
        packed, tmp_path / "short", lambda manifest: manifest["translate"].update({"max-source-positions": 34})
    )
    model = PackedModel(folder, device="cpu")
    long, beside = " ".join(sources[:8]), [sources[1], sources[3]]
    found = model.translate(["", beside[0], long, beside[1]])
    warning = re.fullmatch(
        r"mt-scaffold: warning: line 3: (\d+) subwords, but the model takes 33; translated in (\d+) parts\n",
        capsys.readouterr().err,
    )
    assert warning is not None and int(warning[1]) > 99 and int(warning[2]) >= 4
    assert found == ["", *model.translate(beside[:1]), found[2], *model.translate(beside[1:])]
    assert len(found[2]) > max(map(len, found[:2])) and "  " not in found[2]
    # A single word longer than all positions is cut as well.
    assert model.translate(["x" * 60])[0] and "line 7: " in capsys.readouterr().err


def edited(packed: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a packed model with another manifest."""
    shutil.copytree(packed, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def spoil(name: str, content: bytes | None = None) -> Callable[[Path], object]:
    """Change one byte of a file, or all of it."""

    def change(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(bytes(data) if content is None else content)

    return change


def manifest_with(**values: Any) -> Callable[[Path], object]:
    """Change entries of the manifest."""

    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def test_an_edited_card_outlives_packing_again(
    experiment: TranslationLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --output the folder is EXPERIMENT-SYSTEM; a licence that was filled in survives, and stdout says so."""
    monkeypatch.chdir(tmp_path)
    command = ["pack", str(experiment.folder / "scaffold")]
    folder = tmp_path / "tiny-scaffold"
    assert main(command) == main(command) == 0
    written = (folder / "README.md").read_text()
    assert not (folder / "README.new.md").exists() and "edited" not in capsys.readouterr().out
    (folder / "README.md").write_text(written.replace("license: unknown", "license: cc-by-4.0"))
    for _ in range(2):
        assert main(command) == 0
        assert "tiny-scaffold/README.md: edited, and kept" in capsys.readouterr().out
        assert "license: cc-by-4.0" in (folder / "README.md").read_text()
        assert (folder / "README.new.md").read_text() == written
    read_manifest(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (spoil("model.safetensors"), r"model\.safetensors: not as it was written \(sha256 mismatch\)"),
        (spoil("bpe.codes"), r"bpe\.codes: not as it was written"),
        (spoil("config.json"), r"config\.json: not as it was written"),
        (
            spoil("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n"),
            "a Git LFS pointer; .*git lfs pull",
        ),
        (lambda folder: (folder / "dict.de.txt").unlink(), r"incomplete: dict\.de\.txt is missing"),
        (lambda folder: (folder / "manifest.json").unlink(), "not a packed model"),
        (lambda folder: shutil.rmtree(folder), "no such folder"),
        (spoil("manifest.json", b"{"), r"manifest\.json: not JSON"),
        (spoil("manifest.json", b"[" * 100_000), r"manifest\.json: not JSON"),
        (manifest_with(format=2), "format 2 is of a newer mt-scaffold"),
        (manifest_with(tied=None), r"manifest\.json: tied: must be"),
        (manifest_with(files={}), r"names no config\.json"),
    ],
)
def test_a_folder_that_was_changed_or_is_incomplete_is_refused_in_one_line(
    packed: Path, tmp_path: Path, change: Callable[[Path], object], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A half-copied model would translate badly, or fail somewhere inside fairseq."""
    folder = tmp_path / "copy"
    shutil.copytree(packed, folder)
    change(folder)
    assert main(["translate-text", "--model", str(folder), "--input", os.devnull]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(says, error), error


def test_a_manifest_leads_to_no_file_outside_and_options_to_no_path(packed: Path, tmp_path: Path) -> None:
    """A folder from elsewhere must not make fairseq read what it names."""
    outside = edited(packed, tmp_path / "a", lambda each: each["files"].update({"../codes": "0"}))
    with pytest.raises(MTScaffoldError, match=r"'\.\./codes' is not a file of this folder"):
        read_manifest(outside)
    changes: tuple[tuple[str, dict[str, Any] | None, str], ...] = (
        ("config.json", {"encoder_embed_path": "/etc/passwd"}, "encoder_embed_path: not an option of a packed model"),
        ("config.json", {"arch": "${oc.env:HOME}"}, "arch: not an option of a packed model"),
        ("config.json", None, "expected the options of a model"),
        ("dict.de.txt", None, "expected a subword, one space and its count"),
        ("segmentation.json", None, "codes: missing|must be"),
        ("config.json", {"arch": "none"}, "fairseq cannot build this model"),
        ("config.json", {"encoder_layers": 3}, "fairseq cannot build this model"),
        ("segmentation.json", {"codes": ["../../codes", "../../codes"]}, "a file that was not packed"),
        ("segmentation.json", {"codes": ["../a/bpe.codes", "../a/bpe.codes"]}, "a file that was not packed"),
    )
    for name, entry, says in changes:
        folder = tmp_path / "b"
        shutil.copytree(packed, folder)
        content = b"null" if entry is None else json.dumps(json.loads((folder / name).read_text()) | entry).encode()
        spoil(name, content)(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        from mt_scaffold.manifest import raw_digest

        manifest_with(files=manifest["files"] | {name: raw_digest(folder / name)})(folder)
        with pytest.raises(MTScaffoldError, match=says):
            PackedModel(folder, device="cpu")
        shutil.rmtree(folder)


def test_what_cannot_be_packed_is_named_before_anything_is_written(
    experiment: TranslationLayout, tmp_path: Path
) -> None:
    """So are a system that is not trained yet, and language models."""
    output = tmp_path / "packed"
    with pytest.raises(UsageError, match=r"a whole experiment; name one of its systems"):
        pack(experiment.folder, output)
    with pytest.raises(UsageError, match="no system is called scafold"):
        pack(experiment.folder / "scafold", output)
    with pytest.raises(UsageError, match="no training has seed 1; give one of 7"):
        pack(experiment.folder / "scaffold", output, seed=1)
    with pytest.raises(MTScaffoldError, match=r"bpe/seed-7/averaged\.pt: no such model"):
        pack(experiment.folder / "bpe", output)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").touch()
    with pytest.raises(MTScaffoldError, match="holds something else"):
        pack(experiment.folder / "scaffold", tmp_path / "else")
    models = tmp_path / "lm"
    models.mkdir()
    shutil.copy(ROOT / "configs" / "lm_demo.yaml", models / "config.yaml")
    with pytest.raises(UsageError, match="task: language_modeling: only translation systems can be packed"):
        pack(models / "bpe", output)
    assert not output.exists()


def test_only_options_of_beam_search_can_be_packed() -> None:
    """If sampling or an extra language model were silently dropped, translations would differ from the table's."""
    assert beam_search({"max-sentences": 8, "lenpen": 1, "fp16": False, "log-interval": 5}).batch_size == 8
    for option in ("sampling", "lm-path", "replace-unk", "diverse-beam-groups"):
        with pytest.raises(UsageError, match=rf"translate\.options\.{option}: unknown key.*these options only"):
            beam_search({option: True})
    with pytest.raises(UsageError, match=r"translate\.options\.beam: must be 1 or more"):
        beam_search({"beam": 0})


def test_a_test_set_with_its_own_tokenising_is_translated_like_it(packed: Path, tmp_path: Path) -> None:
    """As in the IWSLT'14 experiment, whose test set has its apostrophes straightened."""

    def change(manifest: dict[str, Any]) -> None:
        own = manifest["tokenise"] | {"straight_apostrophes": True, "normalise_punctuation": False}
        manifest["tokenise"] = own | {"straight_apostrophes": False}
        manifest["test_sets"]["odd.1"]["tokenise"] = own

    folder = edited(packed, tmp_path / "own", change)
    like, unlike = PackedModel(folder, device="cpu", test_set="odd.1"), PackedModel(folder, device="cpu")
    curly, straight = "a \u2019 b", "a ' b"
    assert like.hypotheses([curly]) == like.hypotheses([straight]) == unlike.hypotheses([straight])
    assert unlike.hypotheses([curly]) != unlike.hypotheses([straight])
    with pytest.raises(UsageError, match=r"--test-set odd\.2: .* knows no such test set \(known: odd\.1\)"):
        PackedModel(folder, device="cpu", test_set="odd.2")


def test_the_card_has_what_the_hub_reads(experiment: TranslationLayout, packed: Path) -> None:
    """Languages, metrics and an unknown licence, which only the owner can determine."""
    import yaml

    text = (packed / "README.md").read_text(encoding="utf-8")
    _, heading, body = text.split("---\n", 2)
    card = yaml.safe_load(heading)
    assert card["language"] == ["en", "de"] and card["license"] == "unknown" and card["metrics"] == ["bleu", "chrf"]
    scores = json.loads(experiment.scores(Run("scaffold", 7), "odd.1").read_text())["metrics"]
    (result,) = card["model-index"][0]["results"]
    assert [each["value"] for each in result["metrics"]] == [
        round(scores[name]["score"], 2) for name in ("bleu", "chrf")
    ]
    assert result["metrics"][0]["args"]["signature"] == scores["bleu"]["signature"]
    assert f"| odd.1 | BLEU | {scores['bleu']['score']:.2f} | `nrefs:1\\|case:mixed" in body
    manifest = read_manifest(packed)
    elsewhere = dataclasses.replace(manifest, origin=dataclasses.replace(manifest.origin, engine="ctranslate2"))
    assert OTHER_ENGINE in model_card(elsewhere, "joint codes") and OTHER_ENGINE not in text
    hub = pytest.importorskip("huggingface_hub", reason="checks the heading as the hub does; comes with 'harness'")
    data = hub.ModelCard(text).data
    assert data.eval_results[0].metric_type == "bleu" and data.eval_results[0].dataset_name == "odd.1"


def test_the_card_describes_systems_of_every_kind() -> None:
    """The sentence about a model's codes must not keep it from being packed."""
    systems = {
        "picky": {"algorithm": "picky", "threshold": 0.7},
        "trimmed": {"algorithm": "trimmed", "below": 100, "refill": True},
        "parity": {"algorithm": "parity"},
        "greedy": {"algorithm": "bpe", "inference": "greedy"},
    }
    config = parse_config(CONFIGURATION | {"systems": systems, "baseline": "greedy"})
    assert isinstance(config, Config)
    symbols = f"{config.codes.symbols:,} symbols"
    assert {name: _described(config, name) for name in config.systems} == {
        "picky": f"joint codes: PickyBPE, {symbols}, threshold 0.7",
        "trimmed": f"joint codes: BPE, {symbols}, trimmed below 100 and refilled",
        "parity": f"joint codes: parity-aware BPE, {symbols}",
        "greedy": f"joint codes: BPE, {symbols}, greedy inference",
    }


def test_a_gpu_that_is_requested_must_be_there(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device must have one of PyTorch's names."""
    monkeypatch.setattr("mt_scaffold.experiment.packing.packed_model.sees_gpu", lambda: False)
    with pytest.raises(MTScaffoldError, match="--device cuda: PyTorch finds no GPU"):
        PackedModel(packed, device="cuda")
    for name in ("gpu", "meta", "cuda:x"):
        with pytest.raises(UsageError, match=f"--device {name}: give cpu, cuda"):
            PackedModel(packed, device=name)


def started(arguments: list[str], pipe: tuple[int, int], errors: Path) -> int:
    """Run the command in a copy of this process, which has loaded fairseq, into a pipe; returns its process group."""
    if process := os.fork():
        return process
    status = 70
    try:
        os.setpgid(0, 0)
        import torch

        # The copy does not have OpenMP's threads.
        torch.set_num_threads(1)
        os.close(pipe[0])
        os.dup2(pipe[1], 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        status = main(arguments)
        sys.stderr.flush()
    finally:
        os._exit(status)


@pytest.mark.parametrize("end", ["Ctrl-C", "closed pipe"])
def test_ctrl_c_and_a_closed_pipe_end_it_quietly(
    packed: Path, model: PackedModel, sources: list[str], tmp_path: Path, end: str
) -> None:
    """There is no traceback, and no process is left; translations are written block by block."""
    text, errors = tmp_path / "text", tmp_path / "errors"
    os.mkfifo(text)
    read, write = os.pipe()
    arguments = ["translate-text", "-m", str(packed), "-i", str(text), "--block", "4", "--batch-tokens", "40"]
    process = started([*arguments, "--num-workers", "2", "--device", "cpu"], (read, write), errors)
    os.close(write)
    with open(text, "wb", buffering=0) as stream, open(read, "rb", buffering=0) as translated:
        block = "".join(f"{line}\n" for line in sources[:4]).encode()
        stream.write(block)
        assert select.select([translated], [], [], 60)[0] and translated.read(4096).count(b"\n") == 4
        if end == "Ctrl-C":
            os.killpg(process, signal.SIGINT)
        else:
            translated.close()
            stream.write(block)
        deadline = time.monotonic() + 60
        while (ended := os.waitpid(process, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert os.waitstatus_to_exitcode(ended[1]) == 128 + (signal.SIGINT if end == "Ctrl-C" else signal.SIGPIPE)
    assert errors.read_text() == ""
    with pytest.raises(ProcessLookupError):
        os.killpg(process, 0)
