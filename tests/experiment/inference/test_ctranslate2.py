"""CTranslate2: exported models compute and translate as fairseq does, and models that cannot are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from clear_model import PRE_NORM, SHARED, SIZES, Built, initialised, saved, sources
from test_average import Malicious

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.binarise.binarised_format import read_sentences
from mt_scaffold.experiment.binarise.pairs_as_ids import binarise
from mt_scaffold.experiment.binarise.pairs_as_words import binarise_words
from mt_scaffold.experiment.binarise.segmentation import joint_segmentation
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.configuration.limits import Limits
from mt_scaffold.experiment.inference.beam_search import BeamSearch
from mt_scaffold.experiment.inference.ctranslate2_engine import parse_search, translate_sentences
from mt_scaffold.experiment.inference.export_ctranslate2 import export_ctranslate2, sinusoidal_positions
from mt_scaffold.experiment.inference.model_files import data_folder_files, read_model
from mt_scaffold.experiment.inference.translate import translate
from mt_scaffold.experiment.runtime.results import to_json
from mt_scaffold.segment.apply import BPE

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the extra 'ctranslate2'")
pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")

VARIANTS = {
    "post-norm": SHARED,
    "pre-norm": PRE_NORM,
    "mixed norms, no final one": f"{SHARED} --decoder-normalize-before --no-decoder-final-norm",
    "learned positions": f"{SHARED} --encoder-learned-pos --decoder-learned-pos",
    "normalised embeddings": f"{SHARED} --layernorm-embedding --no-scale-embedding",
    "gelu": f"{SHARED} --activation-fn gelu",
    "gelu_accurate": f"{SHARED} --activation-fn gelu_accurate",
    "untied": SIZES,
    "output tied": f"{SIZES} --share-decoder-input-output-embed",
    "unlike sides": f"{SIZES} --decoder-layers 1 --decoder-attention-heads 4 --decoder-ffn-embed-dim 48 "
    "--decoder-embed-dim 24",
    "odd width": f"{SHARED} --encoder-embed-dim 33 --decoder-embed-dim 33 --encoder-attention-heads 3 "
    "--decoder-attention-heads 3",
}


def build(data: Path, path: Path, options: str) -> Built:
    """A model with random parameters, norms and biases included."""
    import torch

    built, cfg = initialised(data, path, options, seed=3)
    with torch.no_grad():
        for parameter in built.model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return saved(built, cfg)


@pytest.fixture(scope="module")
def built(clear_model: Built) -> Built:
    """A model like the demo's, with clear choices."""
    return clear_model


def forced(built: Built, source: Sequence[int], target: Sequence[int]) -> list[float]:
    """fairseq's log-probability of each subword of a given translation, and of its end."""
    import torch

    end = built.task.target_dictionary.eos()
    with torch.no_grad():
        output = built.model(
            torch.tensor([[*source, end]]), torch.tensor([len(source) + 1]), torch.tensor([[end, *target]])
        )
        scores = built.model.get_normalized_probs(output, log_probs=True)[0]
    found: list[float] = scores.gather(1, torch.tensor([[*target, end]]).T)[:, 0].tolist()
    return found


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_forced_decoding_gives_the_log_probabilities_of_fairseq(options: str, tiny_data: Path, tmp_path: Path) -> None:
    """Every parameter is in its place, and positions, norms, scales and activations are those of fairseq."""
    check_log_probabilities(build(tiny_data, tmp_path / "model.pt", options), tiny_data, tmp_path / "exported")


def test_each_side_may_have_its_own_dictionary(tiny_words: Path, tmp_path: Path) -> None:
    """The same subword has different ids on the two sides, and the vocabularies are two files."""
    data, segmentation = tmp_path / "data", joint_segmentation(tiny_words / "codes")
    limits = Limits(joined_dictionary=False)
    binarise(data, "en", "de", segmentation, tiny_words / "train", tests=[tiny_words / "odd.1"], limits=limits)
    check_log_probabilities(build(data, tmp_path / "model.pt", SIZES), data, tmp_path / "exported")
    names = {path.name for path in (tmp_path / "exported").iterdir()}
    assert names >= {"source_vocabulary.json", "target_vocabulary.json"} and "shared_vocabulary.json" not in names


def check_log_probabilities(built: Built, data: Path, exported: Path) -> None:
    """Export a model; odd.1 and its references must have the log-probabilities that fairseq gives them."""
    export_ctranslate2(built.files, exported)
    translator = ctranslate2.Translator(str(exported), intra_threads=1)
    symbols = (built.task.source_dictionary.symbols, built.task.target_dictionary.symbols)
    pairs = list(zip(sources(data, "odd.1"), read_sentences(data / "odd.1.en-de.de"), strict=True))
    texts = [[[known[each] for each in side] for side, known in zip(pair, symbols, strict=True)] for pair in pairs]
    scored = translator.score_batch([text[0] for text in texts], [text[1] for text in texts])
    assert len(scored) == 13
    for (source, target), found in zip(pairs, scored, strict=True):
        assert found.log_probs == pytest.approx(forced(built, source, target), abs=1e-4)


def test_positions_are_those_of_fairseq() -> None:
    """They begin after padding, and are computed in the same way beyond fairseq's table of 1,024."""
    import torch
    from fairseq.modules import SinusoidalPositionalEmbedding

    theirs = SinusoidalPositionalEmbedding(10, 1, 1024 + 2)
    tokens = torch.full((1, 1024), 5)
    # Angles of up to 1,025 in float32: their last bit is 0.00006.
    torch.testing.assert_close(torch.from_numpy(sinusoidal_positions(1024, 10)), theirs(tokens)[0], rtol=0, atol=2e-4)


class Translated(NamedTuple):
    """A sentence's best translation by fairseq's generator, and its score as fairseq-generate prints it."""

    text: str
    score: float
    clear: bool


def fairseq_translations(built: Built, sentences: Sequence[Sequence[int]], search: BeamSearch) -> list[Translated]:
    """Return the translations of fairseq's generator, sentence by sentence."""
    import torch
    from fairseq.sequence_generator import SequenceGenerator

    target = built.task.target_dictionary
    generator = SequenceGenerator(
        [built.model],
        target,
        beam_size=search.beam,
        len_penalty=search.lenpen,
        normalize_scores=not search.unnormalized,
        max_len_a=search.max_len_a,
        max_len_b=search.max_len_b,
        min_len=search.min_len,
    )
    found = []
    for sentence in sentences:
        tokens = torch.tensor([[*sentence, target.eos()]])
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([tokens.shape[1]])}}
        hypotheses = generator.generate([built.model], sample)[0]
        scores = [float(each["score"]) / math.log(2) for each in hypotheses[:2]]
        # Beyond rounding, and beyond the difference in how the engines treat the probability of padding.
        clear = len(scores) == 1 or scores[0] - scores[1] > 0.01 * abs(scores[0])
        found.append(Translated(target.string(hypotheses[0]["tokens"]), scores[0], clear))
    return found


@pytest.mark.parametrize(
    "options",
    [
        "--beam 5",
        "--beam 5 --lenpen 0.6 --max-len-a 0.2 --max-len-b 5",
        "--beam 1 --min-len 9 --max-len-b 30",
        "--beam 4 --unnormalized --max-len-b 12",
        "--beam 3 --lenpen 2 --batch-size 2 --max_len_b=40",
    ],
)
def test_translations_and_scores_are_those_of_fairseq(
    built: Built, tiny_data: Path, tmp_path: Path, options: str
) -> None:
    """Beam, length penalty and lengths mean the same, also for sentences that reach the maximum length."""
    search = parse_search(options.split())
    sentences = [each for subset in ("odd.1", "test1") for each in sources(tiny_data, subset)]
    expected = fairseq_translations(built, sentences, search)
    texts = [each.text for each in expected]
    assert len(set(texts)) > 15 and len({len(text.split()) for text in texts}) > 5
    clear = [number for number, each in enumerate(expected) if each.clear]
    assert len(clear) > 15
    found, report = translate_sentences(read_model(built.files), sentences, search, tmp_path, threads=2)
    assert [" ".join(found[number].subwords) for number in clear] == [texts[number] for number in clear]
    # CTranslate2 takes padding, and an end before the minimum length, out of the softmax; fairseq only out of the beam.
    if search.min_len == 1:
        assert [each.score for each in found] == pytest.approx([each.score for each in expected], rel=0.01)
    assert (report.compute_type, report.quantization, report.version) == ("float32", None, ctranslate2.__version__)
    assert not list(tmp_path.iterdir())


def test_the_model_prefers_other_translations_with_other_searches(built: Built, tiny_data: Path) -> None:
    """Otherwise the comparisons above would not notice a beam or length penalty without effect."""
    sentences = [each for subset in ("odd.1", "test1") for each in sources(tiny_data, subset)]
    searches = [BeamSearch(beam=1), BeamSearch(beam=5, lenpen=2), BeamSearch(beam=5, unnormalized=True)]
    greedy, long, likely = ([each.text for each in fairseq_translations(built, sentences, one)] for one in searches)
    for one, other in ((greedy, long), (greedy, likely), (long, likely)):
        assert sum(text != other_text for text, other_text in zip(one, other, strict=True)) >= 4


def test_an_empty_sentence_stays_empty(built: Built, tiny_data: Path, tmp_path: Path) -> None:
    """CTranslate2 does not translate it, and no other sentence may take its place."""
    model = read_model(built.files)
    first, second, *_ = sources(tiny_data, "odd.1")
    found, _ = translate_sentences(model, [first, [], second], BeamSearch(), tmp_path)
    alone, _ = translate_sentences(model, [first, second], BeamSearch(), tmp_path)
    assert [each.subwords for each in found] == [alone[0].subwords, [], alone[1].subwords]


@pytest.fixture(scope="module")
def translated(built: Built, tiny_data: Path, tiny_words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """odd.1 translated by fairseq-generate (the folder ``fairseq``) and by CTranslate2."""
    folder = tmp_path_factory.mktemp("translated")
    options = ["--beam", "5", "--max-len-a", "1.5", "--max-len-b", "10", "--max-tokens", "100"]
    for engine in ("fairseq", "ctranslate2"):
        translate(
            *(tiny_data, "odd.1", built.files.checkpoint, folder / engine, options),
            source_words=tiny_words / "odd.1.en",
            engine=engine,
        )
    return folder


def test_both_engines_write_the_same_files(translated: Path) -> None:
    """Later steps need not know the engine, which engine.json records."""
    for name in ("odd.1.de.subwords", "odd.1.de.words", "odd.1.de", "odd.1.en.words"):
        assert (translated / "ctranslate2" / name).read_bytes() == (translated / "fairseq" / name).read_bytes()
    fairseq, ours = (
        {line.split("\t")[0]: line for line in (translated / engine / "odd.1.generate.txt").read_text().splitlines()}
        for engine in ("fairseq", "ctranslate2")
    )
    assert {name: line for name, line in fairseq.items() if name.startswith("S-")} == {
        name: line for name, line in ours.items() if name.startswith("S-")
    }
    report = json.loads((translated / "ctranslate2" / "odd.1.engine.json").read_text())
    assert report["engine"] == "ctranslate2" and report["version"] == ctranslate2.__version__
    assert report["quantization"] is None and not (translated / "fairseq" / "odd.1.engine.json").exists()


def test_int8_is_close_and_recorded(built: Built, tiny_data: Path, tmp_path: Path) -> None:
    """8-bit parameters lose little probability, as fairseq computes it, and must not pass for those of float32.

    Which translations change depends on the library that multiplies 8-bit integers.
    """
    sentences = sources(tiny_data, "odd.1")
    model, search = read_model(built.files), BeamSearch(beam=1)
    exact, _ = translate_sentences(model, sentences, search, tmp_path)
    rounded, report = translate_sentences(model, sentences, search, tmp_path, "int8")
    assert report.quantization == "int8"
    # If the processor does not compute in int8, CTranslate2 converts the parameters, which stay rounded.
    assert report.compute_type.startswith("int8") or "int8" not in ctranslate2.get_supported_compute_types("cpu")
    assert [each.score for each in exact] != [each.score for each in rounded]

    best = [each.text.split() for each in fairseq_translations(built, sentences, search)]
    lost = [
        per_subword(built, source, text) - per_subword(built, source, each.subwords)
        for source, text, each in zip(sentences, best, rounded, strict=True)
    ]
    assert sum(lost) / len(lost) < 0.1 and max(lost) < 0.5
    # A different translation has a different score.
    same = [(one, two) for one, two in zip(exact, rounded, strict=True) if one.subwords == two.subwords]
    assert len(same) > len(exact) / 2
    assert [two.score for _, two in same] == pytest.approx([one.score for one, _ in same], abs=0.25)


def per_subword(built: Built, source: Sequence[int], subwords: Sequence[str]) -> float:
    """fairseq's log-probability of a given translation, per subword, its end included."""
    scores = forced(built, source, [built.task.target_dictionary.index(each) for each in subwords])
    return math.fsum(scores) / len(scores)


def test_words_are_segmented_as_ids_are_read(tiny_words: Path, tiny_data: Path, tmp_path: Path) -> None:
    """A data folder for training with BPE-dropout holds words; their subwords without dropout are translated."""
    binarise_words(
        *(tmp_path / "words", "en", "de", joint_segmentation(tiny_words / "codes")),
        tests=[tiny_words / "odd.1"],
        dictionaries=tiny_data,
    )
    assert sources(tmp_path / "words", "odd.1") == sources(tiny_data, "odd.1")


def test_an_exported_folder_translates_words(built: Built, tiny_words: Path, tiny_data: Path, tmp_path: Path) -> None:
    """Codes, vocabulary and settings are in the folder: nothing else of this package is needed except apply-bpe."""
    files = replace(
        built.files, segmentation=joint_segmentation(tiny_words / "codes"), tokenise=Tokenise(lowercase=True)
    )
    export_ctranslate2(files, tmp_path / "out", "int8")
    again = export_ctranslate2(files, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "mt_scaffold.json").read_text()) == json.loads(to_json(again))
    assert again.tokenise == Tokenise(lowercase=True) and again.quantization is None
    bpe = BPE(tmp_path / "out" / "bpe.codes")
    lines = (tiny_words / "odd.1.en").read_text(encoding="utf-8").splitlines()
    translator = ctranslate2.Translator(str(tmp_path / "out"))
    results = translator.translate_batch([bpe.segment(line).split() for line in lines], beam_size=2)
    expected, _ = translate_sentences(
        read_model(built.files), sources(tiny_data, "odd.1"), BeamSearch(beam=2), tmp_path, threads=1
    )
    assert [result.hypotheses[0] for result in results] == [each.subwords for each in expected]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"arch": "fconv"}, "architecture fconv: CTranslate2 takes only fairseq's transformer"),
        ({"activation_fn": "tanh"}, "trained with --activation-fn tanh, which CTranslate2 does not support"),
        ({"cross_self_attention": True}, "trained with --cross-self-attention"),
        ({"adaptive_softmax_cutoff": "10,20"}, "trained with --adaptive-softmax-cutoff"),
        ({"no_token_positional_embeddings": True}, "trained with --no-token-positional-embeddings"),
        ({"decoder_layers": 1}, r"no place for decoder\.layers\.1\.\S+ in CTranslate2's transformer"),
        ({"decoder_layers": 3}, r"no parameter decoder\.layers\.2\.self_attn\.q_proj\.weight"),
        ({"encoder_attention_heads": None}, "does not say its --encoder-attention-heads"),
        ({"decoder_attention_heads": 5}, "its decoder is 32 wide, which is not a multiple of its 5 attention heads"),
        ({"max_source_positions": -3}, "its --max-source-positions is -3"),
        ({"activation_fn": ["relu"]}, r"trained with --activation-fn \['relu'\]"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_exported_is_named(built: Built, tmp_path: Path, change: dict[str, Any], says: str) -> None:
    """No option of a model may be ignored; nothing is left behind."""
    import torch

    state = torch.load(built.files.checkpoint, weights_only=False)
    vars(state["cfg"]["model"]).update(change)
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match=rf"model\.pt: {says}"):
        export_ctranslate2(replace(built.files, checkpoint=tmp_path / "model.pt"), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_a_parameter_without_a_place_is_named(built: Built, tmp_path: Path) -> None:
    """Models that extend fairseq's transformer have such parameters."""
    import torch

    state = torch.load(built.files.checkpoint, weights_only=False)
    state["model"]["decoder.embed_length.weight"] = torch.zeros(3)
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match=r"no place for decoder\.embed_length\.weight"):
        export_ctranslate2(replace(built.files, checkpoint=tmp_path / "model.pt"), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder.layers.0.fc1.weight", (3, 3)),
        ("encoder.layers.1.fc2.bias", (1,)),
        ("decoder.layers.0.encoder_attn.k_proj.weight", (32, 16)),
        ("decoder.layers.0.final_layer_norm.weight", (32, 32)),
        ("encoder.embed_tokens.weight", ()),
        ("decoder.layers.1.fc1.bias", None),
    ],
)
def test_parameters_must_fit_together(built: Built, tmp_path: Path, name: str, shape: tuple[int, ...] | None) -> None:
    """CTranslate2 checks no sizes: it would read memory beyond the model's."""
    import torch

    state = torch.load(built.files.checkpoint, weights_only=False)
    state["model"][name] = "text" if shape is None else torch.zeros(shape)
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(MTScaffoldError, match=rf"model\.pt: .*parameter '?{name}"):
        export_ctranslate2(replace(built.files, checkpoint=tmp_path / "model.pt"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_without_options_is_named(built: Built, tmp_path: Path) -> None:
    """It is, whatever is in their place."""
    import torch

    state = torch.load(built.files.checkpoint, weights_only=False)
    for cfg in ("text", {"model": 5}, {"model": ["text"]}, None):
        torch.save({**state, "cfg": cfg}, tmp_path / "model.pt")
        with pytest.raises(MTScaffoldError, match=r"model\.pt: architecture None"):
            export_ctranslate2(replace(built.files, checkpoint=tmp_path / "model.pt"), tmp_path / "out")


def test_a_checkpoint_that_would_run_code_is_refused(built: Built, tmp_path: Path) -> None:
    """CTranslate2's own converter loads such files if told to."""
    import torch

    state = torch.load(built.files.checkpoint, weights_only=False)
    torch.save({**state, "more": Malicious(tmp_path / "owned")}, tmp_path / "evil.pt")
    with pytest.raises(MTScaffoldError, match=r"evil\.pt: refused: this checkpoint calls"):
        export_ctranslate2(replace(built.files, checkpoint=tmp_path / "evil.pt"), tmp_path / "out")
    assert not (tmp_path / "owned").exists() and not (tmp_path / "out").exists()


def test_dictionaries_must_fit_the_model(built: Built, tmp_path: Path) -> None:
    """With those of another segmentation, words would change; </s> as a word would end a sentence."""
    text = built.files.dictionaries[0].read_text(encoding="utf-8")
    (tmp_path / "dict.de.txt").write_text(text, encoding="utf-8")
    (tmp_path / "dict.en.txt").write_text(text + "more 1\n", encoding="utf-8")
    files = data_folder_files(built.files.checkpoint, tmp_path, "en", "de")
    with pytest.raises(MTScaffoldError, match=r"its encoder has \d+ embeddings, but \S+dict\.en\.txt has \d+ symbols"):
        export_ctranslate2(files, tmp_path / "out")
    first = text.split(" ", 1)[0]
    (tmp_path / "dict.en.txt").write_text(text.replace(first, "</s>", 1), encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"dict\.en\.txt: has a subword </s>"):
        export_ctranslate2(files, tmp_path / "out")


def test_options_that_cannot_be_followed_are_refused(tiny_data: Path, tmp_path: Path) -> None:
    """They would be ignored silently; those that change no translation may stay."""
    for options, says in (
        ("--sampling", "unrecognized arguments: --sampling; remove it, or translate with the engine fairseq"),
        ("--beam 4 --no-repeat-ngram-size 3", "unrecognized arguments: --no-repeat-ngram-size 3"),
        ("--beam x", "invalid int value"),
        ("--beam 0", "--beam must be 1 or more, not 0"),
    ):
        with pytest.raises(UsageError, match=f"engine ctranslate2: .*{says}"):
            parse_search(options.split())
    assert parse_search("--max_len_b 7 --num-workers 2 --max-sentences=3".split()) == BeamSearch(
        max_len_b=7, batch_size=3
    )
    model = tmp_path / "model.pt"
    with pytest.raises(UsageError, match="--engine marian: choose one of fairseq, ctranslate2"):
        translate(tiny_data, "odd.1", model, tmp_path / "out", engine="marian")
    with pytest.raises(UsageError, match="--quantization: only with --engine ctranslate2"):
        translate(tiny_data, "odd.1", model, tmp_path / "out", quantization="int8")


def test_limits_that_leave_no_room_are_named(built: Built, tmp_path: Path) -> None:
    """A sentence longer than the positions, or a maximum length below the minimum, is found before anything runs."""
    model = read_model(built.files)
    with pytest.raises(MTScaffoldError, match="sentence 2 has 1025 subwords, the model takes 1024; split the sentence"):
        translate_sentences(model, [[5], [5] * 1024], BeamSearch(), tmp_path)
    with pytest.raises(UsageError, match=r"sentence 1 may have at most 3 subwords .* at least 4"):
        translate_sentences(model, [[5]], BeamSearch(max_len_b=3, min_len=4), tmp_path)


def test_the_command_exports_a_model_or_a_system(
    built: Built, tiny_words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model is given by its files or as a system; the error names a missing option."""
    dictionaries = built.files.dictionaries[0].parent
    command = ["export", "ctranslate2", "--model", str(built.files.checkpoint), "--dictionaries", str(dictionaries)]
    command += ["-s", "en", "-t", "de", "--output", str(tmp_path / "out"), "--quantization", "int8"]
    assert main(command) == 2
    assert "export: give --codes, or --experiment and --system" in capsys.readouterr().err
    assert main([*command, "--codes", str(tiny_words / "codes")]) == 0
    assert (tmp_path / "out" / "bpe.codes").read_bytes() == (tiny_words / "codes").read_bytes()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"model.bin", "config.json", "shared_vocabulary.json", "segmentation.json", "mt_scaffold.json"}
    assert main(["export", "ctranslate2", "--experiment", str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert "with --experiment, give --system" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        *("--codes c", "--config c", "--vocabulary a b", "--vocabulary-threshold 5", "--glossaries x", "--separator #"),
        "--inference greedy",
    ],
)
def test_an_option_that_would_not_count_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An experiment determines the segmentation; a model given by name has no seeds to choose from."""
    name, *_ = option.split()
    assert main(["export", "ctranslate2", *"--experiment e --system s --output o".split(), *option.split()]) == 2
    assert f"with --experiment, leave out {name}\n" in capsys.readouterr().err
    files = "--model m --dictionaries d -s en -t de --codes c --output o --seed 2"
    assert main(["export", "ctranslate2", *files.split()]) == 2
    assert "with --model, leave out --seed\n" in capsys.readouterr().err


def test_a_missing_package_is_named(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a separate extra, not in those that the general message names."""
    monkeypatch.setattr("mt_scaffold.experiment.inference.export_ctranslate2.find_spec", lambda name: None)
    with pytest.raises(MTScaffoldError, match="CTranslate2 is not installed; pip install ctranslate2"):
        export_ctranslate2(built.files, tmp_path / "out")
