"""Exactness: the worked vectors, the figures of a larger text, and an example small enough to follow by hand."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from learning import learn_with
from segmenting import (
    VECTORS,
    Figures,
    Mode,
    figures_of,
    learn_picky_with_reference,
    learn_with_reference,
    measure,
    reference_of,
    reference_subwords,
)

from mt_scaffold import BPE, Codes, learn_bpe
from mt_scaffold.corpus.text import words_of
from mt_scaffold.experiment.data.synthetic import sentence_pairs

NAMES = sorted(path.name for path in VECTORS.iterdir() if path.is_dir())


def options_of(vector: Path) -> dict[str, Any]:
    """The options of a vector, as those of ``learn_bpe``."""
    words = (vector / "options.txt").read_text().split()
    options: dict[str, Any] = {
        "num_symbols": int(words[words.index("--symbols") + 1]),
        "min_frequency": int(words[words.index("--min-frequency") + 1]),
        "byte_level": "--byte" in words,
        "split_digits": "--split-digits" in words,
    }
    if "--pretokenise" in words:
        options["pretokenise"] = words[words.index("--pretokenise") + 1]
    return options


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
@pytest.mark.parametrize("name", NAMES)
def test_core_gives_the_vector(name: str, algorithm: str) -> None:
    """Codes learned and text segmented by the core are the expected bytes."""
    vector = VECTORS / name
    threshold = 0.7 if algorithm == "picky" else None
    learned = learn_with(vector / "corpus.txt", algorithm=algorithm, threshold=threshold, **options_of(vector))
    assert learned.text == (vector / f"{algorithm}.codes").read_bytes()
    segmented = io.BytesIO()
    BPE(vector / f"{algorithm}.codes").process_file(vector / "probe.txt", segmented)
    assert segmented.getvalue() == (vector / f"{algorithm}.segmented").read_bytes()


@pytest.mark.parametrize("algorithm", ["bpe", "scaffold", "picky"])
@pytest.mark.parametrize("name", NAMES)
def test_reference_gives_the_vector(name: str, algorithm: str) -> None:
    """So does the plain Python reference, against which every other test checks the core; a vector of bytes has its
    words split by the core's pre-tokeniser, which has separate tests."""
    vector = VECTORS / name
    options = options_of(vector)
    codes = (vector / f"{algorithm}.codes").read_bytes()
    header = Codes(codes).header
    mode = Mode.of(codes)
    corpus = (vector / "corpus.txt").read_bytes().split(b"\n")
    probe = (vector / "probe.txt").read_bytes().split(b"\n")
    encoding = "latin-1" if header.bytes else "utf-8"
    pretokeniser = header.make_pretokeniser()
    counts = Counter(
        word
        for line in corpus
        for word in (
            words_of(line.decode(encoding))
            if pretokeniser is None
            else [word.decode(encoding) for word in pretokeniser.split(line)]
        )
    )
    if algorithm == "picky":
        learned = learn_picky_with_reference(counts, options["num_symbols"], 0.7, options["min_frequency"], mode)[1]
    else:
        learned = learn_with_reference(counts, options["num_symbols"], options["min_frequency"], algorithm, mode)[1]
    assert learned.split(b"\n")[1:] == codes.split(b"\n")[1:]
    reference = reference_of(codes)
    if pretokeniser is None:
        segmented = "\n".join(reference.process_line(line.decode(encoding)) for line in probe).encode(encoding)
    else:
        segmented = "\n".join(reference_subwords(reference, pretokeniser.split(line)) for line in probe).encode("utf-8")
    assert segmented == (vector / f"{algorithm}.segmented").read_bytes()


# Five times "accc", twice "cc". Writing c. for "c</w>":
#   a c c c. x5, c c. x2     pairs: c c. 7, a c 5, c c 5           merge c c.: cc. is normal (1 of 2)
#   a c cc. x5, cc. x2       pairs: c cc. 5, a c 5                 the greater tuple wins: merge c cc.
#   a ccc. x5, cc. x2        f(cc.) = 2 < 5 = f(a, ccc.)           ccc. is normal, cc. scaffold (1 of 2)
#                                                                  merge a ccc.
#   accc. x5, cc. x2         f(ccc.) = 0 < 2 = f(cc.), the head    accc. is normal, ccc. scaffold (1 of 2)
#                                                                  cc. waits at the head with 2: normal (2 of 2)
BY_HAND = ["accc accc cc accc", "accc cc accc"]


def test_scaffold_by_hand() -> None:
    """One token becomes scaffold and returns, another stays scaffold; demolishing takes the second apart again."""
    learned = learn_bpe(lines=BY_HAND, num_symbols=2)
    assert learned.text == b"#version: 0.2\nc c</w>\nc cc</w> scaffold\na ccc</w>\n"
    assert (learned.merges, learned.scaffold, learned.restored, learned.exhausted) == (3, 1, 1, False)
    reference, codes = learn_with_reference({"accc": 5, "cc": 2}, 2)
    assert codes == learned.text and reference.restored == 1
    bpe = BPE(learned.text)
    assert bpe.segment("accc ccc cccc cc c x") == "accc c@@ cc c@@ c@@ cc cc c x"
    # With the first two lines only, nothing reaches "accc".
    assert BPE(learned.text, merges=2).segment("accc") == "a@@ c@@ cc"


def test_bpe_by_hand() -> None:
    """Original BPE makes the same first two merges, stops there, and keeps both tokens."""
    learned = learn_bpe(lines=BY_HAND, num_symbols=2, algorithm="bpe")
    assert learned.text == b"#version: 0.2\nc c</w>\nc cc</w>\n"
    assert BPE(learned.text).segment("accc ccc") == "a@@ ccc ccc"


def test_overlapping_pairs_by_hand() -> None:
    """(a, a) counts twice in "aaab", more than (a, b.) of "ab", and is replaced once, from the left."""
    learned = learn_bpe(lines=["aaab", "ab"], num_symbols=1, min_frequency=1, algorithm="bpe")
    assert learned.text == b"#version: 0.2\na b</w>\n"  # 2 against 2: the greater tuple
    learned = learn_bpe(lines=["aaab", "aac"], num_symbols=1, min_frequency=1, algorithm="bpe")
    assert learned.text == b"#version: 0.2\na a\n"  # 3 against 1
    assert BPE(learned.text).segment("aaab aaaaa") == "aa@@ a@@ b aa@@ aa@@ a"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated text that the figures were measured on."""
    sources, targets = zip(*itertools.islice(sentence_pairs(1), 12_000), strict=True)
    text = "".join(f"{sentence}\n" for sentence in sources + targets).encode()
    digest = "c9428372f07ebdc0c328ab47db1dfce07a65129bbd4330b0b2772282dc5ffb7e"
    assert hashlib.sha256(text).hexdigest() == digest, "the generator has changed: the figures are not of this text"
    path = tmp_path_factory.mktemp("generated") / "text"
    path.write_bytes(text)
    return path


@pytest.mark.parametrize("figures", figures_of("generated"), ids=str)
def test_figures_of_the_generated_text(generated: Path, figures: Figures) -> None:
    """At a size where thousands of tokens become scaffold and return: the known counts and codes files."""
    assert measure([generated], figures.symbols, figures.algorithm) == figures


def test_no_vector_is_missing() -> None:
    """A folder or row missing from an archive must not silently remove its test."""
    assert len(NAMES) == len([*VECTORS.glob("*/picky.codes")]) == 25
    sizes = [(symbols, algorithm) for symbols in (500, 1000, 2000) for algorithm in ("bpe", "scaffold")]
    assert [(row.symbols, row.algorithm) for row in figures_of("generated")] == sizes
    assert len(figures_of("multi30k")) == 6
