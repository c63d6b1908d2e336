"""python -m studies.stored_trainings STORED EXPERIMENT: the translations and losses of trainings whose models are gone.

STORED has, for each training, SYSTEM/seed-N with the translations of the test sets as ids of the dictionary
(TEST.ids.xz: a line per sentence), TEST.losses.json.xz, tokens.csv.xz, training.json, and record.json with the digests
of the translated text. EXPERIMENT has the data and the dictionaries of the same configuration. Its folders of trainings
get what the models wrote, so that the steps ``score`` and ``compare`` of ``mt-scaffold experiment`` can follow. A
translation that is not the one of the digest is an error.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from pathlib import Path

from mt_scaffold.corpus.files import make_folder, write_text
from mt_scaffold.corpus.symbols import join_symbols
from mt_scaffold.errors import MTScaffoldError
from mt_scaffold.experiment.binarise.dictionary import read_symbols
from mt_scaffold.experiment.configuration.layout import Run
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.tokenise import detokenise
from mt_scaffold.experiment.runtime.provenance import digest_of


def restore(stored: Path, layout: TranslationLayout) -> list[Run]:
    """Write what the stored trainings of an experiment's systems wrote; return those that were restored.

    Raises MTScaffoldError for ids that do not give the translation of the record.
    """
    found = []
    for run in layout.runs:
        folder = stored / run.system / f"seed-{run.seed}"
        if folder.is_dir():
            _restore(folder, layout, run)
            found.append(run)
    return found


def _restore(folder: Path, layout: TranslationLayout, run: Run) -> None:
    digests = json.loads((folder / "record.json").read_text("utf-8"))["translations_sha256"]
    symbols = read_symbols(layout.dictionary(layout.data_of(run.system), layout.target))
    for test, digest in digests.items():
        rows = lzma.decompress((folder / f"{test}.ids.xz").read_bytes()).decode("ascii").splitlines()
        subwords = [" ".join(symbols[int(number)] for number in row.split()) for row in rows]
        words = [join_symbols(line) for line in subwords]
        text = "".join(f"{line}\n" for line in detokenise(words, layout.target))
        if digest_of([text.encode()]) != digest:
            raise MTScaffoldError(f"{folder}: {test} is not the translation of the record; is EXPERIMENT another one?")
        translation = layout.translation(run, test)
        make_folder(translation.parent)
        write_text(translation, text)
        write_text(layout.translation(run, test, "words"), "".join(f"{line}\n" for line in words))
        _unpack(folder / f"{test}.losses.json.xz", layout.losses(run, test))
    _unpack(folder / "tokens.csv.xz", layout.trained_tokens(run))
    write_text(layout.training_record(run), (folder / "training.json").read_text("utf-8"))


def _unpack(packed: Path, output: Path) -> None:
    make_folder(output.parent)
    write_text(output, lzma.decompress(packed.read_bytes()).decode("utf-8"))


def main() -> None:
    """Restore the trainings, and print which."""
    parser = argparse.ArgumentParser(prog="python -m studies.stored_trainings", description=__doc__)
    parser.add_argument("stored", metavar="STORED", type=Path)
    parser.add_argument("experiment", metavar="EXPERIMENT", type=Path)
    options = parser.parse_args()
    try:
        for run in restore(options.stored, TranslationLayout.read(options.experiment)):
            print(f"{run.name}: restored")
    except MTScaffoldError as error:
        sys.exit(f"studies.stored_trainings: {error}")


if __name__ == "__main__":
    main()
