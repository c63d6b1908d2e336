"""The tutorials and the README show real output: their commands and blocks of Python are run."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pprint
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mt_scaffold.cli import main

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "docs" / "tutorial.txt"
BLOCK = re.compile(r"(<!-- not run by the tests: .+? -->\n)?```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page's console blocks, each with the output that the page shows."""
    found: list[tuple[str, str]] = []
    for not_run, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if not not_run:
            found += re.findall(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return found


@pytest.mark.parametrize(("page", "least"), [("tutorial.md", 15), ("semantics.md", 3)])
def test_the_commands_print_what_the_page_shows(tmp_path: Path, page: str, least: int) -> None:
    """Every command runs, in order and in one folder, and prints the output below it, letter for letter."""
    (tmp_path / "tutorial.txt").write_bytes(TEXT.read_bytes())
    program = tmp_path / "bin" / "mt-scaffold"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mt_scaffold "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    shown = commands(ROOT / "docs" / page)
    assert len(shown) > least and sum(bool(output) for _, output in shown) > least / 2
    for command, output in shown:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        assert (command, done.stdout) == (command, output)


def test_the_separator_that_the_page_advises_keeps_every_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the default separator, words that end in it are lost, with a warning; with the page's option, none is."""
    monkeypatch.chdir(tmp_path)
    text = "@@ -1 +1 @@ foo@@ food\n" * 3
    Path("text").write_text(text, encoding="utf-8")
    assert main(["learn-bpe", "--symbols", "3", "--input", "text", "--output", "codes"]) == 0
    page = " ".join((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split())
    (advice,) = re.findall(r"give both `apply-bpe` and `join` a `--separator` .+?, such as `(--separator \S+)`", page)
    for options, keeps in (([], False), (advice.split(), True)):
        capfd.readouterr()
        assert main(["apply-bpe", "--codes", "codes", "--input", "text", "--output", "subwords", *options]) == 0
        assert main(["join", "--input", "subwords", "--output", "words", *options]) == 0
        assert (Path("words").read_text(encoding="utf-8") == text) == keeps
        assert ("a word that is lost" in capfd.readouterr().err) != keeps


FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that install or take minutes; in place of ``run``, ``check`` is run.
NOT_RUN = re.compile(r"(make|pip|source) ")


def readme_in_order() -> tuple[str, str]:
    """Return all of README that can be run, as a script, and the output that its console blocks show."""
    script, shown = ["set -e"], ""
    for language, block in FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        if language == "console":
            for line in block.splitlines():
                if line.startswith("$ "):
                    script.append(line[2:])
                else:
                    shown += f"{line}\n"
        elif language == "python":
            script.append(f"{sys.executable} - <<'END'\n{block}END")
        elif language == "":
            lines = [line for line in block.splitlines() if not NOT_RUN.match(line)]
            # The output of a check depends on the machine; only its failures count.
            script += [
                re.sub(r"^mt-scaffold run (\S+) --cores \d", r"mt-scaffold check \1", line) + " > check.log"
                if line.startswith("mt-scaffold run")
                else line
                for line in lines
            ]
    return "\n".join(script), shown


def test_readme_can_be_pasted_into_a_clone(tmp_path: Path) -> None:
    """Its blocks run in order, from the folder of a clone, and print the output that they show."""
    clone, program = tmp_path / "clone", tmp_path / "bin" / "mt-scaffold"
    for folder in ("docs", "configs", "mt_scaffold"):
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("*.so", "core", "results"))
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m mt_scaffold "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script, shown = readme_in_order()
    assert "learn-bpe" in script and "import BPE" in script and "mt-scaffold check configs/" in script
    environment = os.environ | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment["MT_SCAFFOLD_CACHE"] = str(tmp_path / "cache")
    done = subprocess.run(["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr


def test_the_tutorial_in_python_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block's output and the value of its last line, as a notebook shows them."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(TEXT, tmp_path)
    page = (ROOT / "docs" / "tutorial_python.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code, shown in re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", page, re.DOTALL):
        *statements, last = ast.parse(code).body
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if not isinstance(last, ast.Expr):
                exec(code, names)
            else:
                exec(compile(ast.Module(statements, []), "tutorial_python.md", "exec"), names)
                value = eval(compile(ast.Expression(last.value), "tutorial_python.md", "eval"), names)
                if value is not None:
                    pprint.pprint(value)
        assert printed.getvalue() == shown, code
