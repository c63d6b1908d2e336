"""Archives: interrupted downloads, digests, members by name, and one clear line for each thing that can go wrong."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pooch", reason="pooch comes with the extra 'workflow'")
pytest.importorskip("sacrebleu", reason="sacreBLEU comes with the extra 'workflow'")

from sacrebleu.dataset import DATASETS
from wmt14_archives import derived_config, make_archives, make_tar

from mt_scaffold.cli import main
from mt_scaffold.errors import MTScaffoldError, UsageError
from mt_scaffold.experiment.configuration import parse_config
from mt_scaffold.experiment.configuration.data import Archive
from mt_scaffold.experiment.configuration.translation_layout import TranslationLayout
from mt_scaffold.experiment.data.archives import extract, sacrebleu_test_set
from mt_scaffold.experiment.data.download import fetch
from mt_scaffold.experiment.data.parallel import fetch_data, get_data
from mt_scaffold.experiment.tasks.training_text import parallel_text

CONTENT = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
# Where an unfinished download is kept.
PART = f"{DIGEST[:12]}-corpus.tgz.part"


class Server:
    """A web server on this machine with one file; it can break off, and can ignore ranges."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.break_after: int | None = None
        self.ranges = True
        self.asked: list[str | None] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                server.asked.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.ranges else 0
                total = len(server.content)
                if start >= total:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{total}")
                    self.end_headers()
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(total - start))
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
                self.end_headers()
                body = server.content[start:]
                self.wfile.write(body if server.break_after is None else body[: server.break_after])

        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.web.serve_forever, daemon=True).start()

    @property
    def archive(self) -> Archive:
        url = f"http://127.0.0.1:{self.web.server_port}/corpus.tgz"
        return Archive(url, sha256=DIGEST)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.web.shutdown()
    server.web.server_close()


def test_an_interrupted_download_resumes(tmp_path: Path, server: Server) -> None:
    """Each attempt fetches a part, and none is fetched twice."""
    server.break_after = 400_000
    path = fetch(server.archive, tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=400000-", "bytes=800000-"]
    assert not list(tmp_path.glob("*.part"))


def test_a_stalled_download_fails_in_one_line_and_the_next_run_resumes(tmp_path: Path, server: Server) -> None:
    """The part already fetched is kept: a lost connection must not cost hours."""
    server.break_after = 0
    part = tmp_path / PART
    part.write_bytes(CONTENT[:300_000])
    with pytest.raises(MTScaffoldError, match=r"\(300000 bytes are kept; the download resumes from there\)") as raised:
        fetch(server.archive, tmp_path)
    assert "\n" not in str(raised.value)
    server.break_after = None
    assert fetch(server.archive, tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=300000-"


def test_a_server_without_ranges_sends_the_whole_file_again(tmp_path: Path, server: Server) -> None:
    """The start of the file must not end up in it twice."""
    server.ranges = False
    (tmp_path / PART).write_bytes(CONTENT[:1000])
    assert fetch(server.archive, tmp_path).read_bytes() == CONTENT


def test_a_link_in_the_place_of_a_part_is_not_followed(tmp_path: Path, server: Server) -> None:
    """A cache may be shared: the download would be written to whatever it leads to."""
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / PART).symlink_to(tmp_path / "victim")
    path = fetch(server.archive, tmp_path / "cache")
    assert path.read_bytes() == CONTENT and not path.is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_part_that_is_longer_than_the_file_is_dropped(tmp_path: Path, server: Server) -> None:
    """A partial download that cannot be resumed must not block every further attempt."""
    (tmp_path / PART).write_bytes(CONTENT + b"more")
    assert fetch(server.archive, tmp_path).read_bytes() == CONTENT


def test_a_wrong_digest_is_one_line_nothing_is_kept_and_the_next_run_recovers(tmp_path: Path, server: Server) -> None:
    """A changed file is never used, and nobody has to delete it by hand."""
    server.content = b"changed" + CONTENT
    with pytest.raises(
        MTScaffoldError, match=r"sha256 mismatch: the configuration has .* the download is discarded"
    ) as raised:
        fetch(server.archive, tmp_path)
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    server.content = CONTENT
    assert fetch(server.archive, tmp_path).read_bytes() == CONTENT


def test_a_damaged_file_in_the_cache_is_fetched_again(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The digest is checked each time, not only after a download."""
    path = fetch(server.archive, tmp_path)
    path.write_bytes(CONTENT[:-1])
    assert fetch(server.archive, tmp_path).read_bytes() == CONTENT
    assert f"{path}: sha256 mismatch" in capsys.readouterr().err


def test_an_md5_is_checked_too(tmp_path: Path) -> None:
    """Some archives publish only an MD5."""
    (tmp_path / "a.tgz").write_bytes(b"x")
    good = Archive("http://127.0.0.1:9/a.tgz", md5=hashlib.md5(b"x").hexdigest())
    assert fetch(good, tmp_path) == tmp_path / "a.tgz"
    with pytest.raises(MTScaffoldError, match="no connection"):
        fetch(Archive(good.url, md5="0" * 32), tmp_path)


def test_an_unknown_digest_is_recorded_with_a_warning_and_checked_from_then_on(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even without a published digest, all runs on a machine use the same bytes."""
    archive = Archive(server.archive.url, sha256="unknown")
    path = fetch(archive, tmp_path)
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert (tmp_path / f"{path.name}.sha256").read_text() == f"{digest}  {path.name}\n"
    assert "no digest is published" in capsys.readouterr().err
    assert fetch(archive, tmp_path) == path and len(server.asked) == 1
    assert capsys.readouterr().err == ""
    path.write_bytes(CONTENT[1:])
    with pytest.raises(MTScaffoldError, match=f"sha256 has {digest}; delete the file"):
        fetch(archive, tmp_path)


@pytest.mark.parametrize("name", ["a.tgz", "a.tar"])
def test_members_come_by_name_and_nothing_else_is_written(tmp_path: Path, name: str) -> None:
    """Whatever other names an archive contains, such as ../evil, no file is written for them."""
    # ``tar c .`` writes ./one, and nobody types that.
    make_tar(tmp_path / name, {"../evil": b"x", "./a/one": b"1\n2\n", "a/two.gz": gzip.compress(b"3\n4\n")})
    (tmp_path / "to").mkdir()
    extract(tmp_path / name, {"a/two.gz": tmp_path / "to" / "2.gz", "a/one": tmp_path / "to" / "1"})
    assert (tmp_path / "to" / "1").read_bytes() == b"1\n2\n"
    assert gzip.decompress((tmp_path / "to" / "2.gz").read_bytes()) == b"3\n4\n"
    extract(tmp_path / name, {"a/two.gz": tmp_path / "to" / "2", "a/one": tmp_path / "to" / "1"}, lines=1)
    assert [(tmp_path / "to" / name).read_bytes() for name in "12"] == [b"1\n", b"3\n"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([name, "to", "1", "2", "2.gz"])


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_no_file_is_one_line(tmp_path: Path, kind: bytes) -> None:
    """A link could stand for any other file, and a folder has no text."""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        entry = tarfile.TarInfo("one")
        entry.type, entry.linkname = kind, "two"
        tar.addfile(entry)
    with pytest.raises(MTScaffoldError, match=r"a\.tar: member one is not a regular file; correct its name"):
        extract(tmp_path / "a.tar", {"one": tmp_path / "1"})
    assert not (tmp_path / "1").exists()


def test_a_missing_member_is_named_with_similar_ones(tmp_path: Path) -> None:
    """A typo can be corrected without listing an archive of gigabytes."""
    make_tar(tmp_path / "a.tgz", {"training/europarl-v7.de-en.de": b"x\n"})
    with pytest.raises(MTScaffoldError, match=r"a\.tgz: no member training/europarl-v7\.de-en\.en; .*such as"):
        extract(tmp_path / "a.tgz", {"training/europarl-v7.de-en.en": tmp_path / "x"})


@pytest.mark.parametrize("keep", [0, 5, 700])
@pytest.mark.parametrize("name", ["a.tgz", "a.tar"])
def test_a_truncated_archive_is_one_line_and_leaves_no_file(tmp_path: Path, name: str, keep: int) -> None:
    """Part of a corpus must not pass for the whole."""
    make_tar(tmp_path / name, {"one": CONTENT, "two": CONTENT})
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:keep])
    with pytest.raises(MTScaffoldError, match=rf"{name}: (damaged or truncated|no member one)") as raised:
        extract(tmp_path / name, {"one": tmp_path / "1", "two": tmp_path / "2"})
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_malformed_header_is_one_line(tmp_path: Path) -> None:
    """Invalid numbers, and thousands of long names in a row, which tarfile reads recursively."""
    with tarfile.open(tmp_path / "map.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("one")
        entry.pax_headers = {"GNU.sparse.map": "0,5,zz"}
        tar.addfile(entry)
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, 4
    name = entry.tobuf(tarfile.GNU_FORMAT) + b"one\0".ljust(tarfile.BLOCKSIZE, b"\0")
    (tmp_path / "names.tar").write_bytes(name * 3000)
    for archive in ("map.tar", "names.tar"):
        with pytest.raises(MTScaffoldError, match=rf"{archive}: damaged or truncated"):
            extract(tmp_path / archive, {"one": tmp_path / "1"})


def test_an_archive_with_a_flipped_byte_is_refused(tmp_path: Path) -> None:
    """The archive's checksum is compared, so that nothing trains on damaged text."""
    make_tar(tmp_path / "a.tgz", {"one": CONTENT})
    content = bytearray((tmp_path / "a.tgz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(MTScaffoldError, match="damaged or truncated"):
        extract(tmp_path / "a.tgz", {"one": tmp_path / "1"})


@pytest.fixture
def wmt14(tmp_path: Path) -> dict[str, Any]:
    """A configuration that uses small archives in ``cache``."""
    (tmp_path / "cache").mkdir()
    return derived_config("de", tmp_path / "cache", make_archives(tmp_path / "cache", "de"))


def test_unequal_sides_in_an_archive_are_one_line_and_the_next_run_recovers(
    tmp_path: Path, wmt14: dict[str, Any]
) -> None:
    """Sides of different length never become a corpus, and correcting the configuration is enough."""
    pair = wmt14["data"]["archives"]["train"][0]
    right = dict(pair)
    pair["source"] = "README"
    with pytest.raises(MTScaffoldError, match=r"README has 1 lines and .*europarl-v7\.de-en\.de has 60") as raised:
        get_data(parse_config(wmt14), tmp_path / "raw", tmp_path / "cache")
    assert "\n" not in str(raised.value)
    assert not list((tmp_path / "raw").glob("train*")) and not (tmp_path / "raw" / ".members-all").exists()
    wmt14["data"]["archives"]["train"][0] = right
    numbers = get_data(parse_config(wmt14), tmp_path / "raw", tmp_path / "cache")
    assert numbers.corpora["train"].lines == 180
    assert not (tmp_path / "raw" / ".members-all").exists()


def test_leftovers_of_a_killed_run_do_no_harm(
    tmp_path: Path, wmt14: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run replaces them and removes its own."""
    (tmp_path / "raw" / ".members-all" / "0").mkdir(parents=True)
    # sacreBLEU, which works in another folder, could not read a test set in a relative one, as an experiment's is.
    monkeypatch.chdir(tmp_path)
    get_data(parse_config(wmt14), Path("raw"), Path("cache"))
    assert not (tmp_path / "raw" / ".members-all").exists()


def test_everything_is_fetched_before_anything_is_written(tmp_path: Path, wmt14: dict[str, Any]) -> None:
    """A rehearsal must not read for an hour only to find that the last archive is missing."""
    config = parse_config(wmt14)
    assert len(fetch_data(config, tmp_path / "cache")) == 5
    (tmp_path / "cache" / "training-parallel-nc-v11.tgz").unlink()
    wmt14["data"]["archives"]["train"][2]["archive"]["url"] = "http://127.0.0.1:9/training-parallel-nc-v11.tgz"
    with pytest.raises(MTScaffoldError, match=r"training-parallel-nc-v11\.tgz: cannot be fetched, no connection"):
        get_data(parse_config(wmt14), tmp_path / "raw", tmp_path / "cache")
    assert not list((tmp_path / "raw").iterdir())


def test_the_command_fills_the_cache_and_writes_nothing_else(
    tmp_path: Path, wmt14: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """``--fetch-only`` prepares a machine without a network."""
    (tmp_path / "c.yaml").write_text(json.dumps(wmt14))
    arguments = ["get-data", "--config", str(tmp_path / "c.yaml"), "--cache", str(tmp_path / "cache")]
    assert main([*arguments, "--fetch-only"]) == 0
    assert capsys.readouterr().out.count("\n") == 5
    assert main(arguments) == 2
    assert main([*arguments, "--fetch-only", "--report", str(tmp_path / "r.json")]) == 2


def test_sacrebleus_own_folder_is_used_if_it_has_the_test_set(
    tmp_path: Path, wmt14: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No archive is fetched then: users of sacreBLEU set the variable SACREBLEU to work offline."""
    folder = tmp_path / "sacrebleu" / "wmt14" / "full"
    folder.mkdir(parents=True)
    for field in ("src", "ref", "docid", "genre", "origlang"):
        (folder / f"wmt14_full.en-de.{field}").write_text(f"{field}\n")
    monkeypatch.setenv("SACREBLEU", str(tmp_path / "sacrebleu"))
    (tmp_path / "new").mkdir()
    paths = sacrebleu_test_set("wmt14/full", "en-de", tmp_path / "nothing", tmp_path / "new")
    assert [path.read_text() for path in paths] == ["src\n", "ref\n"]


@pytest.mark.parametrize(
    ("name", "source", "member", "scored_with"),
    [
        ("wmt20/tworefs", "en", "sgm/newstest2020-ende-src.en.sgm", "AB"),
        ("wmt21/C", "en", "test/newstest2021.en-de.xml", "C"),
        ("wmt21/AC", "en", "test/newstest2021.en-de.xml", "AC"),
        ("wmt22", "cs", "wmt22-news-systems-1.1/xml/wmttest2022.cs-en.all.xml", "B"),
    ],
)
def test_a_set_of_sacrebleu_comes_with_the_references_that_it_scores_with(
    tmp_path: Path, wmt14: dict[str, Any], name: str, source: str, member: str, scored_with: str
) -> None:
    """``sacrebleu --echo ref`` prints A of each, so that scores were against another one than sacreBLEU's."""
    target, members = "de" if source == "en" else "en", {}
    if member.endswith("xml"):
        sides = "".join(f'<ref translator="{each}" lang="t"><seg id="1">{each}</seg></ref>' for each in "CAB")
        document = f'<doc id="d" origlang="s"><src lang="s"><seg id="1">source</seg></src>{sides}</doc>'
        members[member] = f"<dataset>{document}</dataset>".encode()
    else:
        for place, text in (("2020-ende-src.en", "source"), ("2020-ende-ref.de", "A"), ("B2020-ende-ref.de", "B")):
            members[f"sgm/newstest{place}.sgm"] = f'<seg id="1">{text}</seg>\n'.encode()
    make_tar(archive := tmp_path / "cache" / DATASETS[name].data[0].rsplit("/", 1)[-1], members)
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    wmt14 |= {"languages": {"source": source, "target": target}, "compare_with": []}
    wmt14["data"]["archives"]["tests"] = {"news": {"sacrebleu": name, "md5": digest}}
    record = get_data(config := parse_config(wmt14), tmp_path / "raw", tmp_path / "cache", ["news"])
    layout = TranslationLayout(tmp_path, config)
    assert (tmp_path / "raw" / f"news.{source}").read_text() == "source\n"
    assert [path.read_text() for path in layout.references("news")] == [f"{each}\n" for each in scored_with]
    assert record.references == ({"news": len(scored_with)} if len(scored_with) > 1 else {})


def test_references_are_members_of_archives_too(tmp_path: Path, wmt14: dict[str, Any]) -> None:
    """A test set keeps each reference, whatever it is kept in; the parts of one are concatenated."""
    archives, references = wmt14["data"]["archives"], ["dev/newstest2012.de", "dev/newstest2013.de"]
    pair = archives["valid"][0] | {"target": references[0], "references": references[1:]}
    archives["tests"]["newstest2014"] = {"pairs": [pair, pair]}
    get_data(config := parse_config(wmt14), tmp_path / "raw", tmp_path / "cache", ["newstest2014", "valid"])
    first, second = (path.read_text() for path in TranslationLayout(tmp_path, config).references("newstest2014"))
    assert second == (tmp_path / "raw" / "valid.de").read_text() * 2 and first.count("\n") == second.count("\n")
    archives["tests"]["newstest2014"]["pairs"][1] = pair | {"references": ["a", "b"]}
    with pytest.raises(UsageError, match=r"pairs\[1\].references: every part of a test set has as many"):
        parse_config(wmt14)


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("wmt14/fuhl", "de", "did you mean wmt14/full?"),
        ("wmt14/full", "xx", "no pair en-xx; choose one of cs-en"),
    ],
)
def test_a_test_set_that_sacrebleu_does_not_know_is_found_before_anything_runs(
    wmt14: dict[str, Any], name: str, target: str, message: str
) -> None:
    """A wrong name or language pair is reported with its key and what there is instead, not after the downloads."""
    wmt14["data"]["archives"]["tests"] = {"news": {"sacrebleu": name}}
    wmt14 |= {"languages": {"source": "en", "target": target}, "compare_with": []}
    ((key, problem),) = parallel_text(parse_config(wmt14)).problems
    assert key == "data.archives.tests.news.sacrebleu" and message in problem


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["train", 0, "archive", "sha256"], None, "train[0].archive: give its sha256 or its md5"),
        (["train", 0, "archive", "sha256"], "12", "must be 64 hexadecimal digits, or unknown"),
        (["tests", "newstest2014", "sacrebleu"], None, "give either sacrebleu or pairs"),
        (["tests", "newstest2014", "md5"], "12", "must be 32 hexadecimal digits"),
    ],
)
def test_a_wrong_configuration_of_archives_is_refused(
    wmt14: dict[str, Any], path: list[Any], value: Any, message: str
) -> None:
    """A mistake is found when the configuration is read, not after the downloads."""
    place = wmt14["data"]["archives"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(UsageError) as raised:
        parse_config(wmt14)
    assert message in str(raised.value)
