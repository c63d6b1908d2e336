"""StoryCloze from the user's files: its data set on the hub is a loading script, which ``datasets`` no longer runs.

Its authors send the files on request. The task is the harness' own, with its documents read from these files.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from mt_scaffold.corpus.files import PathLike
from mt_scaffold.errors import MTScaffoldError

TASK = "storycloze_2016"
# The names that the files are distributed under; some copies lack what follows the year.
_FILES = {"validation": "cloze_test_val__spring2016*.csv", "test": "cloze_test_test__spring2016*.csv"}
# The columns, as the loading script called them.
_COLUMNS = [
    "story_id",
    *(f"input_sentence_{number}" for number in range(1, 5)),
    *("sentence_quiz1", "sentence_quiz2", "answer_right_ending"),
]


def story_cloze_files(folder: PathLike) -> dict[str, Path]:
    """Return the files of StoryCloze 2016 in a folder, by split; MTScaffoldError if one is missing or ambiguous."""
    found = {}
    for split, pattern in _FILES.items():
        files = sorted(Path(folder).glob(pattern))
        if len(files) != 1:
            number = "several files are" if files else "no file is"
            raise MTScaffoldError(
                f"{folder}: {number} called {pattern}; give the folder of StoryCloze's files, which its authors send "
                "on request (https://cs.rochester.edu/nlp/rocstories)"
            )
        found[split] = files[0]
    return found


def write_story_cloze(folder: PathLike, output: PathLike) -> None:
    """Write the task as YAML to the folder ``output``, with its documents from the files in ``folder``.

    Raises MTScaffoldError as ``story_cloze_files`` does.
    """
    files = {split: str(path.resolve()) for split, path in story_cloze_files(folder).items()}
    task = {
        "include": str(resources.files("lm_eval") / "tasks" / "storycloze" / f"{TASK}.yaml"),
        "task": TASK,
        "dataset_path": "csv",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files, "column_names": _COLUMNS, "skiprows": 1},
    }
    # JSON is YAML.
    Path(output, f"{TASK}.yaml").write_text(json.dumps(task), encoding="utf-8")
