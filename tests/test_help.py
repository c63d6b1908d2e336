"""Command lines to copy, in --help and in the documentation, are accepted; shells complete the real options."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt_scaffold import cli
from mt_scaffold.commands.completion import SHELLS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "studies").rglob("*.md"))]


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser with the arguments of one command; skip if its packages are not installed."""
    try:
        return cli.make_parser([command])
    except ModuleNotFoundError as error:
        pytest.skip(f"{command} needs the package {error.name}")


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of mt-scaffold in lines of shell, without its redirections."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r" [0-9]>[^|;]*", "", line.strip().removeprefix("$ "))
        for part in [line, *re.findall(r"[$<]\((mt-scaffold [^)]*)\)", line)]:
            splitter = shlex.shlex(part, posix=True, punctuation_chars="<>|;&")
            splitter.whitespace_split = True
            words: list[str] = []
            for word in [*splitter, "|"]:
                if word not in ("|", ";", "&&"):
                    words.append(word)
                    continue
                ends = next((place for place, each in enumerate(words) if each in "<>"), len(words))
                if words and words[0] == "mt-scaffold":
                    yield words[:ends]
                words = []


def check(words: list[str], where: str) -> None:
    """Fail if the real parser does not accept a command line."""
    command = next(word for word in words[1:] if not word.startswith("-"))
    assert command in cli.COMMANDS, f"{where}: {shlex.join(words)}: no such command"
    try:
        parser_of(command).parse_args(words[1:])
    except SystemExit as end:
        pytest.fail(f"{where}: {shlex.join(words)}: exit status {end.code}")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_shows_examples_that_it_accepts(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A new command needs examples, and none can keep the old name of an option."""
    parser = parser_of(command)
    examples = cli.find_command(command).examples
    found = list(command_lines(examples))
    assert command in {words[1] for words in found}
    for words in found:
        check(words, f"example of {command}")
    with pytest.raises(SystemExit):
        parser.parse_args([command, "--help"])
    shown = capsys.readouterr().out
    assert all(f"\n  {line}\n" in shown for line in examples.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_documentation_calls_commands_as_they_are(page: Path) -> None:
    """Every line of a code block that calls mt-scaffold is accepted, unless it contains an ellipsis."""
    blocks = re.findall(
        r"^ *```(?:console|sh)?\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for block in blocks:
        calls = "\n".join(
            line for line in block.replace("\\\n", " ").splitlines() if re.match(r"\s*(\$ )?mt-scaffold [a-z]", line)
        )
        for words in command_lines(calls):
            if "..." not in words:
                check(words, page.name)


def test_the_page_of_commands_has_each() -> None:
    """Readers on a code host have no generated reference; the page has every command, and no removed one."""
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").partition("|---|---|\n")[2]
    named = re.findall(
        r"`([a-z-]+)[^`]*`", "".join(line.rsplit(" | ", 1)[1] for line in table.splitlines(keepends=True))
    )
    assert set(named) == set(cli.COMMANDS)


@pytest.mark.parametrize("script", sorted((ROOT / "scripts").glob("wmt14_*.sh")), ids=lambda path: path.name)
def test_the_scripts_of_the_paper_call_commands_as_they_are(script: Path) -> None:
    """Nobody runs them to completion before paying for GPUs; commands in their comments are accepted as well."""
    text = script.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", script], check=True)
    found = list(command_lines(text))
    assert [words[1] for words in found] == ["get-data", "run"]
    rehearsal = re.sub(r"\\\n# +", "", text.partition(f"{script.name} --sample")[2].partition("      a reh")[0])
    assert found[1].pop() == "$@"
    for words in [*found, ["mt-scaffold", "run", "config.yaml", *shlex.split("--sample" + rehearsal)]]:
        check(words, script.name)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("script", sorted((ROOT / "scripts").glob("*.sh")), ids=lambda path: path.name)
def test_the_shell_scripts_have_help(script: Path, option: str, tmp_path: Path) -> None:
    """It used to be passed to ``run``, or used as a folder, so that the script first fetched gigabytes or trained."""
    for options in ([option], ["--sample", option]):
        done = subprocess.run(["bash", script, *options], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == ""
        assert f"scripts/{script.name} [" in done.stdout and "set -euo" not in done.stdout
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("aply-bpe", "mt-scaffold: no command aply-bpe; did you mean apply-bpe? See mt-scaffold --help"),
        ("aply", "no command aply; did you mean apply-bpe or apply-unigram? See mt-scaffold --help"),
        ("bpe", "no command bpe; did you mean apply-bpe or learn-bpe or learn-joint-bpe-and-vocab? See"),
        ("segment", "no command segment; did you mean apply-bpe or apply-unigram? See"),
        ("learn-joint", "no command learn-joint; did you mean learn-joint-bpe-and-vocab? See"),
        ("run --check x.yaml", "run: unknown option --check; did you mean mt-scaffold check? See mt-scaffold run"),
        ("nonsense", "mt-scaffold: no command nonsense; see mt-scaffold --help"),
        ("learn-bpe --simbols 3", "learn-bpe: unknown option --simbols; did you mean --symbols? See LEARN --help"),
        ("learn-bpe --zzz=3", "learn-bpe: unknown option --zzz; see LEARN --help"),
        ("learn-bpe -s 10 stray", "learn-bpe: unrecognised arguments: stray; see LEARN --help"),
        ("apply-bpe --kodes x", "apply-bpe: unknown option --kodes; did you mean --codes? See "),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, which points to the help of that command, not to the list of all commands."""
    with pytest.raises(SystemExit) as end:
        cli.main(words.split())
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.count("\n") == 1
    assert says.replace("LEARN", "mt-scaffold learn-bpe") in error


def test_every_help_is_readable_without_an_extra() -> None:
    """With only segmentation installed, the help of every other command can be read."""
    program = f"""
import sys, importlib.abc, os
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top != "mt_scaffold" and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(name, name=name)
sys.path.insert(0, {str(ROOT)!r})
sys.meta_path.insert(0, Blocker())
sys.stdout = open(os.devnull, "w")
from mt_scaffold import cli
for command in cli.COMMANDS:
    try:
        print(command, cli.main([command, "--help"]), file=sys.stderr)
    except SystemExit as end:
        assert end.code == 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The completion scripts, by shell."""
    pytest.importorskip("shtab", reason="comes with the extra 'completion'")
    folder = tmp_path_factory.mktemp("completion")
    written = {}
    for shell in SHELLS:
        written[shell] = folder / shell
        with written[shell].open("wb") as stream:
            run = "import sys; from mt_scaffold.cli import main; sys.exit(main())"
            subprocess.run([sys.executable, "-c", run, "completion", shell], stdout=stream, check=True)
    return written


def completed(script: Path, *words: str) -> set[str]:
    """Return bash's completions of the last word of a command line."""
    program = (
        f"source {shlex.quote(str(script))}; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; "
        'function=$(complete -p mt-scaffold | grep -o "\\-F [^ ]*" | cut -c 4-); '
        f'"$function" mt-scaffold {shlex.quote(words[-1])} {shlex.quote(words[-2])}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", program], cwd=ROOT, capture_output=True, text=True)
    return set(done.stdout.split())


def test_bash_completes_commands_options_values_and_files(scripts: dict[str, Path]) -> None:
    """As a user gets them with the tab key, from bash itself."""
    learning = {"learn-bpe", "learn-joint-bpe-and-vocab", "learn-unigram"}
    assert learning == completed(scripts["bash"], "mt-scaffold", "learn")
    assert {"--total-symbols"} == completed(scripts["bash"], "mt-scaffold", "learn-bpe", "--to")
    from mt_scaffold.methods import methods

    assert set(methods("learn-bpe")) == completed(scripts["bash"], "mt-scaffold", "learn-bpe", "--algorithm", "")
    for words in (["apply-bpe", "--codes"], ["run"], ["trim"]):
        assert {"setup.py", "setup.cfg"} <= completed(scripts["bash"], "mt-scaffold", *words, "set")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_command_and_option(scripts: dict[str, Path], shell: str) -> None:
    """It is made from the parsers, and the shell can read it, if it is installed."""
    text = scripts[shell].read_text(encoding="utf-8")
    assert [name for name in [*cli.COMMANDS, "vocabulary-threshold"] if name not in text] == []
    if program := shutil.which(shell):
        assert subprocess.run([program, "-n", str(scripts[shell])], capture_output=True).stderr == b""


def test_options_of_learning_are_grouped_by_method(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of one method stood between those of all."""
    with pytest.raises(SystemExit, match="0"):
        cli.main(["learn-bpe", "--help"])
    of_all, picky, random = re.findall(r"^options of (.*):\n((?: .*\n)+)", capsys.readouterr().out, re.MULTILINE)
    assert (of_all[0], picky[0], random[0]) == ("all algorithms", "picky", "random")
    assert "--symbols" in of_all[1] and "--threshold" in picky[1] and "--draw" in random[1]
