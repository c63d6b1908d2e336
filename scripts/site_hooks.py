"""Hooks of MkDocs that add pages made from the code, and pages from files outside docs/.

mkdocs.yml names this file under ``hooks``; MkDocs calls its functions by their names.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from site_configuration import configuration_page
from site_reference import EXPERIMENT, SEGMENTATION, commands_page

from mt_scaffold.experiment.configuration import Config
from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig

_ROOT = Path(__file__).parent.parent
# Pages from files outside docs/.
_OUTSIDE = {
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "releasing.md": "RELEASING.md",
    "debian.md": "studies/debian/README.md",
}

# The home page's item about the reference on GitHub, and its replacement on the site, where the reference exists.
_NO_REFERENCE = re.compile(r"- Commands, Python functions and the keys[^\n]*\n {2}[^\n]*\n")
_REFERENCE = """\
- Commands: [segmentation](reference/commands.md), [experiments](reference/experiment_commands.md)
- Python functions: [segmentation](reference/python.md), [experiments](reference/experiment_python.md)
- Keys of a configuration: [translation](reference/configuration.md), [language models](reference/lm_configuration.md)
"""

# Weight in search of how-to pages, relative to results and project pages.
_HOW_TO_FIRST = 8
# Of the reference: a heading weighs a thousand words, and every name is a heading there.
_REFERENCE_LAST = 0.001
_NOT_HOW_TO = {
    *_OUTSIDE,
    "README.md",
    "architecture.md",
    "benchmarks.md",
    "commands.md",
    "fair_comparison.md",
    "glossary.md",
    "semantics.md",
}


def generated_pages() -> dict[str, str]:
    """Return the pages that have no file in docs/: name → Markdown."""
    pages = {
        "reference/commands.md": commands_page("Commands: segmentation", SEGMENTATION),
        "reference/experiment_commands.md": commands_page("Commands: experiments", EXPERIMENT),
        "reference/configuration.md": configuration_page("Configuration: translation", Config),
        "reference/lm_configuration.md": configuration_page("Configuration: language models", LanguageModelConfig),
    }
    outside = {name: (_ROOT / source).read_text(encoding="utf-8") for name, source in _OUTSIDE.items()}
    return pages | {name: _from_outside(text) for name, text in outside.items()}


def _from_outside(text: str) -> str:
    """Return the text of a file outside docs/ with links that work in docs/."""
    for name, source in _OUTSIDE.items():
        text = text.replace(f"]({source}", f"]({name}")
    return text.replace("](docs/", "](").replace("](../docs/", "](")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the notebook for download."""
    for name, text in generated_pages().items():
        files.append(File.generated(config, name, content=text))
    notebook = _ROOT / "notebooks" / "tutorial.ipynb"
    files.append(File.generated(config, "tutorial.ipynb", content=notebook.read_bytes()))
    return files


def search_of(name: str) -> dict[str, object]:
    """Return the search settings of a page: how-to pages come first."""
    folder = name.rpartition("/")[0]
    if folder == "reference":
        return {"boost": _REFERENCE_LAST}
    return {"boost": 1 if folder or name in _NOT_HOW_TO else _HOW_TO_FIRST}


def home_of_the_site(markdown: str) -> str:
    """Return the home page with links to the reference; raises ValueError if it does not mention the reference."""
    found, number = _NO_REFERENCE.subn(_REFERENCE, markdown)
    if number != 1:
        raise ValueError("docs/README.md: expected one item that begins '- Commands, Python functions and the keys'")
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files outside docs/ to their pages, and set the page's search settings."""
    page.meta.setdefault("search", search_of(page.file.src_uri))
    if page.file.src_uri == "README.md":
        markdown = home_of_the_site(markdown)
    for name, source in _OUTSIDE.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}")
    return markdown.replace("](../notebooks/", "](")
