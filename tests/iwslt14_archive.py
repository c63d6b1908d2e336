"""The archive of IWSLT'14 German-English with the distributed names and markup, and generated text."""

from __future__ import annotations

import itertools
from pathlib import Path

from wmt14_archives import make_tar

from mt_scaffold.experiment.data.synthetic import sentence_pairs

ARCHIVE = "de-en.tgz"
TEST_PARTS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
SENTENCES = 12


def make_archive(folder: Path, talks: int = 12) -> dict[str, list[tuple[str, str]]]:
    """Write the archive into ``folder`` and return its sentences, German and English: ``train``, and the test parts.

    A talk has a title, a description and SENTENCES sentences; the lengths of the second pair are too unequal to be
    kept. The first sentence of each test part contains U+2019, an entity and capitals.
    """
    pairs = ((source.capitalize(), target.capitalize()) for source, target in sentence_pairs(7))
    texts: dict[str, list[tuple[str, str]]] = {"train": []}
    tags: tuple[list[str], list[str]] = ([], [])
    for talk in range(1, talks + 1):
        title, description, *sentences = itertools.islice(pairs, SENTENCES + 2)
        sentences[1] = ("Ja.", "Yes , yes , and yes again .")
        texts["train"] += [title, description, *sentences]
        for side, lines in enumerate(tags):
            lines += [
                f"<url>http://www.ted.com/talks/lang/{talk}.html</url>",
                "<keywords>talks, science</keywords>",
                f"<talkid>{talk}</talkid>",
                f"<title>{title[side]}</title>",
                f"<description>{description[side]}</description>",
                *(f" {pair[side]}" for pair in sentences),
            ]
    members = {"de-en/README": b"not wanted\n"}
    for side, language in enumerate(("de", "en")):
        members[f"de-en/train.tags.de-en.{language}"] = "".join(f"{line}\n" for line in tags[side]).encode()
    for part in TEST_PARTS:
        first, *others = itertools.islice(pairs, 4)
        texts[part] = [(f"So geht\u2019s &amp; {first[0]}", f"It\u2019s R&amp;D {first[1]}"), *others]
        for side, language in enumerate(("de", "en")):
            members[f"de-en/IWSLT14.{part}.de-en.{language}.xml"] = _xml([pair[side] for pair in texts[part]])
    make_tar(folder / ARCHIVE, members)
    return texts


def _xml(sentences: list[str]) -> bytes:
    segments = "\n".join(f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(sentences, 1))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<refset setid="iwslt2014" srclang="german">\n'
        '<doc docid="531" genre="lectures">\n<url>http://www.ted.com/531</url>\n<keywords>talks</keywords>\n'
        f"<talkid>531</talkid>\n<title>A title</title>\n{segments}\n</doc>\n</refset>\n</mteval>\n"
    ).encode()
