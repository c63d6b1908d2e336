"""Call the core from several threads at once, on the same objects. usage: in_threads.py [SECONDS]"""

from __future__ import annotations

import gc
import io
import random
import string
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from mt_scaffold import BPE, Scaffold, _core, count_words, learn_bpe
from mt_scaffold.corpus.count import write_counts

WORDS = 20_000


def at_once(*calls: Callable[[], object]) -> list[Any]:
    """Call each on a thread; return their results, or the ValueErrors that they raised."""
    results: list[Any] = [None] * len(calls)
    together = threading.Barrier(len(calls))

    def run(number: int) -> None:
        together.wait()
        try:
            results[number] = calls[number]()
        except ValueError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Case:
    """Texts and codes to call the core with."""

    def __init__(self, folder: Path) -> None:
        draw = random.Random(5)
        words = ["".join(draw.choices(string.ascii_lowercase, k=9)) for _ in range(WORDS)]
        self.lines = [" ".join(words[at : at + 10]) for at in range(0, WORDS, 10)]
        self.text = "\n".join(self.lines).encode()
        self.codes = learn_bpe(io.BytesIO(self.text), num_symbols=300).text
        self.bpe = BPE(self.codes)
        self.bytes = BPE(learn_bpe(io.BytesIO(self.text), num_symbols=300, pretokenise="gpt2").text)
        self.bytes.encode("")
        self.folder = folder
        write_counts(folder / "counts", io.BytesIO(self.text))

    def counts(self) -> Any:
        return count_words(io.BytesIO(self.text), num_workers=2)


def learn(counts: Any) -> None:
    time.sleep(0.005)
    Scaffold(symbols=5).learn(counts)


def learning_from_counts_that_are_read(case: Case) -> None:
    """Learning uses up the counts, but every reader still sees all of them."""
    counts = case.counts()
    subwords = case.bpe.count_subwords(counts).total()
    reachable = len(case.bpe.reachable(counts, 0.5))
    results = at_once(
        lambda: case.bpe.count_subwords(counts).total(),
        lambda: len(case.bpe.reachable(counts, 0.5)),
        lambda: len(counts.format_vocabulary()),
        lambda: len(counts.items()),
        lambda: learn(counts),
    )
    expected = (subwords, reachable, len(case.counts().format_vocabulary()), WORDS, None)
    for result, right in zip(results, expected, strict=True):
        assert result == right or (isinstance(result, ValueError) and "used up" in str(result)), (result, right)


def adding_to_counts_that_are_read(case: Case) -> None:
    """A reader sees the counts either before or after the addition."""
    counts = case.counts()
    more = count_words(io.BytesIO(b" ".join(b"x%d" % number for number in range(WORDS))))
    before = case.bpe.count_subwords(counts).total()
    after = before + case.bpe.count_subwords(more).total()
    *read, _, _ = at_once(
        lambda: case.bpe.count_subwords(counts).total(),
        lambda: case.bpe.count_subwords(counts).total(),
        lambda: counts.add(more),
        lambda: counts.format_vocabulary(),
    )
    assert set(read) <= {before, after} and len(counts) == 2 * WORDS


def counted_words_of_two_calls(case: Case) -> None:
    """One call at a time may use counted words; any other raises ValueError."""
    counted = _core.count_words([("text", case.text)], 2, max_memory=1 << 26, folder=str(case.folder))
    sink = io.BytesIO()
    header = (False, "spaces", False)
    results = at_once(
        lambda: counted.write(("out", sink), header),
        lambda: counted.bytes_on_disk(),
        lambda: len(counted.load(header)[0]),
        lambda: counted.set_aside(),
    )
    for result in results:
        assert not isinstance(result, ValueError) or "in use by another thread" in str(result)


def count_files_whose_bytes_are_gone(case: Case) -> None:
    """Bytes that are read after the call that they were passed to are kept alive."""
    counted = _core.CountedWords(0, "")
    content = (case.folder / "counts").read_bytes()
    counted.open([("counts", content[:10] + content[10:])])
    del content
    gc.collect()
    _ = [bytes(len(case.text)) for _ in range(20)]
    assert len(counted.load((False, "spaces", False))[0]) == WORDS


def arrays_that_change_while_they_are_read(case: Case) -> None:
    """The offsets used are those that were checked; wrong ones are refused."""
    ids, offsets = case.bytes.encode_batch(case.lines)
    values, starts = numpy.array(ids, numpy.uint32), numpy.array(offsets, numpy.int64)
    wrong = starts.copy()
    wrong[1::2] = 1 << 40

    def change() -> None:
        for _ in range(50):
            starts[:] = wrong
            starts[:] = offsets

    def listed() -> None:
        for _ in range(5):
            with suppress(ValueError):
                _core.list_rows(values, starts, [], [])

    at_once(change, listed)


class Shrinking:
    """An integer that empties the list it is in."""

    def __init__(self, ids: list[Any]) -> None:
        self.ids = ids

    def __index__(self) -> int:
        self.ids.clear()
        return 97


def ids_that_change_while_they_are_read(case: Case) -> None:
    """A list that shrinks, and an array that another thread writes to."""
    ids: list[Any] = []
    ids += [Shrinking(ids), *range(1000, 3000)]
    assert case.bytes.ids_in_core.decode(ids) == b"a"
    array = numpy.full(50_000, 97, numpy.int32)

    def change() -> None:
        for _ in range(100):
            array[:] = 1 << 30
            array[:] = 97

    def decode() -> None:
        for _ in range(10):
            with suppress(Exception):
                case.bytes.decode_bytes(array)

    at_once(change, decode, decode)


def encoding(case: Case) -> None:
    """Tables, workers, cached glossaries and dropout, in six threads: the results of one call at a time."""

    def calls() -> list[Callable[[], object]]:
        with_glossaries, plain = BPE(case.codes, glossaries=["abc", "x"]), BPE(case.codes)
        dictionary = {form: number for number, form in enumerate(plain.surface_forms(), 1)}
        encoder, drawn = with_glossaries.encoder(dictionary, 0), plain.encoder(dictionary, 0)
        return [
            lambda: [bytes(each) for each in encoder.encode(case.lines[:300])],
            lambda: [bytes(each) for each in encoder.encode(case.lines[200:500], 0.1, seed=1)],
            lambda: [bytes(each) for each in drawn.encode(case.lines, 0.5, seed=2)],
            lambda: [bytes(each) for each in drawn.encode(case.lines[::-1], 0.5, seed=3)],
            *[lambda: [bytes(each) for each in case.bytes.encode_batch(case.lines, num_workers=2)]] * 2,
        ]

    assert at_once(*calls()) == [call() for call in calls()]


CASES: dict[str, Callable[[Case], None]] = {
    each.__name__: each
    for each in (
        learning_from_counts_that_are_read,
        adding_to_counts_that_are_read,
        counted_words_of_two_calls,
        count_files_whose_bytes_are_gone,
        arrays_that_change_while_they_are_read,
        ids_that_change_while_they_are_read,
        encoding,
    )
}


def main(seconds: float) -> None:
    """Run the cases repeatedly and print how often; under ThreadSanitizer, which must find nothing.

    Cases that write to an array while it is read are left out: they are races, although harmless ones.
    """
    calls = [call for name, call in CASES.items() if "that_change_while" not in name]
    rounds = 0
    with TemporaryDirectory() as folder:
        case = Case(Path(folder))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for call in calls:
                call(case)
            rounds += 1
    print(f"{rounds} rounds of {len(calls)} cases")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
