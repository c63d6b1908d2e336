"""Text that has been tokenised or segmented before is recognised, and raw text is not."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytest.importorskip("sacremoses", reason="needs the extra 'workflow'")

from mt_scaffold.corpus.text import read_lines
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import load_experiment, parse_config
from mt_scaffold.experiment.configuration.data import Tokenise
from mt_scaffold.experiment.configuration.language_model_layout import LanguageModelLayout
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.moses import Tokeniser
from mt_scaffold.experiment.data.parallel import get_data
from mt_scaffold.experiment.data.preprocessed import looks_tokenised, refuse_markup
from mt_scaffold.experiment.runtime.result_warnings import read_warnings
from mt_scaffold.experiment.tasks.training_text import documents, parallel_text
from mt_scaffold.experiment.tasks.translation import tokenise_part
from mt_scaffold.experiment.workflow.initial import Pair, ParallelTexts, init_documents, init_translation


@pytest.mark.parametrize(
    ("line", "kind", "example"),
    [
        ("He isn &apos;t here today", "tokenised", "&apos;t"),
        ("a well @-@ known man", "tokenised", "@-@"),
        ("l&apos; homme est là", "tokenised", "l&apos;"),
        ("A man , in a hat , runs .", "tokenised", " ."),
        ("Schaff@@ ell@@ ösung", "segmented", "Schaff@@"),
        ("▁Schaff ell ▁ist ▁hier", "segmented", "▁Schaff"),
        ('<seg id="3">A man.</seg>', "marked up", "<seg id="),
        ("<TUV lang='en'>", "marked up", "<TUV"),
        ('</p> <p class="a"> words', "marked up", "</p>"),
        ("a < b and <b>bold</b>", None, None),
        ("Hello, world: this isn't a well-known man.", None, None),
        ("Est-ce vrai ? Non : jamais !", None, None),
        ("He said &quot;no&quot;, didn&apos;t he?", None, None),
        ("Q &amp; A: 1 &lt; 2", None, None),
        ("@@ -1,3 +1,3 @@", None, None),
        ("你好，世界。", None, None),
    ],
)
def test_tells_raw_text_from_words_and_subwords(
    tmp_path: Path, line: str, kind: str | None, example: str | None
) -> None:
    """Raw text is never refused for ordinary content; Moses' words and subwords are always found."""
    path = tmp_path / "text.en"
    path.write_text(f"{line}\n" * 10, encoding="utf-8")
    found = looks_tokenised(path)
    assert (found and found.kind, found and found.example) == (kind, example)
    if found is not None:
        assert (found.lines, found.found) == (10, 10)


def test_a_stray_escape_does_not_make_a_text_tokenised(tmp_path: Path) -> None:
    """One line in a thousand may quote an escape."""
    path = tmp_path / "text.en"
    path.write_text("It's raw text, really.\n" * 999 + "Moses writes @-@ here.\n", encoding="utf-8")
    assert looks_tokenised(path) is None


SMALL: dict[str, Any] = {
    "name": "small",
    "languages": {"source": "en", "target": "de"},
    "data": {
        "files": {
            "train": [{"source": {"path": "train.en"}, "target": {"path": "train.de"}}],
            "valid": [{"source": {"path": "valid.en"}, "target": {"path": "valid.de"}}],
            "tests": {"test": [{"source": {"path": "test.en"}, "target": {"path": "test.de"}}]},
        }
    },
    "codes": {"symbols": 10},
    "systems": {"bpe": {"algorithm": "bpe"}},
    "baseline": "bpe",
    "train": {"options": {"arch": "transformer", "max-epoch": 1}},
}
WORDS, RAW = "He isn &apos;t here , Tom .\n", "He isn't here, Tom.\n"


def experiment(folder: Path, **changes: Any) -> TranslationLayout:
    """Return an experiment whose validation text exists: words in English, raw text in German."""
    layout = TranslationLayout(folder, parse_config(SMALL | changes))
    for name in ("raw", "words", "logs"):
        (folder / name).mkdir()
    for language, text in (("en", WORDS), ("de", RAW)):
        layout.raw("valid", language).write_text(text * 10, encoding="utf-8")
    return layout


def test_tokenised_text_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokenised again, &apos; would silently become &amp; apos ;."""
    layout = experiment(tmp_path)
    with pytest.raises(MTScaffoldError, match=r"valid\.en: looks tokenised already .*&apos;t.*write tokenise: none"):
        tokenise_part(layout, "valid", "en")
    tokenise_part(layout, "valid", "de")
    for part, language in itertools.product(("train", "valid", "test"), ("en", "de")):
        (tmp_path / f"{part}.{language}").write_text("<p>\n<p>\n" if part == "test" else RAW * 2, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert [key for key, _ in parallel_text(layout.config).problems] == [
        f"data.files.tests.test[0].{side}.path" for side in ("source", "target")
    ]
    pairs = [Pair(f"{part}.en", f"{part}.de") for part in ("train", "test")]
    with pytest.raises(MTScaffoldError, match=r"test\.en: holds markup"):
        init_translation(ParallelTexts(pairs[:1], tests={"test": pairs[1]}))
    (tmp_path / "text.xz").write_bytes(b"\xfd7zXZ\0")
    with pytest.raises(MTScaffoldError, match="compressed by xz"):
        init_documents(["text.xz"])
    text = {"train": ["text.xz"], "valid": ["train.en"], "tests": {"t": ["train.en"]}}
    config = load_experiment(ROOT / "configs" / "lm_demo.yaml", {"data": {"documents": text}})
    ((key, says),) = documents(LanguageModelLayout(tmp_path, config)).problems  # type: ignore[arg-type]
    assert key == "data.documents.train" and "compressed by xz" in says
    refuse_markup([RAW], "text.tmx.gz")
    assert capsys.readouterr().err.endswith("text.tmx: marked up by its suffix, and read as a sentence per line\n")


@pytest.mark.parametrize("section", ["none", {"source": "none"}])
def test_tokenise_none_keeps_the_words(tmp_path: Path, section: object) -> None:
    """On both sides or one, white space separates the words; the other side is tokenised."""
    layout = experiment(tmp_path, tokenise=section)
    for language in ("en", "de"):
        tokenise_part(layout, "valid", language)
    assert read_lines(layout.uncleaned("valid", "en")) == [WORDS.rstrip("\n")] * 10
    expected = RAW if section == "none" else Tokeniser("de")(RAW)
    assert read_lines(layout.uncleaned("valid", "de")) == [expected.rstrip("\n")] * 10
    assert layout.config == parse_config(layout.config.to_dict())


def test_segmented_text_is_refused_whatever_the_configuration_says(tmp_path: Path) -> None:
    """Even with tokenise: none, systems would segment the subwords again."""
    layout = experiment(tmp_path, tokenise="none")
    layout.raw("valid", "en").write_text("He is n@@ o@@ t here\n" * 10, encoding="utf-8")
    with pytest.raises(MTScaffoldError, match=r"looks segmented already \(such as 'n@@'\).*before segmentation"):
        tokenise_part(layout, "valid", "en")


def test_what_looks_tokenised_can_be_tokenised_with_a_warning(tmp_path: Path) -> None:
    """The check can be wrong; without it, a warning appears next to the results."""
    layout = experiment(tmp_path, tokenise={"check": False})
    tokenise_part(layout, "valid", "en")
    assert [each.kind for each in read_warnings(layout.step_record("tokenise-valid.en"))] == ["preprocessed"]


def test_a_side_has_the_settings_of_both_but_for_its_own() -> None:
    """lowercase: true applies to both sides, as does every setting that a side does not change."""
    config = parse_config(SMALL | {"tokenise": {"lowercase": True, "target": {"normalise_punctuation": False}}})
    assert config.tokenise_for("test", "source") == Tokenise(lowercase=True)
    assert config.tokenise_for("test", "target") == Tokenise(normalise_punctuation=False, lowercase=True)


def test_get_data_removes_byte_order_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mark at the beginning of a file is removed, and others stay."""
    monkeypatch.chdir(tmp_path)
    for part in ("train", "valid", "test"):
        for language in ("en", "de"):
            mark = "\ufeff" if (part, language) in (("train", "de"), ("test", "en")) else ""
            Path(f"{part}.{language}").write_text(f"{mark}{part} {language}\n\ufeffa\n", encoding="utf-8")
    get_data(parse_config(SMALL), tmp_path / "raw")
    for part in ("train", "valid", "test"):
        for language in ("en", "de"):
            written = (tmp_path / "raw" / f"{part}.{language}").read_text(encoding="utf-8")
            assert written == f"{part} {language}\n\ufeffa\n"
    notices = [line for line in capsys.readouterr().err.splitlines() if "byte order mark" in line]
    assert notices == [
        "warning: test.en, source: removed a byte order mark (U+FEFF)",
        "warning: train.en, target: removed a byte order mark (U+FEFF)",
    ]
