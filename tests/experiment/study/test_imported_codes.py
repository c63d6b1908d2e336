"""Imported codes in an intrinsic study: rows of the same tables, next to the methods."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="comes with the extra 'workflow'")
pytest.importorskip("matplotlib", reason="comes with the extra 'workflow'")

from mt_scaffold import MTScaffoldError, UsageError
from mt_scaffold.analysis.stats import gini
from mt_scaffold.codes import Codes
from mt_scaffold.experiment.study import running, study
from mt_scaffold.experiment.study.configuration import load_study
from mt_scaffold.experiment.study.methods import of_imported
from mt_scaffold.segment.numbering import Numbering, Spaces, ordinary_tokens, write_numbered

YAML = """\
name: tiny
sizes: [3]
texts:
  small:
    files: {en: a.en, de: a.de}
    held_out: {every: 2}
    parallel: true
    morphemes: morphemes
methods:
  bpe: {algorithm: bpe}
baseline: bpe
imported: {other: other.codes}
"""
MERGES = ["s t", "e n", "Ġ st", "Ã ¶", "Ġst en"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.en").write_text("st en\n" * 40, encoding="utf-8")
    (tmp_path / "a.de").write_text("sten stö en\n" * 40, encoding="utf-8")
    (tmp_path / "morphemes").write_text("st en\n", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(YAML, encoding="utf-8")
    codes = Codes("\n".join(["#version: 0.3 bytes gpt2", *MERGES, ""]).encode(), "other.codes")
    tokens = ordinary_tokens(codes)
    write_numbered(codes, Numbering(tuple(range(len(tokens)))), tmp_path / "other.codes")
    return tmp_path


def test_codes_of_others_are_rows_of_the_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word follows a space; both imported codes and learned methods have every measure that applies to them."""
    monkeypatch.setattr(running, "draw", lambda *arguments: [])
    page = study(folder / "study.yaml", folder / "out", folder)
    with (folder / "out" / "measures.csv").open(encoding="utf-8", newline="") as stream:
        rows = {(row["method"], row["on"]): row for row in csv.DictReader(stream)}
    other, ours = rows["other", "unseen"], rows["bpe", "unseen"]
    # st, Ġ en; sten, stö, Ġ en: 20 lines each.
    assert (other["N"], other["words"], other["tokens"]) == ("5", "100", "160")
    assert float(other["gini"]) == pytest.approx(gini([3, 5]), abs=1e-6)
    assert int(other["not_utf8"]) == 128 and float(other["not_utf8_share"]) == 0
    assert (other["boundary_recall"], other["boundary_precision"], other["boundary_f1"]) == ("0.0", "0.0", "0.0")
    assert float(other["typo_cost"]) > 0 and float(ours["typo_cost"]) > 0
    assert rows["other", "train"]["typo_cost"] == "" and ours["not_utf8"] == ""
    assert "codes that were not learned here" in page.read_text(encoding="utf-8")


def test_what_has_no_id_is_one_subword() -> None:
    """It is named after the unknown token."""
    codes = Codes(b"#version: 0.3 bytes metaspace\nn a\n", "codes")
    tokens = ordinary_tokens(codes)
    numbers = tuple(number if token in ("n", "a", "Ġ", "na") else -1 for number, token in enumerate(tokens))
    numbering = Numbering(numbers, {"<unk>": 300}, unknown=300, spaces=Spaces("always"))
    from mt_scaffold.experiment.study import methods

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "numbering_of", lambda codes: numbering)
        patch.setattr("mt_scaffold.analysis.words.numbering_of", lambda codes: numbering)
        learned = of_imported(codes)
    assert learned.segment(["naöäna"]) == [("Ġ", "na", "<unk>", "na")]
    assert learned.base == {"n", "a", "Ġ", "<unk>"} and learned.merged == {"na"}


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    """A name that means something else in the results, and a parallel text whose files differ in length."""
    path = folder / "study.yaml"
    path.write_text(YAML.replace("other:", "bpe:"), encoding="utf-8")
    with pytest.raises(UsageError, match="'bpe' is a method already"):
        load_study(path)
    path.write_text(YAML.replace("other:", "bpe-3:"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"imported\.bpe-3: 'bpe-3' is the name of a method's results already"):
        load_study(path)
    path.write_text(YAML.replace("small:", "imported:"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"texts\.imported: 'imported' names the imported codes in the results"):
        load_study(path)
    path.write_text(YAML.replace("de:", "morphemes:"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"files\.morphemes: 'morphemes' names the file of morphemes in the results"):
        load_study(path)
    path.write_text(YAML, encoding="utf-8")
    (folder / "a.de").write_text("sten\n" * 39, encoding="utf-8")
    with pytest.raises(MTScaffoldError, match="39 lines, but another language of this parallel text has 40"):
        study(path, folder / "out", folder)
