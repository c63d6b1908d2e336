"""Write the corpus: files of pairs and text, the manifest, and the statistics."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_scaffold.corpus.files import make_folder, open_output, read_file, write_text
from mt_scaffold.tables import format_table

from .cleaning import words
from .segments import KINDS, Document, Dropped, Extracted, Pair, documents, family, pairs
from .splitting import Split, split, split_documents

TEXT_KINDS = ("descriptions", "documents", "games", "messages")


def _write_pairs(folder: Path, name: str, language: str, own: Sequence[Pair]) -> list[Path]:
    sides = {f"{name}.en": [pair.source for pair in own], f"{name}.{language}": [pair.target for pair in own]}
    sides[f"{name}.origin"] = [f"{pair.kind}\t{pair.package}" for pair in own]
    for file, lines in sides.items():
        write_text(folder / file, "".join(f"{line}\n" for line in lines))
    return [folder / file for file in sides]


def _write_documents(path: Path, own: Sequence[Document]) -> Path:
    with open_output(path) as stream:
        for document in own:
            record = {"text": "\n".join(document.paragraphs), "package": document.package, "name": document.name}
            stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return path


def write_parallel(
    folder: Path, extracted: Extracted, language: str, texts: Sequence[Document], most: int
) -> tuple[list[Path], dict[str, Any], Split]:
    """Write the pairs of English and ``language`` to ``folder``; return the files, their figures and the split."""
    make_folder(folder)
    dropped = Dropped()
    result = split(pairs(extracted, language, dropped), texts, most)
    files = _write_pairs(folder, "train", language, result.train)
    for name, sets in (("valid", result.valid), ("test", result.test)):
        for kind in KINDS:
            files += _write_pairs(folder, f"{name}.{kind}", language, sets[kind])
    rows = {}
    for kind in KINDS:
        trained = [pair for pair in result.train if pair.kind == kind]
        rows[kind] = {
            "train": len(trained),
            "train_of_4_words": sum(words(pair.source) >= 4 for pair in trained),
            "valid": len(result.valid[kind]),
            "test": len(result.test[kind]),
            "packages": len({pair.package for pair in trained}),
            "words_en": sum(words(pair.source) for pair in trained),
            f"words_{language}": sum(words(pair.target) for pair in trained),
        }
    figures = {
        "kinds": rows,
        "held_out_packages": dict(sorted(Counter(result.part.values()).items())),
        "near_copies_left_out": dict(sorted(result.near_copies.items())),
        "dropped_segments": dict(sorted(dropped.segments.items())),
        "dropped_files": dict(sorted(dropped.files.items())),
    }
    return files, figures, result


def write_text_of(
    folder: Path, language: str, texts: Sequence[Document], part: dict[str, str], most_bytes: int
) -> tuple[list[Path], dict[str, Any]]:
    """Write the documents of ``language`` as gzipped JSONL: one file for training, held-out ones by kind.

    Return the files and their figures.
    """
    make_folder(folder)
    sets = split_documents(texts, part, most_bytes)
    files, figures = [], {}
    train = [document for kind in TEXT_KINDS for document in sets["train"].get(kind, [])]
    # In an order in which the first N documents are a sample of all documents.
    train.sort(key=lambda document: hashlib.sha256(f"{document.kind} {document.name}".encode()).digest())
    files.append(_write_documents(folder / f"{language}.train.jsonl.gz", train))
    for kind in TEXT_KINDS:
        files += [
            _write_documents(folder / f"{language}.{name}.{kind}.jsonl.gz", sets[name].get(kind, []))
            for name in ("valid", "test")
        ]
        figures[kind] = {
            name: {
                "documents": len(sets[name].get(kind, [])),
                "words": sum(words(text) for each in sets[name].get(kind, []) for text in each.paragraphs),
                "bytes": sum(len(t.encode()) + 1 for each in sets[name].get(kind, []) for t in each.paragraphs),
            }
            for name in ("train", "valid", "test")
        }
    return files, figures


def build(folder: Path, extracted: Extracted, heads: Mapping[str, dict[str, Any]], settings: dict[str, Any]) -> None:
    """Write the whole corpus, then ``statistics.json``, ``statistics.md`` and ``manifest.json``.

    heads: the licences of each package. settings: languages, test_pairs, text_bytes, indices.
    """
    languages: list[str] = settings["languages"]
    text_dropped = {language: Dropped() for language in ("en", *languages)}
    texts = {language: documents(extracted, language, text_dropped[language]) for language in ("en", *languages)}
    files: list[Path] = []
    statistics: dict[str, Any] = {"pairs": {}, "text": {}}
    parts: dict[str, dict[str, str]] = {}
    for language in languages:
        written, figures, result = write_parallel(
            folder / f"en-{language}", extracted, language, texts["en"] + texts[language], settings["test_pairs"]
        )
        files += written
        statistics["pairs"][f"en-{language}"] = figures
        parts[language] = result.part
    # English is split as with the first language.
    parts["en"] = parts[languages[0]]
    for language in ("en", *languages):
        written, figures = write_text_of(
            folder / "text", language, texts[language], parts[language], settings["text_bytes"]
        )
        files += written
        statistics["text"][language] = figures
        statistics["text"][language]["dropped_paragraphs"] = dict(sorted(text_dropped[language].segments.items()))
    entries = []
    for package, records in extracted.packages:
        head = heads[package.name]
        entries.append(
            {
                "name": package.name,
                "version": package.version,
                "source": package.source,
                "sha256": package.sha256,
                "bytes": package.size,
                "licences": head["licences"],
                "licences_of": head["licences_of"],
                "files": len(records),
                "held_out": {
                    f"en-{each}": parts[each][family(package.source)]
                    for each in languages
                    if family(package.source) in parts[each]
                },
            }
        )
    licences = Counter(name for entry in entries for name in entry["licences"])
    statistics["packages"] = {
        "number": len(entries),
        "bytes": sum(entry["bytes"] for entry in entries),
        "without_licence_names": sum(not entry["licences"] and not entry["licences_of"] for entry in entries),
        "licences": dict(sorted(licences.items(), key=lambda item: (-item[1], item[0]))),
    }
    manifest = {
        **settings,
        "packages": entries,
        "files": {
            str(path.relative_to(folder)): {
                "sha256": hashlib.sha256(content := read_file(path)).hexdigest(),
                "lines": content.count(b"\n"),
            }
            for path in sorted(files)
        },
    }
    write_text(folder / "statistics.json", json.dumps(statistics, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "statistics.md", as_tables(statistics))
    write_text(folder / "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def as_tables(statistics: dict[str, Any]) -> str:
    """Return the statistics as Markdown: pairs by kind, dropped segments, text by kind, licences."""

    def count(number: float) -> str:
        return f"{number:,}"

    sections = []
    for name, figures in statistics["pairs"].items():
        language = name.partition("-")[2]
        columns = ["train", "train_of_4_words", "valid", "test", "packages", "words_en", f"words_{language}"]
        head = ["kind", "train", "of 4 words or more", "valid", "test", "packages", "words en", f"words {language}"]
        rows = [[kind, *(count(row[each]) for each in columns)] for kind, row in figures["kinds"].items()]
        totals = [sum(row[each] for row in figures["kinds"].values()) for each in columns]
        rows.append(
            ["all", *(count(total) if each != "packages" else "" for each, total in zip(columns, totals, strict=True))]
        )
        sections.append(f"## Pairs {name}\n\n{format_table([head, *rows], markdown=True)}")
        left = [["left out", "segments"], *([why, count(n)] for why, n in figures["dropped_segments"].items())]
        left += [
            [f"near copy of a training segment, {part}", count(n)]
            for part, n in figures["near_copies_left_out"].items()
        ]
        sections.append(format_table(left, markdown=True))
        sections.append(
            format_table(
                [["left out", "files"], *([w, count(n)] for w, n in figures["dropped_files"].items())], markdown=True
            )
        )
    rows = [["language", "kind", "train documents", "train words", "train bytes", "valid bytes", "test bytes"]]
    for language, kinds in statistics["text"].items():
        shown = {kind: kinds[kind] for kind in TEXT_KINDS}
        for kind, own in shown.items():
            train = own["train"]
            figures = [train["documents"], train["words"], train["bytes"], own["valid"]["bytes"], own["test"]["bytes"]]
            rows.append([language, kind, *map(count, figures)])
        total = [sum(own["train"][each] for own in shown.values()) for each in ("documents", "words", "bytes")]
        held = [sum(own[name]["bytes"] for own in shown.values()) for name in ("valid", "test")]
        rows.append([language, "all", *map(count, (*total, *held))])
    sections.append(f"## Text of one language\n\n{format_table(rows, markdown=True)}")
    packages = statistics["packages"]
    shown_licences = [["licence", "packages"], *([n, count(k)] for n, k in list(packages["licences"].items())[:40])]
    sections.append(
        f"## Licences\n\n{count(packages['number'])} packages, {packages['bytes'] / 1e6:,.0f} MB; "
        f"{count(packages['without_licence_names'])} name no licence in a way that is recognised. The 40 most frequent "
        f"(manifest.json has all, by package):\n\n{format_table(shown_licences, markdown=True)}"
    )
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"
