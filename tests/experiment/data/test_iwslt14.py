"""The IWSLT'14 experiment: its options against the published facts, and its archive through the real steps."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq_cli", reason="needs the extra 'fairseq'")
pytest.importorskip("snakemake", reason="needs the extra 'workflow'")

import yaml
from fork_server import Snakemake
from iwslt14_archive import SENTENCES, TEST_PARTS, make_archive
from test_wmt14 import TINY, run_workflow
from wmt14_archives import CONFIGS, make_tar

from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import load_config, parse_config
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.data.markup import Markup, plain_lines
from mt_scaffold.experiment.data.moses import Tokeniser
from mt_scaffold.experiment.data.parallel import get_data
from mt_scaffold.experiment.runtime.result_warnings import ResultWarning

CONFIG = CONFIGS / "iwslt14_de_en.yaml"
# Every value as fairseq's examples/translation has it.
FACTS = {
    "arch": "transformer_iwslt_de_en",
    "share-decoder-input-output-embed": True,
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "clip-norm": 0.0,
    "lr": 0.0005,
    "lr-scheduler": "inverse_sqrt",
    "warmup-updates": 4000,
    "dropout": 0.3,
    "weight-decay": 0.0001,
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "max-tokens": 4096,
}

PLAIN = Tokenise(*[False] * 3)


def test_the_recipe_is_the_published_one() -> None:
    """A recipe that departs from the publication in one value cannot be compared with any result."""
    config = load_config(CONFIG)
    assert {name: config.train.all_options.get(name) for name in FACTS} == FACTS
    assert config.codes.symbols == 10000 and config.translate.options["beam"] == 5
    assert (config.clean.min_tokens, config.clean.max_tokens, config.clean.max_ratio) == (1, 175, 1.5)
    assert (config.data.valid_every, config.data.valid_cut) == (23, "after_cleaning")
    for part in ("train", "ted"):
        tokenise = config.tokenise_for(part)
        steps = (tokenise.normalise_punctuation, tokenise.remove_nonprinting, tokenise.aggressive_dash_splitting)
        assert not any(steps) and tokenise.lowercase and tokenise.straight_apostrophes == (part == "ted")
    assert not load_config(CONFIG, {"tokenise": {"lowercase": False}}).tokenise_for("ted").lowercase


@pytest.fixture(scope="module")
def prepared(
    snakemake: Snakemake, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, list[tuple[str, str]]]]:
    """The folder of the experiment, from archive to words by the real rules, and the sentences in the archive."""
    folder = tmp_path_factory.mktemp("iwslt14")
    (folder / "cache").mkdir()
    texts = make_archive(folder / "cache")
    folders = {"output": folder / "out", "cache": folder / "cache"}
    done = run_workflow(snakemake, CONFIG, folder, folder / "out" / "data-report.json", **folders)
    assert done.returncode == 0, done.stdout
    return folder / "out", texts


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_markup_is_removed_and_sentences_stay(prepared: tuple[Path, dict[str, list[tuple[str, str]]]]) -> None:
    """Titles and descriptions are training text; the rest of the markup is not, and references stay as they are."""
    out, texts = prepared
    for side, language in enumerate(("de", "en")):
        assert [line.strip() for line in lines(out / "raw" / f"train.{language}")] == [
            pair[side] for pair in texts["train"]
        ]
        test = [pair[side] for part in TEST_PARTS for pair in texts[part]]
        assert lines(out / "raw" / f"ted.{language}") == test
        words = lines(out / "words" / f"ted.{language}")
        assert words == [Tokeniser(language, PLAIN)(line.replace("\u2019", "'")).lower() for line in test]
    assert not (out / "raw" / "valid.de").exists()


def test_every_23rd_pair_after_cleaning_is_validation(prepared: tuple[Path, dict[str, list[tuple[str, str]]]]) -> None:
    """As in the published script, with awk, on cleaned text: a different count would give a different split."""
    out, texts = prepared
    words = [
        tuple(Tokeniser(code, PLAIN)(text).lower() for code, text in zip(("de", "en"), pair, strict=True))
        for pair in texts["train"]
    ]
    lengths = [sorted(len(text.split()) for text in pair) for pair in words]
    kept = [pair for pair, (shorter, longer) in zip(words, lengths, strict=True) if longer <= 1.5 * shorter]
    assert len(kept) < len(words) - 5, "some pairs must be dropped, or this test shows nothing"
    for side, language in enumerate(("de", "en")):
        assert lines(out / "words" / f"valid.{language}") == [pair[side] for pair in kept[22::23]]
        train = [pair[side] for number, pair in enumerate(kept, 1) if number % 23]
        assert lines(out / "words" / f"train.{language}") == train
    report = json.loads((out / "data-report.json").read_text(encoding="utf-8"))
    train, valid = report["clean"]["train"], report["clean"]["train"]["held_out"]
    assert (train["pairs_kept"] + valid["pairs_kept"], valid["pairs_kept"]) == (len(kept), len(kept) // 23)
    assert train["pairs_read"] + valid["pairs_read"] == len(words) == 12 * (SENTENCES + 2)
    assert "valid" not in report["get-data"]["corpora"] and "valid.de" not in report["tokenise"]


@pytest.mark.long
def test_the_whole_at_small_scale_without_a_network(snakemake: Snakemake, tmp_path: Path) -> None:
    """From the archive to the table, with a dictionary for each language, through the rules unchanged."""
    (tmp_path / "cache").mkdir()
    make_archive(tmp_path / "cache", talks=30)
    config = document()
    config["codes"]["symbols"] = 100
    config["systems"] = {name: {**config["systems"][name], "baseline": "bpe"} for name in ("bpe", "scaffold+dropout")}
    config["train"]["options"] |= TINY | {"max-epoch": 2, "max-tokens": 2000, "warmup-updates": 2}
    config["average"]["last"] = 2
    config["translate"]["options"] |= {"max-len-b": 10}
    config["score"]["bootstrap_samples"] = 20
    (tmp_path / "iwslt14.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    out = tmp_path / "out"
    done = run_workflow(snakemake, tmp_path / "iwslt14.yaml", tmp_path, output=out, cache=tmp_path / "cache")
    assert done.returncode == 0, done.stdout
    comparison = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert {row["system"] for row in comparison["rows"]} == {"bpe", "scaffold+dropout"}
    assert {"bleu", "chrf", "tokenised_bleu", "tokenised_bleu_lc"} <= comparison["rows"][0]["scores"].keys()
    assert "valid (held out of train)" in (out / "report.html").read_text(encoding="utf-8")
    german, english = (set(lines(path)) for path in sorted(out.glob("dictionaries/bpe-100*/dict.*.txt")))
    assert german != english, "joined_dictionary: false"
    for translation in out.glob("*/seed-1/translations/ted.en"):
        text = translation.read_text(encoding="utf-8")
        assert text == text.lower()


BROKEN: list[tuple[Markup, str, int, str]] = [
    ("ted", "<url>http://x</url>\nHello.\n<title>No end\n", 3, "<title>"),
    ("ted", "No beginning</description>\n", 1, "</description>"),
    ("ted", "Hello.\nText <talkid>1</talkid>\n", 2, "<talkid>"),
    ("ted", "<title>One</title><title>Two</title>\n", 1, "<title>"),
    ("seg", '<doc>\n<seg id="1"> One\n</seg>\n', 2, "one segment"),
    ("seg", '<seg id="1">One</seg> <seg id="2">Two</seg>\n', 1, "one segment"),
    ("seg", "<seg>One</seg>\n", 1, "one segment"),
]


@pytest.mark.parametrize(("markup", "text", "line", "shown"), BROKEN)
def test_malformed_markup_is_an_error_with_its_line(markup: Markup, text: str, line: int, shown: str) -> None:
    """A tag in the training text would be learned, and a lost line would shift every pair after it."""
    with pytest.raises(MTScaffoldError, match=rf"^f\.xml: line {line}: .*{re.escape(shown)}"):
        list(plain_lines(text.encode().splitlines(keepends=True), markup, "f.xml", Counter()))


def test_blanks_in_a_segment_cost_no_more_than_letters() -> None:
    """A line with thousands of them must not take hours; those at its ends are not part of the sentence."""
    blanks = b" \t" * 50_000
    with pytest.raises(MTScaffoldError, match="not one segment"):
        list(plain_lines([b'<seg id="1">' + blanks + b"x\n"], "seg", "f", Counter()))
    segments = [b" " * 9 + b'<seg id="1">' + blanks + b"One  two" + blanks + b"</seg> \n", b'<seg id="2"> </seg>']
    assert list(plain_lines(segments, "seg", "f", Counter())) == [b"One  two\n", b"\n"]


def test_a_text_without_segments_is_not_an_empty_test_set() -> None:
    """The wrong kind of markup is reported as such."""
    with pytest.raises(MTScaffoldError, match="f: no <seg id="):
        list(plain_lines([b"<url>x</url>\n", b"Hello.\n"], "seg", "f", Counter()))


def document(**data: Any) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    config["data"] |= data
    return config


def test_the_error_names_archive_member_and_line(tmp_path: Path) -> None:
    """The line is the one in the archive, so that it can be looked up."""
    make_archive(tmp_path)
    broken = b"<url>x</url>\n<title>A</title>\nHello.\n<description>No end\n"
    member = "de-en/train.tags.de-en.en"
    make_tar(tmp_path / "broken.tgz", {"de-en/train.tags.de-en.de": b"Hallo.\n", member: broken})
    config = document()
    config["data"]["archives"]["train"][0]["archive"] = {"url": "http://localhost/broken.tgz", "sha256": "unknown"}
    with pytest.raises(MTScaffoldError, match=rf"broken\.tgz: member {member}: line 4: <description> is not one"):
        get_data(parse_config(config), tmp_path / "raw", tmp_path)
    assert not list((tmp_path / "raw").glob("train*"))


def test_an_unknown_tag_is_kept_and_reported(tmp_path: Path) -> None:
    """Other years have <speaker>; the published script for this one would train on it, as we do with a warning."""
    make_archive(tmp_path)
    text = b"<speaker>A</speaker>\n" + b"Hello.\n" * 30
    make_tar(tmp_path / "other.tgz", {f"de-en/train.tags.de-en.{code}": text for code in ("de", "en")})
    config = document()
    config["data"]["archives"]["train"][0]["archive"] = {"url": "http://localhost/other.tgz", "sha256": "unknown"}
    report = get_data(parse_config(config), tmp_path / "raw", tmp_path)
    assert report.corpora["train"].lines == 31
    assert ResultWarning("markup", "<speaker>", "2") in report.warnings


def test_a_sample_counts_sentences_not_lines_of_markup(tmp_path: Path) -> None:
    """As for other formats, a sample is the first pairs of the corpus."""
    texts = make_archive(tmp_path)
    report = get_data(parse_config(document(sample=20)), tmp_path / "raw", tmp_path)
    assert report.corpora["train"].lines == 20
    assert lines(tmp_path / "raw" / "train.de")[-1].strip() == texts["train"][19][0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"valid_every": None}, r"data: give either archives\.valid or valid_every \(given: neither\)"),
        ({"valid_every": 1}, r"data\.valid_every: must be 2 or more"),
        ({"valid_cut": "later"}, r"data\.valid_cut: must be after_cleaning or before_cleaning"),
    ],
)
def test_a_validation_set_is_given_or_cut_out(change: dict[str, Any], error: str) -> None:
    """With neither, there would be no validation; with both, one would be ignored."""
    config = document(**change)
    if config["data"]["valid_every"] is None:
        del config["data"]["valid_every"]
    with pytest.raises(UsageError, match=error):
        parse_config(config)
    both = document()
    both["data"]["archives"]["valid"] = both["data"]["archives"]["train"]
    with pytest.raises(UsageError, match=r"given: both"):
        parse_config(both)


def test_test_words_cannot_be_lowercased_alone() -> None:
    """A system trained on cased words would be scored on text unlike any that it has seen."""
    config = document()
    config["tokenise"]["lowercase"] = False
    config["data"]["archives"]["tests"]["ted"]["tokenise"]["lowercase"] = True
    with pytest.raises(UsageError, match=r"tests\.ted\.tokenise\.lowercase: the systems train on cased words"):
        parse_config(config)
