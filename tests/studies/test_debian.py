"""studies/debian on a mirror made by the test, with catalogues, help and descriptions; without network."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

polib = pytest.importorskip("polib", reason="needs pip install '.[debian]'")
pytest.importorskip("py3langid", reason="needs pip install '.[debian]'")
pytest.importorskip("lxml", reason="needs pip install '.[debian]'")

from studies.debian import cleaning, formats  # noqa: E402
from studies.debian.__main__ import main  # noqa: E402
from studies.debian.archives import document_key, licences  # noqa: E402
from studies.debian.segments import Document, Pair, family  # noqa: E402
from studies.debian.splitting import choose_families, near_copies, split  # noqa: E402

needs_apt = pytest.mark.skipif(
    shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None, reason="needs apt and dpkg, as on Debian"
)
COPYRIGHT = (
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nLicense: GPL-2+\n text\n"
)
NOUNS = "window printer folder network picture keyboard archive message program calendar".split()
NOMEN = "Fenster Drucker Ordner Netzwerk Bild Tastatur Archiv Meldung Programm Kalender".split()


def sentences(package: int) -> list[tuple[str, str]]:
    """Return sentences that are in no other package, with their translations."""
    name = "abcdefghijklmnopqrstuvwxyz"[package] * 4
    return [
        (f"The {one} of {name} could not be opened, please try again.",
         f"{other} von {name} konnte nicht geöffnet werden, bitte versuchen Sie es erneut.")
        for one, other in zip(NOUNS, NOMEN, strict=True)
    ]  # fmt: skip


def make_package(pool: Path, work: Path, name: str, source: str, pairs: list[tuple[str, str]]) -> str:
    """Write a .deb with a catalogue, a page of help and a copyright file; return its stanza in the index."""
    root = work / name
    catalogue = polib.MOFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=2; plural=n != 1;"}
    for one, other in pairs:
        catalogue.append(polib.POEntry(msgid=one, msgstr=other))
    catalogue.append(polib.POEntry(msgid="_Quit", msgstr="_Beenden"))
    folder = root / "usr/share/locale/de/LC_MESSAGES"
    folder.mkdir(parents=True)
    catalogue.save(str(folder / f"{name}.mo"))
    for language, title in (("C", f"How to print with {name}"), ("de", f"Drucken mit {name}")):
        page = root / f"usr/share/help/{language}/{name}/index.page"
        page.parent.mkdir(parents=True)
        page.write_text(f'<page xmlns="http://projectmallard.org/1.0/"><title>{title}</title></page>', "utf-8")
    copyright_file = root / f"usr/share/doc/{name}/copyright"
    copyright_file.parent.mkdir(parents=True)
    copyright_file.write_text(COPYRIGHT, "utf-8")
    control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n"
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text(f"{control}Description: a thing\n", "utf-8")
    archive = pool / f"{name}_1.0_all.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(root), str(archive)], check=True, capture_output=True
    )
    content = archive.read_bytes()
    return (
        f"{control}Source: {source}\nSection: utils\nSize: {len(content)}\nFilename: pool/{archive.name}\n"
        f"SHA256: {hashlib.sha256(content).hexdigest()}\nDescription: thing {name}\n"
        f"Description-md5: {hashlib.md5(name.encode()).hexdigest()}\n"
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of sources with a mirror of twelve packages, from twelve source packages."""
    mirror, work = tmp_path_factory.mktemp("mirror"), tmp_path_factory.mktemp("packages")
    (mirror / "pool").mkdir()
    stanzas, contents, english, german = [], [], [], []
    for number in range(12):
        name = f"tool{chr(97 + number)}"
        # The last two are versions of one program, with the same text.
        source = f"suite-{number}" if number >= 10 else name
        stanzas.append(make_package(mirror / "pool", work, name, source, sentences(min(number, 10))))
        contents.append(f"usr/share/locale/de/LC_MESSAGES/{name}.mo    utils/{name}\n")
        head = f"Package: {name}\nDescription-md5: {hashlib.md5(name.encode()).hexdigest()}\n"
        english.append(
            f"{head}Description-en: useful tool called {name}\n It opens every document that {name} wrote.\n"
        )
        german.append(
            f"{head}Description-de: nützliches Werkzeug namens {name}\n Es öffnet jedes Dokument, das {name} schrieb.\n"
        )
    base = mirror / "dists/stable"
    lines = []
    for file, parts in {
        "main/binary-all/Packages": stanzas,
        f"main/binary-{architecture()}/Packages": [],
        "main/Contents-all": ["".join(contents)],
        "main/i18n/Translation-en": english,
        "main/i18n/Translation-de": german,
    }.items():
        lines.append(write_index(base, file, "\n".join(parts).encode()))
    release = f"Suite: stable\nCodename: stable\nComponents: main\nArchitectures: all {architecture()}\n"
    (base / "Release").write_text(f"{release}Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{''.join(lines)}", "utf-8")
    path = mirror / "sources.list"
    path.write_text(f"deb [trusted=yes] file:{mirror} stable main\n", "utf-8")
    return path


def architecture() -> str:
    """Return dpkg's name for this machine's architecture."""
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()


def write_index(base: Path, file: str, content: bytes) -> str:
    """Write an index of the mirror; return its line in the Release file."""
    (base / file).parent.mkdir(parents=True, exist_ok=True)
    (base / file).write_bytes(content)
    return f" {hashlib.sha256(content).hexdigest()} {len(content)} {file}\n"


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of the corpus."""
    outputs = [*folder.glob("en-de/*"), *folder.glob("text/*"), *folder.glob("*.json"), *folder.glob("*.md")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in outputs}


@needs_apt
def test_two_runs_give_the_same_bytes_and_no_test_text_is_trained_on(sources: Path, tmp_path: Path) -> None:
    """The whole program, from apt's indices to the manifest, twice."""
    for name in ("one", "two"):
        options = ["--languages", "de", "--output", str(tmp_path / name), "--sources", str(sources), "--jobs", "1"]
        assert main(options) == 0
    assert digests(tmp_path / "one") == digests(tmp_path / "two")

    corpus = tmp_path / "one/en-de"
    train = {side: (corpus / f"train.{side}").read_text("utf-8").splitlines() for side in ("en", "de", "origin")}
    assert ("Quit", "Beenden") in set(zip(train["en"], train["de"], strict=True))
    assert len(set(zip(train["en"], train["de"], strict=True))) == len(train["en"]) == len(train["origin"])
    packages = {family(line.split("\t")[1]) for line in train["origin"]}
    held_out = 0
    for part in ("valid", "test"):
        for kind in ("help", "games", "descriptions", "messages"):
            for side in ("en", "de"):
                lines = (corpus / f"{part}.{kind}.{side}").read_text("utf-8").splitlines()
                assert not set(map(cleaning.key, lines)) & set(map(cleaning.key, train[side]))
                held_out += len(lines)
            origins = (corpus / f"{part}.{kind}.origin").read_text("utf-8").splitlines()
            assert not {family(line.split("\t")[1]) for line in origins} & packages
    assert held_out > 0

    manifest = json.loads((tmp_path / "one/manifest.json").read_text("utf-8"))
    assert [entry["licences"] for entry in manifest["packages"]] == [["GPL-2+"]] * 12
    assert manifest["files"]["en-de/train.en"]["lines"] == len(train["en"])
    with gzip.open(tmp_path / "one/text/de.train.jsonl.gz", "rt", encoding="utf-8") as stream:
        assert all(json.loads(line)["text"] for line in stream)


@needs_apt
def test_a_run_resumes_and_refuses_other_settings_and_damaged_packages(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Complete steps are not repeated, and nothing is built from two sets of settings."""
    options = ["--output", str(tmp_path), "--sources", str(sources), "--jobs", "1"]
    assert main(["--languages", "de", *options, "--until", "download"]) == 0
    listed = (tmp_path / "packages.json").read_bytes()
    archive = min((tmp_path / "debs").glob("*.deb"))
    archive.unlink()
    assert main(["--languages", "de", *options, "--until", "extract"]) == 0
    assert archive.exists() and (tmp_path / "packages.json").read_bytes() == listed

    assert main(["--languages", "fr", *options]) == 2
    assert "was started with languages ['de']" in capsys.readouterr().err

    (tmp_path / "extracted" / archive.name.replace(".deb", ".jsonl.gz")).unlink()
    archive.write_bytes(b"not an archive")
    assert main(["--languages", "de", *options]) == 1
    assert "not a Debian package" in capsys.readouterr().err


def test_wrong_options_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused before anything is fetched or written."""
    options = ["--languages", "de", "--output", str(tmp_path / "out")]
    assert main([*options, "--jobs", "0"]) == 2
    assert capsys.readouterr().err.startswith("studies.debian: the number of workers must be 1 to")
    with pytest.raises(SystemExit, match="2"):
        main([*options, "--only", "("])
    assert "argument --only: not a regular expression" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("_File", "_Datei", ("File", "Datei")),
        ("E_xit", "B_eenden", ("Exit", "Beenden")),
        ("Save &As...", "Speichern &unter ...", ("Save As...", "Speichern unter ...")),
        ("file_name is empty", "file_name ist leer", ("file_name is empty", "file_name ist leer")),
        ("R&D", "F&E", ("R&D", "F&E")),
        ("&lt; all", "&lt; alle", ("&lt; all", "&lt; alle")),
    ],
)
def test_accelerators_go_and_names_stay(source: str, target: str, expected: tuple[str, str]) -> None:
    """A mark within a word would make it another word; a name without its underscore would be wrong."""
    assert cleaning.without_accelerator(source, target) == expected


def test_markup_goes_and_placeholders_stay() -> None:
    """A placeholder is part of a translation; markup is not."""
    assert cleaning.plain("<b>Copy</b> <file> to %s<br/>&quot;{name}&quot;\n now") == 'Copy <file> to %s "{name}" now'
    assert cleaning.without_context("female^Elvish Fighter", "Elfische Kämpferin") == "Elvish Fighter"
    assert cleaning.without_context("$unit.name| is dead", "$unit.name| ist tot") == "$unit.name| is dead"


def test_plural_forms_give_two_pairs(tmp_path: Path) -> None:
    """The singular belongs to the first form, the plural to the last."""
    catalogue = polib.MOFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.append(
        polib.POEntry(msgid="%d file", msgid_plural="%d files", msgstr_plural={0: "%d Datei", 1: "%d Dateien"})
    )
    catalogue.save(str(tmp_path / "a.mo"))
    assert formats.catalogue((tmp_path / "a.mo").read_bytes()) == [("%d file", "%d Datei"), ("%d files", "%d Dateien")]
    with pytest.raises(ValueError, match="not a gettext catalogue"):
        formats.catalogue(b"\x00broken")


def test_language_is_checked_where_there_are_enough_words() -> None:
    """English text in a German catalogue is the most frequent fault; two words are too few to judge."""
    assert cleaning.in_language("Die Datei konnte leider nicht geöffnet werden", "de") is True
    assert cleaning.in_language("The file could not be opened for writing", "de") is False
    assert cleaning.in_language("Файл не удалось открыть для записи в каталог", "de") is False
    assert cleaning.in_language("Open file", "de") is None
    assert not cleaning.mostly_in([False, None, True, False]) and cleaning.mostly_in([None])


def test_documents_are_aligned_by_structure_or_by_id() -> None:
    """A paragraph must not be paired with another one when a translation lacks a block."""
    english = formats.xml(
        b"<article><title>Two &amp; two</title><para>About &kde;.</para><para id='b'>More</para></article>"
    )
    assert english == [("title", "", "Two & two"), ("para", "", "About kde."), ("para", "b", "More")]
    german = [("title", "", "Zwei & zwei"), ("para", "", "Über kde."), ("para", "b", "Mehr")]
    assert formats.aligned(english, german) == [
        ("Two & two", "Zwei & zwei"),
        ("About kde.", "Über kde."),
        ("More", "Mehr"),
    ]
    assert formats.aligned(english, german[1:]) == [("More", "Mehr")]
    assert formats.html("<p>Größe <b>x</b><script>no</script></p>".encode()) == [("p", "", "Größe x")]
    page = gzip.compress(
        b'.TH LS 1\n.SH NAME\nls \\- list\n.BR \\-a , " all"\n.nf\nexample\n.fi\n.PP\nSee \\fBcp\\fP.\n'
    )
    assert [text for _, _, text in formats.manual_page(page)] == ["ls - list -a, all", "See cp."]


def test_what_a_translation_shares_with_its_original() -> None:
    """Documents of two languages have the same key, versions of a source package the same family."""
    for english, german in (
        ("usr/share/help/C/gedit/a.page", "usr/share/help/de/gedit/a.page"),
        ("usr/share/man/man1/ls.1.gz", "usr/share/man/de/man1/ls.1.gz"),
        ("usr/share/doc/guide/html/a.en.html", "usr/share/doc/guide/html/a.de.html"),
    ):
        assert document_key(english, "en") == document_key(german, "de")
    assert [family(name) for name in ("gcc-12", "gtk+3.0", "x264", "0ad")] == ["gcc", "gtk+", "x264", "0ad"]
    assert licences(COPYRIGHT.encode()) == ["GPL-2+"]
    assert licences(b"see /usr/share/common-licenses/GPL-3.") == ["mentions GPL-3"]


def test_a_near_copy_of_training_text_is_not_tested_on() -> None:
    """Forks change a word or a number of a message: a model could translate it from memory."""
    text = "the quick brown fox jumps over the lazy dog again and again"
    assert near_copies([text, "an entirely different sentence with more than eight words"], [f"{text} today"]) == {0}


def test_text_that_a_training_package_has_is_in_no_test_set() -> None:
    """Pairs of a held-out package that are in others as well would be known already."""
    own = [
        Pair(
            "messages",
            f"p{number}",
            f"{'abcdefghijklmnopqrst'[number] * 5} has one sentence to say",
            f"{'ABCDEFGHIJKLMNOPQRST'[number] * 6} sagt einen Satz",
        )
        for number in range(20)
    ]
    shared = [
        Pair("messages", f"p{number}", "every program says the same thing", "jedes sagt dasselbe hier")
        for number in range(20)
    ]
    result = split([*own, *shared], [], 1)
    assert len(result.test["messages"]) == len(result.valid["messages"]) == 1
    assert "every program says" not in result.test["messages"][0].source
    held = result.test["messages"][0]
    texts = [Document("documents", result.train[0].package, "a", (held.source,))]
    assert held not in split([*own, *shared], texts, 1).test["messages"]


def test_a_package_with_much_of_the_text_always_trains() -> None:
    """Held-out manual pages would be cut to the size of a test set, and most of the text would be lost."""
    pairs = [
        Pair("messages", f"p{letter}", f"{letter * 5} has one sentence", f"{letter * 6} sagt etwas")
        for letter in "abcdefghij"
    ]
    held_out = choose_families(pairs, [], 1)
    assert len(held_out) == 0  # a twentieth of ten pairs is none
    pairs *= 2
    held_out = choose_families(pairs, [], 1)
    large = [Document("documents", name, "a", ("word " * 20_000,)) for name in held_out]
    assert held_out and not set(held_out) & set(choose_families(pairs, large, 1))


@pytest.mark.parametrize("name", ["debian_en_de.yaml", "debian_lm_de.yaml"])
def test_the_configurations_are_accepted(name: str) -> None:
    """They name the files that the program writes, with options that mt-scaffold takes."""
    from mt_scaffold.experiment.configuration import load_experiment

    experiment = load_experiment(Path(__file__).resolve().parents[2] / "studies/debian" / name)
    assert experiment.name == name.removesuffix(".yaml")
