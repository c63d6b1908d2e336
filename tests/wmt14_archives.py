"""Archives with the names, layout and formats of WMT'14, and generated text, for tests without a network."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mt_scaffold.experiment.data.synthetic import sentence_pairs

CONFIGS = Path(__file__).parent.parent / "configs"
# Archive → the stems of its members for a pair of languages (sgm test sets aside).
LAYOUT = {
    "training-parallel-europarl-v7.tgz": ["training/europarl-v7.{pair}"],
    "training-parallel-commoncrawl.tgz": ["commoncrawl.{pair}"],
    "training-parallel-un.tgz": ["un/undoc.2000.{pair}"],
    "training-parallel-nc-v9.tgz": ["training/news-commentary-v9.{pair}"],
    "training-parallel-nc-v11.tgz": ["training-parallel-nc-v11/news-commentary-v11.{pair}"],
    "training-giga-fren.tar": ["giga-fren.release2.fixed"],
    "dev.tgz": ["dev/newstest2012", "dev/newstest2013"],
}
TEST_ARCHIVE = "test-full.tgz"


def make_tar(path: Path, members: dict[str, bytes]) -> None:
    """Write a tar archive with these members, compressed if its name ends in gz."""
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def make_archives(folder: Path, target: str, pairs: int = 60, test: int = 20) -> dict[str, str]:
    """Write all archives for English and ``target`` into ``folder``: ``pairs`` per member, ``test`` in the test set.

    The first test sentence contains U+2019, the last one occurs in the training data. Return sha256 by archive.
    """
    source = sentence_pairs(5)
    tested = take(source, test)
    tested[0] = (f"It\u2019s {tested[0][0]}", f"So geht\u2019s {tested[0][1]}")
    for archive, stems in LAYOUT.items():
        members = {"README": b"not wanted\n"}
        for stem in stems:
            lines = [tested[-1], *take(source, pairs - 1)] if "europarl" in stem else take(source, pairs)
            for side, language in enumerate(("en", target)):
                text = "".join(f"{pair[side]}\n" for pair in lines).encode()
                name = f"{stem.format(pair=f'{target}-en')}.{language}"
                packed = "giga" in stem
                members[f"{name}.gz" if packed else name] = gzip.compress(text) if packed else text
        make_tar(folder / archive, members)
    members = {}
    for side, kind, language in ((0, "src", "en"), (1, "ref", target)):
        segments = "\n".join(f'<seg id="{number}">{pair[side]}</seg>' for number, pair in enumerate(tested, 1))
        heading = f'<{kind}set setid="newstest2014" srclang="any" trglang="{language}">'
        document = (
            f'{heading}\n<doc sysid="{kind}" docid="a" genre="news" origlang="en">\n<p>\n{segments}\n</p>\n</doc>\n'
        )
        members[f"test-full/newstest2014-{target}en-{kind}.{language}.sgm"] = f"{document}</{kind}set>\n".encode()
    make_tar(folder / TEST_ARCHIVE, members)
    names = [*LAYOUT, TEST_ARCHIVE]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def take(source: Iterator[tuple[str, str]], number: int) -> list[tuple[str, str]]:
    return list(itertools.islice(source, number))


def derived_config(name: str, folder: Path, digests: dict[str, str]) -> dict[str, Any]:
    """Return configs/wmt14_en_NAME.yaml with the digests of ``make_archives``; ``unknown`` ones stay."""
    config: dict[str, Any] = yaml.safe_load((CONFIGS / f"wmt14_en_{name}.yaml").read_text(encoding="utf-8"))
    archives = config["data"]["archives"]
    for pair in archives["train"] + archives.get("valid", []):
        archive = pair["archive"]
        if archive["sha256"] != "unknown":
            archive["sha256"] = digests[archive["url"].rsplit("/", 1)[-1]]
    archives["tests"]["newstest2014"]["md5"] = hashlib.md5((folder / TEST_ARCHIVE).read_bytes()).hexdigest()
    return config
