"""Fork while other threads are in the core, and print how many children hung. usage: forking.py KIND FORKS

A child does once what the threads do repeatedly, and is killed if it hangs.
"""

from __future__ import annotations

import io
import itertools
import os
import random
import signal
import string
import sys
import threading
import time
import warnings
from collections.abc import Callable

from mt_scaffold import BPE, _core, count_words, learn_bpe
from mt_scaffold.codes import Codes

# Far longer than a child takes on a busy machine.
SECONDS = 60
BATCHES, LINES = 20, 100


def random_lines(seed: int, lines: int) -> list[str]:
    draw = random.Random(seed)
    words = ("".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 20))) for _ in itertools.count())
    return [" ".join(itertools.islice(words, 10)) for _ in range(lines)]


TEXTS = [random_lines(seed, LINES) for seed in range(BATCHES)]
FEW = random_lines(BATCHES, 3)


def learned(symbols: int, pretokenise: str = "spaces") -> Codes:
    text = "\n".join(itertools.chain(*TEXTS)).encode()
    return Codes(learn_bpe(io.BytesIO(text), num_symbols=symbols, pretokenise=pretokenise).text)


class Words:
    """Ids of a dictionary: growing tables of words, and workers that wait for the next call."""

    def __init__(self) -> None:
        # The tables are so small that they are replaced at nearly every line.
        segmenter = _core.Segmenter(learned(500).text, "@@")
        self.core = _core.Applier(segmenter, dictionary={}, unknown=0, max_words=64, max_bytes=1 << 18)

    def work(self) -> None:
        for texts in TEXTS:
            self.core.ids(texts)

    def child(self) -> None:
        self.core.ids(FEW)


class Glossaries:
    """Glossary entries in words, which are cached."""

    def __init__(self) -> None:
        self.encoder = BPE(learned(500), glossaries=["abc", "xyz"]).encoder({}, 0)

    def work(self) -> None:
        self.encoder.encode(TEXTS[0])

    def child(self) -> None:
        self.encoder.encode([*FEW, *TEXTS[0]])


class Properties:
    """Properties that Python computes once per BPE object, with the core's help."""

    def __init__(self) -> None:
        self.codes = learned(2000, "gpt2")
        self.bpe = BPE(self.codes)
        # A child cannot release the import locks of the parent's threads: everything is imported before.
        self.child()
        len(self.bpe.tokens)

    def work(self) -> None:
        self.bpe = bpe = BPE(self.codes)
        bpe.encode_batch(FEW)
        len(bpe.tokens)

    def child(self) -> None:
        self.bpe.encode_batch(FEW)
        BPE(Codes(self.codes.text)).encode(FEW[0])


class Ids:
    """Ids of bytes, on the core's own threads."""

    def __init__(self) -> None:
        self.bpe = BPE(learned(500, "gpt2"))
        self.bpe.encode_batch(FEW)

    def work(self) -> None:
        self.bpe.encode_batch(list(itertools.chain(*TEXTS)), num_workers=2)

    def child(self) -> None:
        self.bpe.encode_batch(list(itertools.chain(*TEXTS)), num_workers=2)


class Counts:
    """Counting words, and the subwords of counted words."""

    def __init__(self) -> None:
        self.bpe = BPE(learned(500))
        self.text = "\n".join(itertools.chain(*TEXTS)).encode()
        self.counts = count_words(io.BytesIO(self.text))

    def work(self) -> None:
        self.bpe.count_subwords(count_words(io.BytesIO(self.text), num_workers=2))
        self.bpe.count_subwords(self.counts)

    def child(self) -> None:
        self.bpe.count_subwords(self.counts)
        learn_bpe(io.BytesIO(self.text[:1000]), num_symbols=20)


class Streams:
    """Python streams that the core's threads read: each read registers a thread with Python."""

    def __init__(self) -> None:
        self.text = "\n".join(itertools.chain(*TEXTS)).encode()

    def work(self) -> None:
        count_words(SmallReads(self.text), num_workers=2)

    def child(self) -> None:
        count_words(SmallReads(self.text[:1000]), num_workers=2)


class SmallReads(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(100)


KINDS = {kind.__name__.lower(): kind for kind in (Words, Glossaries, Properties, Ids, Counts, Streams)}


def repeat(work: Callable[[], object]) -> None:
    while True:
        work()


def hung_children(kind: str, forks: int) -> int:
    task = KINDS[kind]()
    sys.setswitchinterval(1e-4)
    for _ in range(2):
        threading.Thread(target=repeat, args=(task.work,), daemon=True).start()
    draw, hung = random.Random(1), 0
    for _ in range(forks):
        time.sleep(draw.random() * 1e-3)
        if (child := os.fork()) == 0:
            try:
                task.child()
            finally:
                os._exit(sys.exc_info()[0] is not None)
        # Not an alarm in the child, which may hang before fork() returns.
        killer = threading.Timer(SECONDS, os.kill, (child, signal.SIGKILL))
        killer.start()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        killer.cancel()
        assert status in (0, -signal.SIGKILL), f"a child ended with status {status}"
        hung += status != 0
    return hung


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    print(hung_children(sys.argv[1], int(sys.argv[2])), flush=True)
    os._exit(0)
