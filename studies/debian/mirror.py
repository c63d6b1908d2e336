"""Indices and packages of the machine's Debian mirror, through apt with its state in the output folder.

The system's apt is not changed, and nothing is installed. apt checks the signature of the mirror's Release file, and
through it the SHA256 of every index and package.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from mt_scaffold.corpus.files import make_folder, write_text
from mt_scaffold.errors import MTScaffoldError

HELPER = "/usr/lib/apt/apt-helper"
# Debian's list of sources, in newer and older releases.
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
# Packages per call of apt's downloader.
BATCH = 20

# The files to read for the language {code}; catalogues also with its country, as in de_DE.
CATALOGUE = r"/{code}(?:_{country})?/LC_MESSAGES/[^/]+\.mo$"
DOCUMENTS = (
    r"^usr/share/help/{help}/.+\.(?:page|docbook|xml)$",
    r"^usr/share/doc/HTML/{code}/.+\.docbook$",
    r"^usr/share/libreoffice/help/{office}/text/.+\.html$",
    r"^usr/share/gimp/[^/]+/help/{code}/.+\.html$",
    r"^usr/share/doc/[^/]+/(?:html/)?{code}/[^/]+\.html$",
    r"^usr/share/doc/.+[._]{code}\.html$",
    r"^usr/share/doc/[^/]+-{code}/.+\.html$",
    r"^usr/share/man/{man}man\d/[^/]+\.gz$",
)
# Packages with the English originals of documents that other packages have translated.
ENGLISH_OF = {"libreoffice-help-": "libreoffice-help-en-us", "gimp-help-": "gimp-help-en"}


def wanted(language: str) -> list[re.Pattern[str]]:
    """Return patterns for the paths, without leading slash, of files with text in ``language``, such as ``de``."""
    english = language == "en"
    fields = {
        "code": language,
        "country": language.upper(),
        "help": "C" if english else language,
        "office": "en-US" if english else language,
        "man": "" if english else f"{language}/",
    }
    catalogues = [] if english else [CATALOGUE]
    return [re.compile(pattern.format(**fields)) for pattern in (*catalogues, *DOCUMENTS)]


@dataclass(frozen=True)
class Package:
    """A binary package that apt would install, and the source package that it was built from."""

    name: str
    version: str
    source: str
    section: str
    size: int
    sha256: str
    uri: str

    @property
    def file(self) -> str:
        """The name of its archive in the output folder."""
        return f"{self.name}_{self.sha256[:16]}.deb"


class Mirror:
    """apt with its state in ``folder``, for the list ``sources`` and with the descriptions in ``languages``.

    Raises MTScaffoldError if apt or the list is missing.
    """

    def __init__(self, folder: Path, sources: str | None, languages: Sequence[str]) -> None:
        if not os.access(HELPER, os.X_OK):
            raise MTScaffoldError(f"{HELPER}: no such program; use a machine or container with Debian's apt")
        found = [path for path in ((sources,) if sources else SOURCES) if os.path.isfile(path)]
        if not found:
            raise MTScaffoldError(f"{sources or SOURCES[0]}: no such file; name apt's list of sources with --sources")
        self.folder = folder.absolute()
        self.options = {
            "Dir::State": f"{self.folder}",
            "Dir::State::lists": f"{self.folder}/lists",
            "Dir::State::status": f"{self.folder}/status",
            "Dir::Cache": f"{self.folder}/cache",
            "Dir::Etc::sourcelist": os.path.abspath(found[0]),
            "Dir::Etc::sourceparts": "-",
            # apt would change to the user _apt, who cannot write here.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": ",".join(languages),
            "Acquire::Retries": "3",
        }
        contents = "Acquire::IndexTargets::deb::Contents-deb"
        self.options |= {
            f"{contents}::MetaKey": "$(COMPONENT)/Contents-$(ARCHITECTURE)",
            f"{contents}::ShortDescription": "Contents-$(ARCHITECTURE)",
            f"{contents}::Description": "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Contents",
            f"{contents}::PDiffs": "false",
        }

    def _run(self, *command: str) -> bytes:
        options = [part for key, value in self.options.items() for part in ("-o", f"{key}={value}")]
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        done = subprocess.run([command[0], *options, *command[1:]], capture_output=True, env=environment, check=False)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            problem = next((line for line in lines if line.startswith("E:")), lines[-1] if lines else "no message")
            raise MTScaffoldError(f"{' '.join(command)[:80]}: {problem}")
        return done.stdout

    def update(self) -> None:
        """Fetch the indices whose digests have changed."""
        for name in ("lists/partial", "cache/archives/partial"):
            make_folder(self.folder / name)
        write_text(self.folder / "status", "")
        self._run("apt-get", "update", "--error-on=any")

    def indices(self, kind: str) -> list[str]:
        """Return the files of an index: ``Packages``, ``Contents-deb`` or ``Translations``."""
        lines = self._run("apt-get", "indextargets", "--format", "$(CREATED_BY)\t$(FILENAME)").decode().splitlines()
        return sorted(path for created_by, path in (line.split("\t") for line in lines) if created_by == kind)

    def read_index(self, path: str) -> bytes:
        """Return the decompressed contents of one of ``indices``."""
        return self._run(HELPER, "cat-file", path)

    def stanzas(self, kind: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the stanzas of an index as (its file, field → value); continued values keep their line breaks."""
        for path in self.indices(kind):
            for stanza in self.read_index(path).decode().split("\n\n"):
                fields: dict[str, str] = {}
                name = ""
                for line in stanza.splitlines():
                    if line.startswith((" ", "\t")):
                        fields[name] += f"\n{line}"
                    else:
                        name, _, value = line.partition(":")
                        fields[name] = value.strip()
                if fields:
                    yield path, fields

    def with_text(self, languages: Collection[str]) -> dict[str, int]:
        """Return the packages that have text in one of ``languages``, each with the number of such files."""
        patterns = [pattern for language in languages for pattern in wanted(language)]
        # A cheap test before the patterns: the indices have millions of lines.
        hint = re.compile("|".join(rf"[/._-]{language}[/._]" for language in languages))
        counts: dict[str, int] = {}
        for path in self.indices("Contents-deb"):
            for line in self.read_index(path).decode(errors="replace").splitlines():
                if hint.search(line):
                    file, _, packages = line.rstrip().rpartition(" ")
                    if any(pattern.search(file.rstrip()) for pattern in patterns):
                        for package in packages.split(","):
                            name = package.rpartition("/")[2]
                            counts[name] = counts.get(name, 0) + 1
        return counts

    def packages(self) -> dict[str, dict[str, str]]:
        """Return the stanza of every package in the indices, by its SHA256."""
        return {fields["SHA256"]: fields for _, fields in self.stanzas("Packages")}

    def choose(self, languages: Collection[str], most_bytes: int, always: re.Pattern[str]) -> list[Package]:
        """Return the packages with text in ``languages`` of up to ``most_bytes``, and those that match ``always``."""
        stanzas = self.packages()
        known = {fields["Package"] for fields in stanzas.values()}
        names = set(self.with_text(languages))
        names |= {english for start, english in ENGLISH_OF.items() if any(name.startswith(start) for name in names)}
        names &= known
        if not names:
            raise MTScaffoldError(f"the mirror's indices list no package with text in {', '.join(languages)}")
        chosen = []
        lines = self._run("apt-get", "--print-uris", "download", *sorted(names)).decode().splitlines()
        for line in lines:
            if match := re.fullmatch(r"'(\S+)' \S+ (\d+) SHA256:([0-9a-f]{64})", line.strip()):
                fields = stanzas[match[3]]
                source = fields.get("Source", fields["Package"]).split(" ")[0]
                package = Package(
                    fields["Package"],
                    fields["Version"],
                    source,
                    fields.get("Section", "unknown").rpartition("/")[2],
                    int(match[2]),
                    match[3],
                    match[1],
                )
                if package.size <= most_bytes or always.search(package.name):
                    chosen.append(package)
        return sorted(chosen, key=lambda package: (package.source, package.name))

    def download(self, packages: Sequence[Package], folder: Path, connections: int) -> None:
        """Fetch the archives that are not in ``folder`` yet, over up to ``connections`` connections at once.

        Partial downloads are resumed. Raises MTScaffoldError if a download fails or its SHA256 is not the index's.
        """
        make_folder(folder)
        missing = [package for package in packages if not (folder / package.file).exists()]
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]

        def fetch(batch: Sequence[Package]) -> None:
            parts = [folder / f"{package.file}.part" for package in batch]
            arguments = [
                argument
                for package, part in zip(batch, parts, strict=True)
                for argument in (package.uri, str(part), f"SHA256:{package.sha256}")
            ]
            self._run(HELPER, "download-file", *arguments)
            for package, part in zip(batch, parts, strict=True):
                with open(part, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                if digest != package.sha256:
                    raise MTScaffoldError(
                        f"{package.uri}: sha256 mismatch: {digest}, not {package.sha256}; run it again"
                    )
                os.replace(part, folder / package.file)

        with ThreadPoolExecutor(connections) as pool:
            futures = [pool.submit(fetch, batch) for batch in batches]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def as_json(packages: Sequence[Package]) -> list[dict[str, object]]:
    """Return ``packages`` in the form of packages.json."""
    return [asdict(package) for package in packages]
