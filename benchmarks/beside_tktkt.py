"""TkTkT's ScaffoldBPE and PickyBPE: their commands, how what they learn compares with ours, and examples of both.

benchmarks/tktkt.md explains what differs, and why. As a program it reruns the examples of that page:

    benchmarks/out/venv/bin/python benchmarks/beside_tktkt.py [--python INTERPRETER]

Our side comes from mt_scaffold's references in plain Python, TkTkT's from its own code. Exits with status 1 if either
differs from EXAMPLES, which has what the page says. The commands run this file in TkTkT's environment:

    beside_tktkt.py import - - -                              import it, and no more
    beside_tktkt.py learn-scaffold CORPUS MODEL N             learn N merged tokens; learn-picky likewise
    beside_tktkt.py apply CORPUS MODEL OUTPUT
    beside_tktkt.py words WORDS MODEL OUTPUT                  segment a word a line: its subwords or "!" and the error
    beside_tktkt.py examples EXAMPLES - OUTPUT                examples, JSON to JSON

All is on words between spaces, with all characters and tokens of any length. Words end in "</w>" for ScaffoldBPE, as in
mt_scaffold, and begin with "▁" for PickyBPE, which cannot have another mark. TkTkT counts base symbols and its mark as
tokens; they are added to N.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import systems
from systems import BIN, OUT, Command

PYTHON = OUT / "tktkt" / "bin" / "python"
# TkTkT with what its ScaffoldBPE and PickyBPE import, in a separate environment: it needs a transformers before 5,
# which needs a tokenizers before 0.23. It does not declare PyTorch, transformers and the packages of its extra "all",
# but imports these of them. pickybpe_bauwenst is its learner of both.
REQUIREMENTS = (
    "tktkt==2026.10.0",
    "bpe_knockout==2026.10.1",
    "modest_bauwenst==2026.10.1",
    "pickybpe_bauwenst==1.3.1",
    "transformers==4.57.6",
    "torch==2.13.0",
)
SCAFFOLD, PICKY = "TkTkT, ScaffoldBPE", "TkTkT, PickyBPE"
IMPORTING = "TkTkT, imported"
ALGORITHMS = {SCAFFOLD: "scaffold", PICKY: "picky"}
OURS = {SCAFFOLD: systems.SCAFFOLD, PICKY: systems.PICKY}
# What its ScaffoldBPE takes half a minute for.
BYTES = 4_000_000
SYMBOLS = (1_000, 4_000)
VERSIONS = ("tktkt", "pickybpe_bauwenst", "transformers", "torch")
_USUAL_MARKER = {"scaffold": "</w>", "picky": "▁"}
_THRESHOLD = 0.9
_NO_LIMIT = 1_000_000
_ALL_CHARACTERS = 1.0
# What the page says: words with their counts, learned codes, segmented words; "letters": each letter is a word, too.
# fmt: off
EXAMPLES: list[dict[str, Any]] = [
 {"name": "A scaffold token that returns", "algorithm": "scaffold", "end_of_word": False, "letters": 99,
  "words": {"abc": 6, "abx": 1, "aby": 1, "abz": 1, "pq": 4, "rs": 2}, "symbols": 3, "segment": ["abx"],
  "ours": {"codes": [["a b", "ab c", "p q"]], "segmented": {"abx": "ab x"}},
  "tktkt": {"codes": [["a b scaffold", "ab c", "p q", "r s"]], "scaffold base symbols": [],
            "segmented": {"abx": "a b x"}}},
 {"name": "A token that leaves the vocabulary twice", "algorithm": "scaffold", "end_of_word": False, "letters": 99,
  "words": {"abc": 9, "pq": 8, "abd": 7, "rs": 6, "tu": 5, "vw": 4}, "symbols": 4,
  "ours": {"codes": [["a b scaffold", "ab c", "p q", "ab d", "r s"]]},
  "tktkt": {"codes": [["a b scaffold", "ab c", "p q", "ab d", "r s", "t u"]], "scaffold base symbols": []}},
 {"name": "The head of the queue", "algorithm": "scaffold", "end_of_word": False, "letters": 99,
  "words": {"abcd": 5, "abce": 4, "fcd": 3, "abg": 2, "abh": 2, "abi": 2}, "symbols": 2, "segment": ["abg"],
  "ours": {"codes": [["a b", "ab c"]], "segmented": {"abg": "ab g"}},
  "tktkt": {"codes": [["a b scaffold", "ab c", "abc d"]], "scaffold base symbols": [],
            "segmented": {"abg": "a b g"}}},
 {"name": "Base symbols", "algorithm": "scaffold", "end_of_word": False,
  "words": {"ab": 5, "a": 1, "b": 9, "cd": 3, "c": 9, "d": 9, "ef": 2}, "symbols": 1, "segment": ["ab", "a"],
  "ours": {"codes": [["a b"]], "segmented": {"ab": "ab", "a": "a"}},
  "tktkt": {"codes": [["a b", "c d"]], "scaffold base symbols": ["a"],
            "segmented": {"ab": "ab", "a": "IndexError: list index out of range"}}},
 {"name": "A queue that runs empty", "algorithm": "scaffold", "end_of_word": False,
  "words": {"ab": 2}, "symbols": 1, "segment": ["ab"],
  "ours": {"codes": [["a b"]], "segmented": {"ab": "ab"}},
  "tktkt": {"error": "IndexError: list index out of range"}},
 {"name": "Ties", "algorithm": "scaffold", "end_of_word": False, "letters": 99, "runs": 200,
  "words": {"abc": 5, "abd": 5, "abe": 5}, "symbols": 2,
  "ours": {"codes": [["a b", "ab e"]]},
  "tktkt": {"codes": [["a b", "ab c"], ["a b", "ab d"], ["a b", "ab e"]], "scaffold base symbols": []}},
 {"name": "A token next to itself", "algorithm": "scaffold", "end_of_word": False, "letters": 99,
  "words": {"ababab": 4, "cd": 3, "ef": 2}, "symbols": 3,
  "ours": {"codes": [["a b scaffold", "ab ab scaffold", "abab ab", "c d", "e f"]]},
  "tktkt": {"codes": [["a b", "b a", "ab ab"]], "scaffold base symbols": []}},
 {"name": "The remains of a removed token", "algorithm": "picky", "end_of_word": False,
  "words": {"abc": 90, "abd": 2}, "symbols": 2,
  "ours": {"codes": [["a b", "ab c", "split ab a b", "b d"]]},
  "tktkt": {"error": "AssertionError: Merged token ab (0) was already absent in the vocabulary."}},
 {"name": "At the threshold", "algorithm": "picky", "end_of_word": False,
  "words": {"the": 90, "he": 10}, "symbols": 2, "threshold": 0.9,
  "ours": {"codes": [["h e", "t he", "split he h e", "h e"]]},
  "tktkt": {"codes": [["h e", "t he"]]}},
 {"name": "A pair of equal tokens", "algorithm": "picky", "end_of_word": False,
  "words": {"abab": 9, "abc": 1, "abd": 1}, "symbols": 2, "threshold": 0.85,
  "ours": {"codes": [["a b", "ab ab", "split ab a b", "a b"]]},
  "tktkt": {"codes": [["a b", "ab ab"]]}},
 {"name": "The mark of the end of a word", "algorithm": "picky", "end_of_word": True, "marker": "</w>",
  "words": {"the": 90, "he": 10}, "symbols": 2, "threshold": 0.8,
  "ours": {"codes": [["h e</w>", "t he</w>", "split he</w> h e</w>", "h e</w>"]]},
  "tktkt": {"error": "AttributeError: 'NoneType' object has no attribute 'walk'"}}
]
# fmt: on


def _program(*arguments: object, output: Path | None = None) -> Command:
    return Command((str(PYTHON), str(Path(__file__).resolve()), *map(str, arguments)), output)


def importing() -> Command:
    """Import TkTkT: what each of its other commands starts with."""
    return _program("import", "-", "-", "-")


def learn(system: str, corpus: Path, model: Path, symbols: int) -> Command:
    """Learn ``symbols`` merged tokens."""
    if system in ALGORITHMS:
        return _program(f"learn-{ALGORITHMS[system]}", corpus, model, symbols, output=model)
    return systems.learn(system, corpus, model, symbols)


def apply(system: str, corpus: Path, model: Path, output: Path) -> Command:
    """Segment a text."""
    if system in ALGORITHMS:
        return _program("apply", corpus, model, output, output=output)
    return systems.apply(system, corpus, model, output)


def slice_of(corpus: Path, output: Path) -> Path:
    """The first lines of a corpus, up to some 4 MB."""
    with corpus.open("rb") as source:
        output.write_bytes(b"".join(source.readlines(BYTES)))
    return output


def word_counts(corpus: Path) -> Counter[str]:
    """Words between white space, which TkTkT and mt_scaffold count alike where it is spaces and line ends."""
    with corpus.open(encoding="utf-8", newline="\n") as lines:
        return Counter(word for line in lines for word in line.split())


def vocabulary(model: dict[str, Any]) -> dict[str, int]:
    """How many merges a model of TkTkT has, and tokens that merges made, which of them are removed or scaffold."""
    if model["algorithm"] == "scaffold":
        merged = {a + b for a, b in model["merges"]}
        scaffold = set(model["scaffold"])
        return {
            "merges": len(model["merges"]),
            "normal": len(merged - scaffold),
            "removed": len(merged & scaffold),
            "base symbols removed": len(scaffold - merged),
        }
    merged = {"".join(tokens) for is_merge, tokens in model["events"] if is_merge}
    types = set(model["types"])
    merges = sum(is_merge for is_merge, _ in model["events"])
    return {"merges": merges, "normal": len(merged & types), "removed": len(merged - types), "base symbols removed": 0}


def compare(
    run: Callable[[Command], object], system: str, counts: Counter[str], model: Path, codes: Path, folder: Path
) -> dict[str, Any]:
    """Segment every word of the corpus with TkTkT's model and our codes; count subwords, words that differ or fail.

    Subwords are compared for words that TkTkT can segment only, and their boundaries where both mark the ends of words.
    """
    words, own, other = folder / "words", folder / "own", folder / "other"
    words.write_text("".join(f"{word}\n" for word in counts), encoding="utf-8")
    run(_program("words", words, model, other, output=other))
    run(
        Command(
            (str(BIN / "mt-scaffold"), "apply-bpe", "--codes", str(codes), "--input", str(words), "--output", str(own)),
            own,
        )
    )
    failed: Counter[str] = Counter()
    subwords: Counter[str] = Counter()
    failing_words, differing_words, compared_words = 0, 0, 0
    for word, ours, theirs in zip(counts, _lines(own), _lines(other), strict=True):
        if theirs.startswith("!"):
            failed[theirs[1:]] += 1
            failing_words += counts[word]
            continue
        mine = [subword.removesuffix("@@") for subword in ours.split(" ")]
        subwords["ours"] += counts[word] * len(mine)
        subwords["theirs"] += counts[word] * len(theirs.split(" "))
        compared_words += 1
        differing_words += mine != theirs.removesuffix("</w>").split(" ")
    return {
        **vocabulary(json.loads(model.read_text(encoding="utf-8"))),
        "word types": len(counts),
        "failed word types": sum(failed.values()),
        "failed words": failing_words / counts.total(),
        "errors": dict(failed),
        "differing word types": differing_words / max(compared_words, 1) if system == SCAFFOLD else None,
        "subwords": subwords["theirs"] / max(subwords["ours"], 1),
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def read_examples() -> list[dict[str, Any]]:
    """The examples; where one asks for it, each letter is a separate word, too."""
    examples = copy.deepcopy(EXAMPLES)
    for example in examples:
        if "letters" in example:
            letters = sorted(set("".join(example["words"])))
            example["words"] |= dict.fromkeys(letters, example["letters"])
    return examples


def ours(example: dict[str, Any]) -> dict[str, Any]:
    """The codes of an example, without the first line, and words segmented with them."""
    from mt_scaffold.analysis.reference import ReferenceBPE, learn
    from mt_scaffold.analysis.reference_picky import MergeEvent, learn_picky

    words, symbols, end_of_word = example["words"], example["symbols"], example["end_of_word"]
    if example["algorithm"] == "picky":
        events = learn_picky(words, symbols, example.get("threshold", 0.9), end_of_word=end_of_word).events
        lines = [
            " ".join(event.pair) if isinstance(event, MergeEvent) else " ".join(("split", event.token, *event.pieces))
            for event in events
        ]
        return {"codes": [lines]}
    learned = learn(words, symbols, end_of_word=end_of_word)
    lines = [f"{a} {b}" + " scaffold" * (a + b in learned.scaffold) for a, b in learned.merges]
    found: dict[str, Any] = {"codes": [lines]}
    if "segment" in example:
        bpe = ReferenceBPE(learned.merges, learned.scaffold, end_of_word=end_of_word)
        found["segmented"] = {word: " ".join(bpe.segment_word(word)) for word in example["segment"]}
    return found


def theirs(examples: list[dict[str, Any]], python: Path) -> list[dict[str, Any]]:
    """The same of TkTkT, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "examples.json", Path(folder) / "results.json"
        asked.write_text(json.dumps(examples), encoding="utf-8")
        command = [str(python), str(Path(__file__).resolve()), "examples", str(asked), "-", str(answered)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        results: list[dict[str, Any]] = json.loads(answered.read_text(encoding="utf-8"))
    return results


def show(found: dict[str, Any]) -> str:
    """A result in one line."""
    if "error" in found:
        return str(found["error"])
    parts = [" or ".join(", ".join(lines) for lines in found["codes"])]
    if found.get("scaffold base symbols"):
        parts.append(f"base symbols that are scaffold: {' '.join(found['scaffold base symbols'])}")
    parts += [f"{word} → {subwords}" for word, subwords in found.get("segmented", {}).items()]
    return "; ".join(parts)


def check_examples() -> int:
    """Rerun the examples, and say where they are not as EXAMPLES has them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--python", type=Path, default=PYTHON, help="with TkTkT installed (default: %(default)s)")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"benchmarks: {options.python}: not found; run benchmarks/install.py", file=sys.stderr)
        return 1
    examples = read_examples()
    different = 0
    for example, of_tktkt in zip(examples, theirs(examples, options.python), strict=True):
        print(example["name"])
        for name, key, found in (("mt_scaffold", "ours", ours(example)), ("TkTkT", "tktkt", of_tktkt)):
            as_written = found == example[key]
            different += not as_written
            print(f"  {name:12} {show(found)}" + ("" if as_written else f"\n  EXPECTED     {show(example[key])}"))
    return int(different > 0)


def boundary(marker: str) -> Any:
    """TkTkT's mark of where words begin or end."""
    from tktkt.factories.preprocessors import IsolatedSpaceMarker, KudoSpaceMarker, SennrichSpaceMarker

    return {"</w>": SennrichSpaceMarker, "▁": KudoSpaceMarker, "none": IsolatedSpaceMarker}[marker]


def preprocessor(marker: str) -> Any:
    """Words between white space, marked; nothing is normalised."""
    from tktkt.factories.preprocessors import (
        AddWordBoundary,
        IdentityMapper,
        OnWhitespace,
        Preprocessor,
        PretokeniserSequence,
    )

    splitter = PretokeniserSequence([OnWhitespace(destructive=True), AddWordBoundary(boundary(marker))])
    return Preprocessor(IdentityMapper(), IdentityMapper(), splitter)


def alphabet_size(words: Iterable[str], marker: str) -> int:
    """The tokens that TkTkT starts with: base symbols, and the mark by itself."""
    from tktkt.factories.preprocessors import AddWordBoundary

    mark = boundary(marker)
    symbols = {mark.substitute}
    for word in words:
        for pretoken in AddWordBoundary(mark).split(word):
            symbols.update(mark.atomise(pretoken))
    return len(symbols)


def learn_model(algorithm: str, counts: Counter[str], symbols: int, marker: str, threshold: float) -> dict[str, Any]:
    """Learn ``symbols`` merged tokens; returns a model that can be written as JSON."""
    import tktkt.paths
    from tktkt.models.bpe.picky import PickyBPEVocabulariser
    from tktkt.models.bpe.scaffold import ScaffoldBPEVocabulariser

    size = symbols + alphabet_size(counts, marker)
    # It keeps a cache of models in the folder it runs in.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        tktkt.paths.setTkTkToutputRoot(Path(folder))
        if algorithm == "scaffold":
            learner = ScaffoldBPEVocabulariser(preprocessor(marker), size, _ALL_CHARACTERS, _NO_LIMIT)
            learned = learner.vocabulariseFromCounter(counts)
            return {
                "algorithm": algorithm,
                "marker": marker,
                "types": list(learned._getVocabulary()),
                "merges": [list(pair) for pair in learned.getMerges()],
                "scaffold": sorted(learned.getAblations()),
            }
        learner = PickyBPEVocabulariser(preprocessor(marker), size, threshold, _ALL_CHARACTERS, _NO_LIMIT)
        learned = learner.vocabulariseFromCounter(counts)
        return {
            "algorithm": algorithm,
            "marker": marker,
            "types": list(learned._getVocabulary()),
            "events": [[event.is_merge, event.tokens] for event in learned.getEvents()],
        }


def tokeniser(model: dict[str, Any]) -> Any:
    """TkTkT's tokeniser for a model."""
    from tktkt.models.bpe.decomposing import CacheableAblatedBPEArtifacts, ScaffoldBPE
    from tktkt.models.bpe.picky import CacheablePickyBPEArtifacts, Event, PickyBPE

    before = preprocessor(model["marker"])
    if model["algorithm"] == "scaffold":
        merges = [tuple(pair) for pair in model["merges"]]
        artifacts = CacheableAblatedBPEArtifacts(model["types"], merges, set(model["scaffold"]))
        return ScaffoldBPE(before, artifacts.getVocabulary(), artifacts.getMerges(), artifacts.getAblations())
    events = [Event(tokens, is_merge) for is_merge, tokens in model["events"]]
    artifacts = CacheablePickyBPEArtifacts(model["types"], model["types"], events)
    return PickyBPE(before, artifacts.getVocabulary(), events)


def codes(model: dict[str, Any]) -> list[str]:
    """The lines of a codes file as mt_scaffold writes it, without its first line."""
    if model["algorithm"] == "scaffold":
        scaffold = set(model["scaffold"])
        return [f"{a} {b}" + " scaffold" * (a + b in scaffold) for a, b in model["merges"]]
    return [
        " ".join(tokens) if is_merge else f"split {''.join(tokens)} {' '.join(tokens)}"
        for is_merge, tokens in model["events"]
    ]


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def run_example(example: dict[str, Any]) -> dict[str, Any]:
    """What TkTkT makes of an example: its codes, base symbols that are scaffold, segmented words; or its error."""
    counts = Counter(example["words"])
    marker = "none" if example["end_of_word"] is False else example.get("marker", "</w>")
    found: dict[str, Any] = {"codes": []}
    try:
        for _ in range(example.get("runs", 1)):
            threshold = example.get("threshold", _THRESHOLD)
            model = learn_model(example["algorithm"], counts, example["symbols"], marker, threshold)
            if codes(model) not in found["codes"]:
                found["codes"].append(codes(model))
    except Exception as error:
        return {"error": in_words(error)}
    if example["algorithm"] == "scaffold":
        merged = {a + b for a, b in model["merges"]}
        found["scaffold base symbols"] = [token for token in model["scaffold"] if token not in merged]
    segmenter = tokeniser(model)
    for word in example.get("segment", []):
        try:
            # The mark stands alone before the word.
            subwords = list(segmenter.prepareAndTokenise(word))[marker == "none" :]
            found.setdefault("segmented", {})[word] = " ".join(subwords)
        except Exception as error:
            found.setdefault("segmented", {})[word] = in_words(error)
    found["codes"].sort()
    return found


def segment_words(words: str, model: str, output: str) -> None:
    """Segment each word by itself, so that one that fails does not hide the others."""
    segmenter = tokeniser(json.loads(Path(model).read_text(encoding="utf-8")))
    with open(words, encoding="utf-8", newline="\n") as lines, open(output, "w", encoding="utf-8") as out:
        for line in lines:
            try:
                out.write(" ".join(segmenter.prepareAndTokenise(line.rstrip("\n"))) + "\n")
            except Exception as error:
                out.write(f"!{in_words(error)}\n")


def run_task(task: str, source: str, model: str, argument: str) -> None:
    """Do in TkTkT's environment what a command asks for."""
    # Each merge of a token with itself logs a line otherwise.
    logging.disable(logging.WARNING)
    import tktkt.models.bpe.scaffold
    import tktkt.paths  # noqa: F401

    if task.startswith("learn-"):
        counts: Counter[str] = Counter()
        with open(source, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                counts.update(line.split())
        algorithm = task.removeprefix("learn-")
        learned = learn_model(algorithm, counts, int(argument), _USUAL_MARKER[algorithm], _THRESHOLD)
        Path(model).write_text(json.dumps(learned, ensure_ascii=False), encoding="utf-8")
    elif task == "apply":
        segmenter = tokeniser(json.loads(Path(model).read_text(encoding="utf-8")))
        with open(source, encoding="utf-8", newline="\n") as lines, open(argument, "w", encoding="utf-8") as out:
            out.writelines(" ".join(segmenter.prepareAndTokenise(line.rstrip("\n"))) + "\n" for line in lines)
    elif task == "words":
        segment_words(source, model, argument)
    elif task == "examples":
        examples = json.loads(Path(source).read_text(encoding="utf-8"))
        results = [run_example(example) for example in examples]
        Path(argument).write_text(json.dumps(results, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] and not sys.argv[1].startswith("-"):
        run_task(*sys.argv[1:])
        # Its libraries' threads are not waited for.
        sys.stdout.flush()
        os._exit(0)
    sys.exit(check_examples())
