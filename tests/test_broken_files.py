"""Broken files: a reader must either accept a file or refuse it in one line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from awkward_words import examples
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT
from segmenting import (
    CHARACTERS,
    MODES,
    PRETOKENISED,
    VECTORS,
    Mode,
    learn_with_reference,
    reference_of,
    reference_subwords,
)

from mt_scaffold import BPE, MTScaffoldError
from mt_scaffold.analysis.reference import pretokenise
from mt_scaffold.codes import Codes
from mt_scaffold.corpus.count import load_counts, write_counts
from mt_scaffold.corpus.id_files import read_index
from mt_scaffold.corpus.pretokenise import PATTERNS
from mt_scaffold.corpus.vocabulary_file import read_vocabulary
from mt_scaffold.experiment.configuration import load_experiment
from mt_scaffold.segment.encode import encode_documents

CONFIGS = ROOT / "configs"
WORDS = {"banana": 5, "ananas": 3, "anna": 4, "ä日a": 2, "a</w>": 2, "nana": 7}
LINE = "banana  nab ä日a a</w> x"
# Strings with a meaning for readers, to be put in the wrong places.
PIECES = [
    *(
        b"#version: 0.2\n",
        b"#version: 0.3 bytes gpt2",
        b" scaffold",
        b"</w>",
        b"@@",
        b" ",
        b"\n",
        b"\r\n",
        b"\t",
        b"\x00",
    ),
    *(
        b"\xff",
        b"\xe6\x97",
        "Ġ".encode(),
        b"0",
        b"-1",
        b"99999999999999999999",
        b"1e400",
        b"nan",
        b"null",
        b"[]",
        b"{}",
    ),
    *(b": ", b"- ", b"&a ", b"*a", b"'", b'"', b"|", b"!!python/object:os.system ", b"<<: ", b"systems:", b"~", b"yes"),
]


class Readers:
    """Sound files, in memory and in ``folder``, and trials on broken copies of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes = [
            learn_with_reference({_in(mode, word): count for word, count in WORDS.items()}, 12, 1, mode=mode)[1]
            for mode in MODES
        ]
        self.codes += [path.read_bytes() for path in sorted(VECTORS.rglob("*.codes"))[:12]]
        self.experiments = [path.read_bytes() for path in sorted(CONFIGS.glob("*.yaml"))]
        text = (LINE + "\n") * 3
        counts, ids, codes = folder / "counts", folder / "ids.bin", folder / "gpt2.codes"
        (folder / "text").write_text(text, encoding="utf-8")
        write_counts(counts, folder / "text", pretokenise="gpt2")
        codes.write_bytes(self.codes[2])
        encode_documents(codes, [folder / "text"], ids)
        self.counts, self.index = counts.read_bytes(), (folder / "ids.idx").read_bytes()
        self.vocabulary = "".join(f"{word} {count}\n" for word, count in WORDS.items()).encode()

    def check(self, seed: int) -> None:
        """Break one file and read it."""
        draw = random.Random(seed)
        kind = draw.choice(["codes", "codes", "codes", "experiment", "experiment", "counts", "index", "vocabulary"])
        sound = {
            "codes": self.codes,
            "experiment": self.experiments,
            "counts": [self.counts],
            "index": [self.index],
            "vocabulary": [self.vocabulary],
        }[kind]
        broken = break_(draw.choice(sound), draw, sound)
        message = ""
        try:
            getattr(self, f"_read_{kind}")(broken)
        except MTScaffoldError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"{kind}: {broken!r:.3000}") from error
        assert len(message.splitlines()) <= 1, f"{kind}: {broken!r:.3000}"

    def _read_codes(self, broken: bytes) -> None:
        bpe, codes = BPE(broken), Codes(broken)
        segmented = bpe.process_line(LINE)
        merges = codes.merges
        # Blank lines and older versions are also accepted, but the reference reads only codes as learners write them.
        if all(_is_plain(line) for line in broken.split(b"\n")[1:-1]) and broken.endswith(b"\n"):
            mode = Mode.of(broken)
            if not broken.startswith(mode.first_line.encode() + b"\n") or len(merges) != broken.count(b"\n") - 1:
                return
            reference = reference_of(broken)
            if mode == PRETOKENISED:
                expected = reference_subwords(reference, pretokenise(LINE.encode("utf-8"), PATTERNS["gpt2"]))
            else:
                expected = reference.process_line(_in(mode, LINE))
                segmented = (
                    _in(mode, segmented)
                    if mode == CHARACTERS
                    else segmented.encode("utf-8", "surrogateescape").decode("latin-1")
                )
            assert segmented == expected

    def _read_experiment(self, broken: bytes) -> None:
        load_experiment(self._written("experiment.yaml", broken))

    def _read_counts(self, broken: bytes) -> None:
        load_counts([self._written("broken.counts", broken)])

    def _read_index(self, broken: bytes) -> None:
        self._written("broken.idx", broken)
        for _ in read_index(self.folder / "broken.bin").sizes():
            pass

    def _read_vocabulary(self, broken: bytes) -> None:
        with open(self._written("broken.vocab", broken), "rb") as file:
            read_vocabulary(file, 3)

    def _written(self, name: str, broken: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(broken)
        return path


def _is_plain(line: bytes) -> bool:
    """Return whether a line of codes is as learners write it; readers also accept spaces at its end."""
    fields = line.split(b" ")
    return (len(fields) == 2 and fields[1] != b"") or (len(fields) == 3 and fields[2] == b"scaffold")


def _in(mode: Mode, text: str) -> str:
    """Return text in the form of the reference."""
    return text.encode("utf-8").decode("latin-1") if mode.byte_level else text


def break_(sound: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Return a copy of ``sound`` with some bytes changed, cut, repeated, moved or inserted."""
    data = bytearray(sound)
    for _ in range(draw.choice([1, 1, 1, 2, 4, 16])):
        at = draw.randint(0, len(data))
        end = min(len(data), at + draw.choice([1, 2, 8, 64]))
        match draw.randrange(8):
            case 0 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case 3:
                data[at:at] = draw.choice(PIECES)
            case 4:
                data[at:end] = draw.choice(PIECES)
            case 5:
                del data[at:]
            case 6:
                other = draw.choice(others)
                place = draw.randint(0, len(other))
                data[at:at] = other[place : place + draw.choice([4, 32, 256])]
            case _:
                lines = bytes(data).split(b"\n")
                draw.shuffle(lines) if draw.random() < 0.2 else lines.insert(
                    draw.randint(0, len(lines)), draw.choice(lines)
                )
                data = bytearray(b"\n".join(lines))
    return bytes(data)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Readers:
    return Readers(tmp_path_factory.mktemp("broken"))


@pytest.mark.filterwarnings("ignore")
@examples(400)
@given(seed=st.integers(0, 2**64))
def test_a_broken_file_is_accepted_or_refused_in_one_line(readers: Readers, seed: int) -> None:
    """Bytes are changed, cut, repeated or inserted; codes that are accepted segment as in the reference."""
    readers.check(seed)
