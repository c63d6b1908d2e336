"""``studies.stored_trainings`` gives an experiment what its lost models wrote, and nothing else."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from pathlib import Path

import pytest

from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.configuration import load_config
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from studies.stored_trainings import restore

CONFIG = Path(__file__).parents[2] / "configs" / "multi30k_confirmatory.yaml"
TEXT = "Ein Haus!\n\nDas Haus.\n"
FILES = {
    "test_2016_flickr.ids.xz": "5 4 6\n\n8 4 7\n",
    "test_2016_flickr.losses.json.xz": "losses",
    "tokens.csv.xz": "tokens",
}


def test_the_translation_of_the_digest_or_none(tmp_path: Path) -> None:
    layout = TranslationLayout(tmp_path, load_config(CONFIG))
    dictionary = layout.dictionary("bpe-4000", "de")
    dictionary.parent.mkdir(parents=True)
    dictionary.write_text("Haus 2\nEin 1\n! 1\n. 1\nDa@@ 1\n")
    stored = tmp_path / "stored" / "bpe" / "seed-6"
    stored.mkdir(parents=True)
    for name, content in FILES.items():
        (stored / name).write_bytes(lzma.compress(content.encode()))
    (stored / "training.json").write_text("training")
    digest = hashlib.sha256(TEXT.replace("Das", "Da").encode()).hexdigest()
    (stored / "record.json").write_text(json.dumps({"translations_sha256": {"test_2016_flickr": digest}}))
    run = Run("bpe", 6)
    with pytest.raises(MTScaffoldError, match=re.escape("test_2016_flickr is not the translation of the record")):
        restore(tmp_path / "stored", layout)
    assert not layout.translation(run, "test_2016_flickr").exists()
    dictionary.write_text("Haus 2\nEin 1\n! 1\n. 1\nDas 1\n")
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    (stored / "record.json").write_text(json.dumps({"translations_sha256": {"test_2016_flickr": digest}}))
    assert restore(tmp_path / "stored", layout) == [run]
    assert layout.translation(run, "test_2016_flickr").read_text() == TEXT
    assert layout.translation(run, "test_2016_flickr", "words").read_text() == "Ein Haus !\n\nDas Haus .\n"
    assert layout.losses(run, "test_2016_flickr").read_text() == "losses"
    assert (layout.trained_tokens(run).read_text(), layout.training_record(run).read_text()) == ("tokens", "training")
