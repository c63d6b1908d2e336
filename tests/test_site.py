"""The reference follows the code, and GitHub and MkDocs parse every page alike.

``make docs`` builds the site and checks its links.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
from pathlib import Path

import pytest

for needed in ("griffe", "markdown_it", "mkdocs", "yaml"):
    pytest.importorskip(needed, reason="comes with the extra 'docs'")

import yaml  # noqa: E402

from mt_scaffold import cli, options_from_signature  # noqa: E402
from mt_scaffold.experiment.configuration.keys import keys_of  # noqa: E402
from mt_scaffold.experiment.runtime.schema import build  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md")]


def test_the_reference_has_every_command_and_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are generated; keys stand on written pages, with their defaults and an example that is accepted."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    from site_pages import generated_pages

    from mt_scaffold.experiment.configuration import Config
    from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig

    pages = generated_pages()
    shown = [pages[f"reference/{name}.md"] for name in ("commands", "experiment_commands")]
    assert sorted(re.findall(r"^## `(.*)`$", "".join(shown), re.MULTILINE)) == sorted(cli.COMMANDS)
    for name, config in (("configuration", Config), ("lm_configuration", LanguageModelConfig)):
        page = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
        found = re.findall(r"^## (.*)\n\n.+\n\n((?:- .*\n)+)", page, re.MULTILINE)
        written = {
            (path.strip("`"), *line.split("`")[1:2]): line for path, lines in found for line in lines.splitlines()
        }
        wanted = {(key.section or "The keys of the file", key.name): key for key in keys_of(config)}
        assert written.keys() == wanted.keys()
        for place, key in wanted.items():
            meaning, _, example = written[place].partition(" Example: ")
            value = str(key.default).lower() if isinstance(key.default, bool) else str(key.default).replace("'", "")
            if key.default is dataclasses.MISSING:
                assert "**required**" in meaning, place
            elif not (key.default is None or key.default == "" or dataclasses.is_dataclass(key.default)):
                assert f"default: `{value}`" in meaning, place
            build(key.kind, yaml.safe_load(example.strip("`"))[place[1]], place[1], key.limits)


def test_keys_prints_every_key_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a site, and of both kinds of experiments."""
    assert cli.main(["keys"]) == 0 == cli.main(["keys", "--documents"])
    printed = capsys.readouterr().out.splitlines()
    assert {"average.last: a whole number, 0 or more; default 5", "comparisons.NAME.text_of: text"} < {*printed}


def test_the_reference_has_every_public_name() -> None:
    """mkdocstrings documents the names that the page lists."""
    import mt_scaffold

    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: mt_scaffold\.(\w+)$", page, re.MULTILINE)) == set(mt_scaffold.__all__)


def test_the_configuration_to_copy_is_accepted(tmp_path: Path) -> None:
    """A configuration copied from docs/tutorial.md passes the checks, and so do the options of the rehearsal there."""
    from mt_scaffold.experiment.commands.run import ExperimentOptions
    from mt_scaffold.experiment.configuration import load_config
    from mt_scaffold.experiment.configuration.layout import requested_experiment

    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "ours.yaml"
    path.write_text(block, encoding="utf-8")
    assert list(load_config(path).systems) == ["bpe", "scaffold"]
    (options,) = re.findall(r"(--sample .+)", page)
    parser = argparse.ArgumentParser()
    options_from_signature.add_arguments(parser, ExperimentOptions)
    given = options_from_signature.call(ExperimentOptions, parser.parse_args(shlex.split(options)))
    rehearsal = requested_experiment([path], given.settings).experiment
    assert rehearsal.data.sample == 2000 and rehearsal.seeds == [1]


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").rglob("*.md")), *OUTSIDE], ids=lambda path: path.name)
def test_a_page_has_the_same_elements_on_github_and_on_the_site(page: Path) -> None:
    """Both parsers find as many: no list without a blank line before it, no code block in a list, no lost table."""
    import markdown
    from markdown_it import MarkdownIt

    text = page.read_text(encoding="utf-8")
    extensions = ["attr_list", "def_list", "tables", "pymdownx.superfences"]
    github = MarkdownIt("commonmark").enable("table").render(text)
    site = markdown.markdown(text, extensions=extensions)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    piped = [code for row in rows for code in re.findall(r"`[^`]*`", row) if r"\|" in code]
    assert piped == []  # the site shows the backslash
    for element in ("h1", "h2", "h3", "li", "ol", "pre", "table", "td", "th", "tr", "ul"):
        assert (element, len(re.findall(f"<{element}[ >]", site))) == (
            element,
            len(re.findall(f"<{element}[ >]", github)),
        )


def test_a_docstring_lists_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments become a list and calls become code; prose stays as it is."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    from site_pages import as_markdown

    text = 'Do it.\n\nprose: no, ``x``\n\nname: what\n    it is\nother, more: this\n\n>>> do("a")\n1\n\nRaises: nothing'
    assert as_markdown(text) == (
        "Do it.\n\n- `prose`: no, ``x``\n\n- `name`: what\n    it is\n- `other`, `more`: this\n\n"
        '```pycon\n>>> do("a")\n1\n```\n\nRaises: nothing'
    )
