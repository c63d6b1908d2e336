"""The command ``mt-scaffold``: finds the subcommand, parses, calls it, turns errors into one line."""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import importlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from mt_scaffold import removed
from mt_scaffold.errors import MTScaffoldError

_TERMINATING = (signal.SIGTERM, signal.SIGHUP)
# Seconds after which a further signal ends the command again, in case the first was lost.
_PATIENCE = 5.0

# The commands in the groups of --help, from what people use to what workflows and programs call.
GROUPS = {
    "codes and text": {
        "learn-bpe": "learn merges from text: BPE, Scaffold-BPE or PickyBPE",
        "apply-bpe": "segment text with learned codes",
        "join": "join the subwords of a text into words",
        "import": "read a vocabulary of another program: tokenizers, tiktoken, SentencePiece, fastBPE",
        "extend": "learn more tokens from another text; old merges and ids stay",
        "trim": "mark rare, wasted or listed tokens of codes as scaffold (vocabulary trimming)",
        "learn-joint-bpe-and-vocab": "learn joint codes from several texts and write a vocabulary for each",
        "get-vocab": "count the words or subwords of a text",
        "count-words": "count the words of a corpus, or merge the counts of its shards",
        "encode": "turn documents into files of ids, for language models",
        "decode": "turn files of ids back into text",
        "learn-unigram": "learn a Unigram model with SentencePiece from words",
        "apply-unigram": "segment text with a Unigram model of SentencePiece",
        "tokenise": "normalise and tokenise text with sacremoses",
        "detokenise": "join the words of tokenised text into ordinary text",
        "clean": "drop pairs that are too long, empty or of unequal length",
    },
    "analysis of codes": {
        "explain": "show how words are segmented, merge by merge",
        "stats": "measure how codes segment a text",
        "compare-vocab": "show which tokens Scaffold-BPE removes from a BPE vocabulary, and adds (scores: compare)",
    },
    "experiments": {
        "init": "write a commented configuration for your own files",
        "keys": "print every key of a configuration",
        "run": "check and run an experiment, from raw text to the comparison",
        "check": "check an experiment without running it: files, options, models, disk space",
        "get-data": "fetch or generate the parallel text of an experiment",
        "report": "make one HTML page of a finished experiment",
        "compare": "compare the scores of several systems, with significance (vocabularies: compare-vocab)",
        "plan": "show how many seeds and test segments would find a difference",
    },
    "trained systems": {
        "translate-text": "translate raw text with a trained system of an experiment",
        "score": "score translations with sacreBLEU (language models: evaluate, lm-eval)",
        "evaluate": "score a language model in bits per byte of a text (tasks: lm-eval; translations: score)",
        "lm-eval": "score a language model on the tasks of lm-evaluation-harness (a text: evaluate)",
        "export": "convert a trained model for another program (codes alone: export-tokenizers)",
        "export-tokenizers": "write codes for tokenizers, tiktoken, SentencePiece or fastBPE (a model: export)",
    },
    "plumbing: one stage of an experiment, or for programs": {
        "dictionary": "make fairseq's dictionaries from words and codes",
        "binarise": "make a fairseq data folder from words and codes",
        "binarise-words": "make a fairseq data folder of words, to be segmented during training",
        "binarise-documents": "make a fairseq data folder for language models from documents and byte codes",
        "train": "train a model with fairseq",
        "average": "average checkpoints",
        "strip-optimizer": "remove the optimiser's state from checkpoints that have been averaged",
        "translate": "translate a test set with fairseq (raw text: translate-text)",
        "experiment": "run one step of an experiment, as the workflow does",
        "snakefile": "print the path of the workflow, for snakemake -s",
        "user-dir": "print the folder that fairseq's --user-dir takes",
        "completion": "print a script that makes a shell complete these commands and their options",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
# The function of each command, or the module if it declares its arguments itself; any other command is ``run`` of a
# module in mt_scaffold.commands. They are imported only when the command runs, so that apply-bpe starts at once.
FUNCTIONS = {
    "apply-unigram": "mt_scaffold.methods.unigram_segmenter:apply_unigram",
    "average": "mt_scaffold.experiment.commands.average:average_checkpoints",
    "binarise": "mt_scaffold.experiment.binarise.pairs_as_ids:binarise",
    "binarise-documents": "mt_scaffold.experiment.binarise.documents:binarise_documents",
    "binarise-words": "mt_scaffold.experiment.binarise.pairs_as_words:binarise_words",
    "check": "mt_scaffold.experiment.commands.run:check",
    "clean": "mt_scaffold.experiment.commands.clean:clean_text",
    "compare": "mt_scaffold.experiment.commands.compare:compare_scores",
    "decode": "mt_scaffold.segment.encode:decode_documents",
    "detokenise": "mt_scaffold.experiment.data.tokenise:detokenise_text",
    "dictionary": "mt_scaffold.experiment.binarise.dictionary:make_dictionaries",
    "encode": "mt_scaffold.segment.encode:encode_documents",
    "evaluate": "mt_scaffold.experiment.evaluation.bits_per_byte:evaluate",
    "experiment": "mt_scaffold.experiment.commands.experiment",
    "export": "mt_scaffold.experiment.commands.export:export",
    "get-data": "mt_scaffold.experiment.commands.get_data:get_text",
    "init": "mt_scaffold.experiment.commands.init:init",
    "join": "mt_scaffold.segment.join:join_text",
    "keys": "mt_scaffold.experiment.configuration.keys:keys",
    "learn-unigram": "mt_scaffold.experiment.commands.learn_unigram:learn_unigram",
    "lm-eval": "mt_scaffold.experiment.commands.lm_eval:ask",
    "plan": "mt_scaffold.experiment.workflow.common_steps:plan",
    "report": "mt_scaffold.experiment.commands.report:report",
    "run": "mt_scaffold.experiment.commands.run:run",
    "score": "mt_scaffold.experiment.evaluation.score:score",
    "snakefile": "mt_scaffold.experiment.workflow:snakefile",
    "strip-optimizer": "mt_scaffold.experiment.training.strip_optimizer:strip_optimizer",
    "tokenise": "mt_scaffold.experiment.data.tokenise:tokenise",
    "train": "mt_scaffold.experiment.commands.train:train_model",
    "translate": "mt_scaffold.experiment.inference.translate:translate",
    "translate-text": "mt_scaffold.experiment.inference.translate_text:translate_text",
    "user-dir": "mt_scaffold.experiment.runtime.fairseq:user_dir",
}
# The extra that installs a package, if it is not "workflow".
_EXTRAS = {
    "lm_eval": "harness",
    "sentencepiece": "unigram",
    "shtab": "completion",
}


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the hint that errors add to an unknown name: the most similar known name, or "" if none is similar."""
    import difflib  # only needed for errors

    matches = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {matches[0]}?" if matches else ""


def _commands_like(name: str) -> str:
    """Return the hint for an unknown command: those with a similar name or part, or else that do what it says."""
    found = [each for each in COMMANDS if name in each or nearest(name, each.split("-"))]
    found = sorted(found or [each for each, summary in COMMANDS.items() if summary.startswith(f"{name} ")])
    return nearest(name, COMMANDS) or (f"; did you mean {' or '.join(found)}?" if found else "")


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs, and leaves lines that begin with a space, the examples, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        wrap = super()._fill_text
        paragraphs = text.split("\n\n")
        return "\n\n".join(each if "\n " in each else wrap(each, width, indent) for each in paragraphs)

    def _format_action(self, action: argparse.Action) -> str:
        """Show the commands of ``mt-scaffold`` in their groups."""
        if not isinstance(action, argparse._SubParsersAction) or action.choices.keys() != COMMANDS.keys():
            return super()._format_action(action)
        shown = {each.dest: each for each in action._get_subactions()}
        parts = []
        for heading, group in GROUPS.items():
            parts.append(f"\n{' ' * self._current_indent}{heading}:\n")
            with self._indented():
                parts += [super(_HelpFormatter, self)._format_action(shown[name]) for name in group]
        return "".join(parts)

    @contextlib.contextmanager
    def _indented(self) -> Iterator[None]:
        self._indent()
        yield
        self._dedent()


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option in one line, like every other error; its help keeps the lines of examples."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, formatter_class=_HelpFormatter)
        self._given: list[str] = []

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as usual, but keep the arguments: errors say more than argparse's about a misspelt option."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        message = self._misspelt_option() or message
        self.exit(2, f"{self.prog}: {message}{' See' if message.endswith('?') else '; see'} {self.prog} --help\n")

    def _misspelt_option(self) -> str | None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        gone = removed.OPTIONS.get(self.prog.partition(" ")[2], {})
        for word, following in itertools.zip_longest(self._given, self._given[1:], fillvalue=""):
            name, _, value = word.partition("=")
            if name == "--":
                break
            if name in gone:
                return f"{name} was removed: {gone[name]}"
            if (value := value or following) in (values := removed.VALUES.get(name.removeprefix("--"), {})):
                return f"{name} {value} was removed: {values[value]}"
            # An abbreviation is not misspelt.
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                command = f"; did you mean mt-scaffold {name[2:]}?" if name[2:] in COMMANDS else ""
                return f"unknown option {name}{command or nearest(name, known)}"
        return None


class Command(NamedTuple):
    """A command: its function, the examples that ``--help`` shows, and the function that declares its arguments.

    Without the last, the signature of the function gives the command its arguments, and its docstring their help
    (``options_from_signature``); with it, the function takes the parsed namespace.
    """

    run: Callable[..., Any]
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None] | None


def find_command(name: str) -> Command:
    """Import the function of a command; raise ModuleNotFoundError if a package that it needs is missing."""
    place, _, function = FUNCTIONS.get(name, f"mt_scaffold.commands.{name.replace('-', '_')}").partition(":")
    module = importlib.import_module(place)
    examples = importlib.import_module("mt_scaffold.commands").examples_of(name)
    declares = None if function else getattr(module, "add_arguments", None)
    return Command(getattr(module, function or "run"), examples, declares)


def _call(function: Callable[..., Any], options: argparse.Namespace) -> int:
    """Call a function with its options; print the text that it returns, or ``as_text()``; a number is the status."""
    from mt_scaffold import options_from_signature

    result = options_from_signature.call(function, options)
    text = result.as_text() if hasattr(result, "as_text") else result
    if text and isinstance(text, str | os.PathLike):
        print(str(text).removesuffix("\n"))
    return result if isinstance(result, int) else getattr(result, "exit_status", 0)


def make_parser(commands: Collection[str] = COMMANDS.keys()) -> argparse.ArgumentParser:
    """Return the parser of ``mt-scaffold``: all commands by name, with the arguments of ``commands``.

    The parser for a single command has no others. Raises ModuleNotFoundError if a package that one needs is missing.
    """
    from mt_scaffold import __version__

    parser = _Parser(
        prog="mt-scaffold",
        description="Scaffold-BPE for machine translation and language models: learn and apply codes, run and compare "
        "experiments.",
    )
    parser.add_argument("--version", action="version", version=f"mt-scaffold {__version__}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        # Building the other parsers would delay the start of a single command.
        if len(commands) == 1 and name not in commands:
            continue
        subparser = subparsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=True
        )
        if name in commands:
            command = find_command(name)
            if command.add_arguments is not None:
                command.add_arguments(subparser)
                subparser.set_defaults(run=command.run)
            else:
                from mt_scaffold import options_from_signature  # slow to import, and segmenting does without it

                options_from_signature.add_arguments(subparser, command.run)
                subparser.set_defaults(run=functools.partial(_call, command.run))
            examples = "".join(f"\n  {line}" for line in command.examples.splitlines())
            subparser.epilog = f"{subparser.epilog}\n\n" if subparser.epilog else ""
            subparser.epilog += f"examples:{examples}"
    return parser


def parse(argv: Sequence[str], command: str | None) -> argparse.Namespace:
    """Return the options of a call of ``command``; exit with one line that points to --help if the call is wrong."""
    if command in removed.COMMANDS:
        make_parser([]).error(f"{command} was removed: {removed.COMMANDS[command]}")
    if command is not None and command not in COMMANDS:
        make_parser([]).error(f"no command {command}{_commands_like(command)}")
    parser = make_parser([] if command is None else [command])
    for argument in argv:
        scheme, separator, _ = argument.partition("=")[2 * argument.startswith("--")].partition("://")
        if separator and scheme in removed.URLS:
            _parser_of(parser, command).error(f"{argument}: URLs were removed: {removed.URLS[scheme]}")
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        wrong = _parser_of(parser, command)
        known = "--input" in wrong._option_string_actions and os.path.isfile(unknown[0])
        hint = f"; give a file as --input {unknown[0]}" if known else ""
        wrong.error(f"unrecognised arguments: {' '.join(unknown)}{hint}")
    return options


def _parser_of(parser: argparse.ArgumentParser, command: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    subparsers = next(each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    found: argparse.ArgumentParser = subparsers.choices.get(command or "", parser)
    return found


class _Termination:
    """Treats signals of schedulers, timeouts and closed terminals as Ctrl-C, so that no unfinished output is left."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._since = 0.0

    def _end(self, number: int, frame: FrameType | None) -> None:
        # A scheduler may send several at once; the second must not interrupt the clean-up.
        if self.number is None or time.monotonic() - self._since > _PATIENCE:
            self.number, self._since = number, time.monotonic()
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Handle the signals that would end this process at once; only the main thread can."""
        self.number = None
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = [number for number in _TERMINATING if signal.getsignal(number) is signal.SIG_DFL]
        for number in taken:
            signal.signal(number, self._end)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, signal.SIG_DFL)

    def leave_to_parent(self) -> None:
        """Let a forked process end at once: its parent cleans up."""
        for number in _TERMINATING:
            if signal.getsignal(number) == self._end:
                signal.signal(number, signal.SIG_DFL)


_termination = _Termination()
os.register_at_fork(after_in_child=_termination.leave_to_parent)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mt-scaffold`` with ``arguments`` (default: ``sys.argv``) and return its exit status."""
    with _termination.taken():
        status = _run(arguments)
    return status if _termination.number is None else 128 + _termination.number


def _run(arguments: Sequence[str] | None) -> int:
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is None:  # closed: print() would write to standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    try:
        options = parse(argv, command)
        status = options.run(options)
        if sys.stdout is not None:  # None if it is closed
            sys.stdout.flush()
        return int(status or 0)
    except MTScaffoldError as error:
        print(f"mt-scaffold: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader has gone (as in `| head`); this keeps Python from flushing stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except UnicodeEncodeError as error:
        shown = error.object[error.start : error.end]
        print(
            f"mt-scaffold: {error.encoding} cannot show {shown!a}: set PYTHONIOENCODING=utf-8, or a UTF-8 locale",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        # An error of a file has its name.
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        place = f"{error.filename}: " if error.filename else "<stdout>: " if is_full else ""
        print(f"mt-scaffold: {place}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except ModuleNotFoundError as error:
        package = (error.name or "mt_scaffold").partition(".")[0]
        if package == "mt_scaffold":
            raise
        extra = _EXTRAS.get(package, "workflow")
        print(
            f"mt-scaffold: {command} needs the Python package {package}, which is not installed: in the source "
            f"folder, pip install '.[{extra}]', or make venv for everything, fairseq too (see README.md)",
            file=sys.stderr,
        )
        return 1
    except MemoryError:
        print("mt-scaffold: out of memory", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
