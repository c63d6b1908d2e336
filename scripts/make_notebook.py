"""Write notebooks/tutorial.ipynb from docs/tutorial_python.md, with its outputs, and those outputs into the page.

python scripts/make_notebook.py    after a change of the page, of docs/tutorial.txt, or of printed output

The page is the source. Text becomes Markdown cells, each ``python`` block a code cell; the ``text`` block that follows
has the output of that cell.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

_ROOT = Path(__file__).resolve().parent.parent
PAGE = _ROOT / "docs" / "tutorial_python.md"
NOTEBOOK = _ROOT / "notebooks" / "tutorial.ipynb"
TEXT = _ROOT / "docs" / "tutorial.txt"
_CODE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", re.DOTALL)


def cells_of(page: str) -> nbformat.NotebookNode:
    """Return the page as a notebook without outputs."""
    cells = []
    for number, part in enumerate(_CODE.split(page)):
        if number % 3 == 0 and part.strip():
            cells.append(new_markdown_cell(_for_notebook(part.strip())))
        elif number % 3 == 1:
            cells.append(new_code_cell(part.rstrip("\n")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # otherwise random, and different in every run
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook: nbformat.NotebookNode = new_notebook(cells=cells, metadata=metadata)
    return notebook


def _for_notebook(text: str) -> str:
    """Return text with links that work from the notebook's folder, notebooks/."""
    text = text.replace("](../notebooks/tutorial.ipynb)", "](tutorial.ipynb)")
    return re.sub(r"\]\((?!http|tutorial\.ipynb)([\w./-]+)", r"](../docs/\1", text)


def executed(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in ``folder``, to which the tutorial's text is copied; raises if a cell fails."""
    shutil.copy(TEXT, folder)
    # So that the kernel imports the package of this source folder.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}, record_timing=False
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = (
                [nbformat.v4.new_output("stream", name="stdout", text=printed(cell))] if printed(cell) else []
            )
    notebook.metadata.pop("language_info", None)  # the version of this Python
    return notebook


def printed(cell: nbformat.NotebookNode) -> str:
    """Return the printed output of a cell, followed by its value."""
    # Printed output arrives in arbitrary pieces.
    said = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    values = [output.data["text/plain"] + "\n" for output in cell.outputs if output.output_type != "stream"]
    return "".join([said, *values])


def with_outputs(page: str, notebook: nbformat.NotebookNode) -> str:
    """Return the page with the outputs of a notebook's cells."""
    outputs = iter([printed(cell) for cell in notebook.cells if cell.cell_type == "code"])
    return _CODE.sub(lambda found: f"```python\n{found[1]}```\n\n```text\n{next(outputs)}```\n", page)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(cells_of(page), Path(folder))
    NOTEBOOK.parent.mkdir(exist_ok=True)
    NOTEBOOK.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    PAGE.write_text(with_outputs(page, notebook), encoding="utf-8")


if __name__ == "__main__":
    main()
