"""The pages of the site that are not in docs/, and docstrings as Markdown; mkdocs.yml names this file for both.

A docstring lists arguments as lines ``name: meaning``, continued by indented lines, and shows calls after ``>>>``.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mt_scaffold import cli

_ROOT = Path(__file__).parent.parent
_OUTSIDE = {
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "releasing.md": "RELEASING.md",
    "debian.md": "studies/debian/README.md",
}
_COMMANDS = """\
The output of `mt-scaffold COMMAND --help`. Options may be shortened to an unambiguous prefix. A wrong option ends with
exit status 2, bad input with 1, each with one line on stderr.
"""
_ARGUMENTS = re.compile(r"^[a-z_][a-z0-9_]*(, [a-z_][a-z0-9_]*)*: .*(\n.+)*", re.MULTILINE)
_ARGUMENT = re.compile(r"^([a-z_][a-z0-9_, ]*): ", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Rewrites each docstring of the package when mkdocstrings loads it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Return a docstring with its arguments as a list and its calls as code."""
    paragraphs = []
    for text in re.split(r"\n\s*\n", docstring.strip("\n")):
        if text.startswith(">>>"):
            text = f"```pycon\n{text}\n```"
        elif _ARGUMENTS.fullmatch(text):
            text = _ARGUMENT.sub(lambda found: f"- `{found[1].replace(', ', '`, `')}`: ", text)
        paragraphs.append(text)
    return "\n\n".join(paragraphs)


def generated_pages() -> dict[str, str]:
    """Return the pages that have no file in docs/: name → Markdown."""
    parser = cli.make_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = {
        "commands": ["# Commands: segmentation", _COMMANDS],
        "experiment_commands": ["# Commands: experiments", _COMMANDS],
    }
    for name in cli.COMMANDS:
        shown = f"## `{name}`\n\n```output\n{commands.choices[name].format_help()}```\n"
        experiment = cli.FUNCTIONS.get(name, "").startswith("mt_scaffold.experiment.")
        parts["experiment_commands" if experiment else "commands"].append(shown)
    pages = {f"reference/{name}.md": "\n".join(text) for name, text in parts.items()}
    for name, source in _OUTSIDE.items():
        text = (_ROOT / source).read_text(encoding="utf-8")
        pages[name] = _with_links(text, "").replace("](docs/", "](").replace("](../docs/", "](")
    return pages


def _with_links(text: str, folder: str) -> str:
    """Return a page whose links to files outside docs/ point to the site's pages. folder: the part before the files."""
    for name, source in _OUTSIDE.items():
        text = text.replace(f"]({folder}{source}", f"]({name}")
    return text


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages; MkDocs calls this function, and the next, by its name."""
    for name, text in generated_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the pages of files outside docs/, and put the reference last in the results of a search."""
    # There every name is a heading, which weighs as much as a thousand words.
    if page.file.src_uri.startswith("reference/"):
        page.meta.setdefault("search", {"boost": 0.001})
    return _with_links(markdown, "../")
