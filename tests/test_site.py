"""The pages of the site that are made from code, and Markdown that GitHub and MkDocs parse alike.

``make docs`` builds the site and checks its links.
"""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

for needed in ("griffe", "markdown_it", "mkdocs", "yaml"):
    pytest.importorskip(needed, reason="comes with the extra 'docs'")

import yaml  # noqa: E402

from mt_scaffold import cli, options_from_signature  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md")]


@pytest.fixture(autouse=True)
def scripts_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """MkDocs puts the folder of its hooks on the path."""
    monkeypatch.syspath_prepend(ROOT / "scripts")


def test_the_reference_has_every_command_and_every_option() -> None:
    """They are taken from the parsers, so that a page cannot go stale."""
    from site_reference import EXPERIMENT, SEGMENTATION, commands_page

    assert sorted(SEGMENTATION + EXPERIMENT) == sorted(cli.COMMANDS)
    (actions,) = (each for each in cli.make_parser()._actions if isinstance(each, argparse._SubParsersAction))
    for name in cli.COMMANDS:
        page = commands_page("A command", [name])
        assert f"## `{name}`" in page
        assert all(f"\n  {line}\n" in page for line in cli.command_module(name).EXAMPLES.splitlines())
        options = [option for action in actions.choices[name]._actions[1:] for option in action.option_strings]
        missing = [option for option in options if not re.search(rf" {option}[ ,\n]", page)]
        assert missing == []


def test_the_reference_has_every_public_name() -> None:
    """mkdocstrings documents the names that the page lists."""
    import mt_scaffold

    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: mt_scaffold\.(\w+)$", page, re.MULTILINE)) == set(mt_scaffold.__all__)


def keys(value: Any) -> set[str]:
    """Return the keys in a configuration, without the names that it defines."""
    named = {"systems", "batches", "comparisons", "tests", "paper_setting", "options"}
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    inside = [
        keys(list(entry.values()) if key in named - {"options"} and isinstance(entry, dict) else entry)
        for key, entry in value.items()
        if key != "options"
    ]
    return set(value).union(*inside)


def test_the_reference_has_every_key_of_the_configurations() -> None:
    """The page is made from the schema; every key in our configurations is on it, with an example."""
    from site_configuration import configuration_page

    from mt_scaffold.experiment.configuration import load_experiment

    pages: dict[type, str] = {}
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        if path.name == "study_intrinsic.yaml":  # not an experiment: its schema is mt_scaffold.experiment.study's
            continue
        kind = type(load_experiment(path))
        page = pages.setdefault(kind, configuration_page("Keys", kind))
        used = keys(yaml.safe_load(path.read_text(encoding="utf-8")))
        assert {"name", "systems"} <= used
        said = {key: re.search(rf"\n- `{key}`: [A-Z`].*Example: `", page) for key in used}
        assert [key for key in used if said[key] is None] == []
    assert len(pages) == 2


def test_every_key_of_the_configurations_has_a_sentence_and_an_example() -> None:
    """They give its meaning, unit and form: the schema accepts each example, and no entry is left over."""
    from site_configuration import _dataclasses, _keys, configuration_page
    from site_keys import INTRODUCTIONS, KEYS

    from mt_scaffold.experiment.configuration import Config
    from mt_scaffold.experiment.configuration.language_model import LanguageModelConfig
    from mt_scaffold.experiment.runtime.schema import build

    used, kinds, waiting = set(), set(), [Config, LanguageModelConfig]
    while waiting:
        kind = waiting.pop()
        kinds.add(kind.__name__)
        for key, hint, limits, _ in _keys(kind):
            sentence, example = KEYS[kind.__name__, key]
            assert re.fullmatch(r"[A-Z`].*[.]", sentence), key
            build(hint, yaml.safe_load(example), f"{kind.__name__}.{key}", limits)
            used.add((kind.__name__, key))
            waiting += [each for each, _ in _dataclasses(hint) if each.__name__ not in kinds]
    # The sections train of both tasks are listed once.
    assert {key for _, key in KEYS} == {key for _, key in used} and set(INTRODUCTIONS) == kinds
    page = configuration_page("", Config)
    assert "- `dropout`: BPE-dropout: " in page and "default: `0.0`. Example: `dropout: 0.1`" in page


def test_results_are_told_as_finding_figure_caveats_and_command() -> None:
    """In this order, and the files of the figures exist: a table alone leaves its meaning to the reader."""
    page = (ROOT / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    told = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    for section in told:
        parts = re.findall(r"^(!\[|\*\*(?:Finding|Caveat|Command))", section, re.MULTILINE)
        assert [*dict.fromkeys(parts)][:4] == ["**Finding", "![", "**Caveat", "**Command"], section.splitlines()[0]
    assert len(told) >= 7
    figures = re.findall(r"^!\[[^]]+\]\(([^)]+)\)", page, re.MULTILINE)
    assert [name for name in figures if not (ROOT / "docs" / "results" / name).exists()] == []


def test_the_site_is_searched_from_a_folder_and_commands_wrap() -> None:
    """Search without a server needs a plugin; a long command wraps instead of running over the right edge."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\nuse_directory_urls: false\n" in settings and "\n  - offline\n" in settings
    style = (ROOT / "docs" / "site" / "site.css").read_text(encoding="utf-8")
    assert re.search(r"^\.md-typeset pre > code \{ white-space: pre-wrap;", style, re.MULTILINE)


def test_a_release_says_what_it_keeps() -> None:
    """Codes, ids, keys, commands and Python names: people who build on them know what stays."""
    releasing = (ROOT / "RELEASING.md").read_text(encoding="utf-8")
    kept = releasing.partition("\n## Compatibility\n")[2].partition("\n## ")[0]
    assert [name for name in ("codes files", "ids", "keys", "commands", "Python names") if name not in kept] == []


def test_pages_promise_no_release() -> None:
    """Before the first release, no page installs the package from an index or pulls an image."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    promise = re.compile(r"pip3? install (?:-\S+ )*['\"]?mt[-_]scaffold\b|docker pull|pypi\.org/project/mt-scaffold")
    found = {path.name: promise.findall(path.read_text(encoding="utf-8")) for path in pages}
    assert {name: promises for name, promises in found.items() if promises} == {}


def test_the_readme_is_short() -> None:
    """It says what this is in 800 words, with BPE and Scaffold-BPE on the same sentences, and the result."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 800
    shown = re.findall(r"^\$ (echo .*) \| mt-scaffold apply-bpe --codes (\w+)\.codes$", text, re.MULTILINE)
    assert (
        len(shown) == 4
        and {codes for _, codes in shown} == {"bpe", "scaffold"}
        and len({said for said, _ in shown}) == 2
    )
    assert "gain in BLEU is not significant" in text and "```bibtex" in text


def test_the_configuration_to_copy_is_accepted(tmp_path: Path) -> None:
    """A configuration copied from docs/tutorial.md passes the checks, and so do the options of the rehearsal there."""
    from mt_scaffold.experiment.commands.arguments import ExperimentOptions
    from mt_scaffold.experiment.configuration import load_config
    from mt_scaffold.experiment.configuration.layout import plan_experiment

    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "ours.yaml"
    path.write_text(block, encoding="utf-8")
    assert list(load_config(path).systems) == ["bpe", "scaffold"]
    (options,) = re.findall(r"(--sample .+)", page)
    parser = argparse.ArgumentParser()
    options_from_signature.add_arguments(parser, ExperimentOptions)
    given = options_from_signature.call(ExperimentOptions, parser.parse_args(shlex.split(options)))
    rehearsal = plan_experiment([path], given.settings).experiment
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


def test_a_docstring_lists_its_arguments() -> None:
    """Arguments become a list and calls become code; prose stays as it is."""
    from site_docstrings import as_markdown

    text = 'Do it.\n\nprose: no, ``x``\n\nname: what\n    it is\nother, more: this\n\n>>> do("a")\n1\n\nRaises: nothing'
    assert as_markdown(text) == (
        "Do it.\n\n- `prose`: no, ``x``\n\n- `name`: what\n    it is\n- `other`, `more`: this\n\n"
        '```pycon\n>>> do("a")\n1\n```\n\nRaises: nothing'
    )


def test_search_leads_to_how_to_pages() -> None:
    """A how-to page outweighs the reference, which contains every word."""
    from site_hooks import search_of

    boosts = {
        name: search_of(name).get("boost", 0) for name in ("corpora.md", "results/README.md", "reference/python.md")
    }
    assert sorted(boosts, key=lambda name: -float(str(boosts[name]))) == list(boosts)


def test_no_stored_table_is_a_page() -> None:
    """Search would find such pages although nothing links to them; the text, JSON and CSV are enough."""
    assert {path.name for path in (ROOT / "docs" / "results").rglob("*.md")} == {"README.md"}


def test_the_home_page_of_the_site_links_to_the_reference() -> None:
    """Otherwise it would tell readers of the site to build the site."""
    from site_hooks import generated_pages, home_of_the_site

    home = home_of_the_site((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    links = set(re.findall(r"reference/\w+\.md", home))
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / "reference").glob("*.md")}
    generated = {name for name in generated_pages() if name.startswith("reference/")}
    assert "make docs" not in home and links == generated | written
    with pytest.raises(ValueError, match="expected one item"):
        home_of_the_site(home)
