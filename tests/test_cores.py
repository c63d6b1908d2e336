"""The default number of threads: the cores that the process can use, or the number in the environment."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from segmenting import hard_text

from mt_scaffold import BPE, UsageError, count_words, get_vocab, learn_bpe, options
from mt_scaffold.cli import main
from mt_scaffold.cores import allowed_cores, quota, usable_cores
from mt_scaffold.options import worker_count

TEXT = hard_text(61, 3000).encode("utf-8")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MT_SCAFFOLD_NUM_WORKERS", raising=False)


def group(root: Path, line: str, files: dict[str, str]) -> str:
    """Write the files of a machine whose process is in the control groups of ``line``; return its root."""
    for name, content in {"proc/self/cgroup": line, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return str(root)


@pytest.mark.parametrize(
    ("line", "files", "cores"),
    [
        ("0::/", {"sys/fs/cgroup/cpu.max": "max 100000"}, float("inf")),
        ("0::/", {"sys/fs/cgroup/cpu.max": "250000 100000"}, 2.5),
        ("0::/a/b", {"sys/fs/cgroup/a/cpu.max": "300000 100000", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),  # a container, in which only its group is mounted
        (
            "9:memory:/a\n4:cpu,cpuacct:/a\n0::/",
            {
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "400000",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            4,
        ),
        ("3:cpuset:/a", {"sys/fs/cgroup/cpuset/a/cpu.max": "100000 100000"}, float("inf")),
        ("0::/", {"sys/fs/cgroup/cpu.max": ""}, float("inf")),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, line: str, files: dict[str, str], cores: float) -> None:
    """Versions 1 and 2; a limit on the group, on one above it, or none."""
    assert quota(group(tmp_path, line, files)) == cores


def test_without_control_groups(tmp_path: Path) -> None:
    """Systems other than Linux have no such files."""
    assert quota(str(tmp_path)) == float("inf")


@pytest.mark.parametrize(("limit", "cores"), [(float("inf"), 8), (2.5, 3), (0.2, 1), (64, 8)])
def test_cores_that_can_be_used(monkeypatch: pytest.MonkeyPatch, limit: float, cores: int) -> None:
    """All that the process may run on, or fewer if its quota is lower; at least one."""
    monkeypatch.setattr("mt_scaffold.cores.allowed_cores", lambda: 8)
    monkeypatch.setattr("mt_scaffold.cores._own_quota", lambda: limit)
    assert usable_cores() == cores


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """All usable cores, up to 16; the variable takes precedence, and an explicit number over both."""
    for cores, workers in ((1, 1), (5, 5), (16, 16), (192, 16)):
        monkeypatch.setattr(options, "usable_cores", lambda cores=cores: cores)
        assert worker_count() == worker_count(None) == workers
    for value, workers in (("3", 3), ("40", 40), ("-1", allowed_cores()), ("", 16)):
        monkeypatch.setenv("MT_SCAFFOLD_NUM_WORKERS", value)
        assert worker_count() == workers
        assert (worker_count(7), worker_count(-1)) == (7, allowed_cores())


@pytest.mark.parametrize("value", ["many", "0", "-2", "5000", "2.5"])
def test_a_wrong_variable(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line that names it and status 2, from every command; it is ignored if the number is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MT_SCAFFOLD_NUM_WORKERS", value)
    Path("text").write_bytes(TEXT)
    Path("codes").write_bytes(b"#version: 0.2\na b\n")
    for command in (
        "learn-bpe -i text -o out -s 10",
        "apply-bpe -i text -o out -c codes",
        "get-vocab -i text -o out",
        "learn-joint-bpe-and-vocab -i text -o out -s 10 --write-vocabulary vocabulary",
        "stats -c codes -i text",
        "compare-vocab codes codes -i text",
    ):
        assert main(command.split()) == 2
        error = capfd.readouterr().err
        assert "MT_SCAFFOLD_NUM_WORKERS" in error and f"{value}" in error and error.count("\n") == 1
        assert main([*command.split(), "--num-workers", "1"]) == 0
        capfd.readouterr()
    with pytest.raises(UsageError, match="MT_SCAFFOLD_NUM_WORKERS"):
        learn_bpe(lines=["ab ab"])


def test_the_output_does_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes, vocabularies and subwords, also with dropout, are the same for any default."""

    def results() -> list[bytes]:
        learned = learn_bpe(io.BytesIO(TEXT), num_symbols=100)
        outputs = [io.BytesIO() for _ in range(3)]
        BPE(learned.codes).process_file(io.BytesIO(TEXT * 40), outputs[0])
        BPE(learned.codes).process_file(io.BytesIO(TEXT * 40), outputs[1], dropout=0.3, seed=4)
        get_vocab(io.BytesIO(TEXT * 40), outputs[2])
        return [learned.text, *(output.getvalue() for output in outputs)]

    alone = results()
    for value in ("1", "2", "7"):
        monkeypatch.setenv("MT_SCAFFOLD_NUM_WORKERS", value)
        assert results() == alone
    assert count_words(lines=["b a b"]).items() == [("b", 2), ("a", 1)]
