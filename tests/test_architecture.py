"""The walls of the package: segmentation never imports experiment, no stage a later one, every import is declared."""

from __future__ import annotations

import ast
import configparser
import graphlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

grimp = pytest.importorskip("grimp", reason="comes with the extra 'dev'")

PACKAGE = Path(__file__).parent.parent / "mt_scaffold"
SETUP = PACKAGE.parent / "setup.cfg"
EXPERIMENT = "mt_scaffold.experiment"
GRAPH = grimp.build_graph("mt_scaffold", include_external_packages=True, cache_dir=None)
# Includes imports within functions and under TYPE_CHECKING.
OWN = sorted(module for module in GRAPH.modules if module.split(".")[0] == "mt_scaffold")

# The extras of setup.cfg that install the imports of a folder ("": of the package's own modules); segmentation has such
# imports only within functions.
EXTRAS = {
    "": "documents",
    "analysis": "documents",
    "commands": "completion",
    "corpus": "documents",
    "integrations": "transformers vocabularies datatrove",
    "methods": "unigram",
    "segment": "documents",
    "experiment.binarise": "workflow fairseq",
    "experiment.configuration": "workflow analysis",
    "experiment.data": "workflow",
    "experiment.evaluation": "workflow analysis fairseq harness",
    "experiment.fairseq_plugin": "fairseq",
    "experiment.inference": "workflow fairseq",
    "experiment.report": "workflow analysis",
    "experiment.runtime": "workflow fairseq transformers",
    "experiment.tasks": "workflow analysis",
    "experiment.training": "workflow fairseq",
    "experiment.workflow": "workflow",
}
# Declared, but not imported here: they are run, call the package, or are imported by lm_eval's model of transformers
# or datatrove.
RUN = {"accelerate", "orjson", "torch", "snakemake_executor_plugin_slurm"}
# Packages that pip can only compile, so that they are in no extra; an error names them when they are needed.
COMPILED = {"fastBPE"}
# Distribution → import name, if it differs.
IMPORT_NAMES = {
    "backports.zstd": "backports",
    "import-linter": "importlinter",
    "griffelib": "griffe",
    "markdown-it-py": "markdown_it",
    "fairseq-fixed": "fairseq",
    "Jinja2": "jinja2",
    "MarkupSafe": "markupsafe",
    "PyYAML": "yaml",
}
# The most lines of each folder. Whoever raises one says in the commit what went for it.
CEILINGS = {
    "benchmarks": 1_500,
    "mt_scaffold": 1_850,
    "mt_scaffold/analysis": 1_400,
    "mt_scaffold/as_subword_nmt": 70,
    "mt_scaffold/commands": 1_000,
    "mt_scaffold/core": 11_200,
    "mt_scaffold/corpus": 2_700,
    "mt_scaffold/experiment": 60,
    "mt_scaffold/experiment/binarise": 1_500,
    "mt_scaffold/experiment/commands": 700,
    "mt_scaffold/experiment/configuration": 2_520,
    "mt_scaffold/experiment/data": 2_730,
    "mt_scaffold/experiment/evaluation": 4_740,
    "mt_scaffold/experiment/fairseq_plugin": 2_000,
    "mt_scaffold/experiment/inference": 600,
    "mt_scaffold/experiment/report": 2_040,
    "mt_scaffold/experiment/runtime": 1_710,
    "mt_scaffold/experiment/tasks": 1_490,
    "mt_scaffold/experiment/training": 1_600,
    "mt_scaffold/experiment/workflow": 2_400,
    "mt_scaffold/integrations": 3_740,
    "mt_scaffold/methods": 2_000,
    "mt_scaffold/segment": 2_400,
    "mt_scaffold/subword_nmt": 540,
    "scripts": 800,
    "studies": 3_300,
    "tests": 32_600,
    "tools": 1_300,
}


def folder_of(module: str) -> str:
    """Return a module's folder in EXTRAS: ``experiment.report`` for ``mt_scaffold.experiment.report.html``."""
    parts = module.split(".")[1:]
    if parts[:1] == ["experiment"]:
        return ".".join(parts[:2])
    return parts[0] if parts and (PACKAGE / parts[0]).is_dir() else ""


def third_party(module: str) -> set[str]:
    """Return the packages that a module imports, besides Python's own and this one."""
    names = {imported.split(".")[0] for imported in GRAPH.find_modules_directly_imported_by(module)}
    return names - sys.stdlib_module_names - {"mt_scaffold", "compression"}  # the last is Python's own from 3.14


def test_the_walls_of_the_package_stand() -> None:
    """Segmentation runs without experiments, and each stage can be read, run and replaced without those after it."""
    pytest.importorskip("importlinter", reason="comes with the extra 'dev'")
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=SETUP.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_circle_among_the_folders_of_the_core() -> None:
    """Import-linter checks only Python."""
    included: dict[str, set[str]] = {}
    for path in PACKAGE.glob("core/*/*.?pp"):
        folders = re.findall(r'^#include "(\w+)/', path.read_text("utf-8"), re.MULTILINE)
        included.setdefault(path.parent.name, set()).update({*folders} - {path.parent.name})
    assert len(included) > 5
    graphlib.TopologicalSorter(included).prepare()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and codes to run the commands on."""
    from mt_scaffold import learn_bpe
    from mt_scaffold.segment.encode import encode_documents

    folder = tmp_path_factory.mktemp("files")
    (folder / "text").write_text("low lower lowest\nnewer newest low\n", encoding="utf-8")
    for algorithm in ("bpe", "scaffold"):
        learn_bpe(folder / "text", folder / algorithm, 6, algorithm=algorithm)
    learn_bpe(folder / "text", folder / "bytes", 6, pretokenise="gpt2")
    encode_documents(folder / "bytes", [folder / "text"], folder / "encoded.bin")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "",
        "--help",
        "count-words --input text --output counts --max-memory 64M",
        "learn-bpe --symbols 5 --input text --output codes",
        "learn-bpe --symbols 5 --input text --output codes --trace trace",
        "apply-bpe --codes scaffold --input text --output subwords --dropout 0.1 --seed 1",
        "encode --codes bytes --input text --output ids.bin",
        "decode --codes bytes --input encoded.bin --output decoded",
        "get-vocab --input text --output vocabulary",
        "learn-joint-bpe-and-vocab --symbols 5 --input text --output codes --write-vocabulary vocabulary",
        "stats --codes bpe scaffold --input text",
        "compare-vocab bpe scaffold --input text",
        "compare-vocab --sizes 2 4 --input text",
        "explain --codes scaffold lowest",
    ],
    ids=lambda command: command.split(" ")[0] or "import",
)
def test_segmentation_loads_only_itself(files: Path, command: str) -> None:
    """``pip install .`` is enough to segment, and a command starts fast: no experiment, no third-party package."""
    program = f"""
import sys
before = set(sys.modules)
import mt_scaffold
from mt_scaffold import BPE
if {command!r}:
    from mt_scaffold.cli import main
    try:
        status = main({command.split()!r})
    except SystemExit as end:
        status = end.code
    assert status == 0, status
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    assert "mt_scaffold._core" in loaded
    assert not [name for name in loaded if name.startswith(EXPERIMENT)]
    assert {name.split(".")[0] for name in loaded} - sys.stdlib_module_names == {"mt_scaffold"}
    # Importing any of these takes longer than segmenting a thousand sentences. Commands that learn are exempt: methods
    # are dataclasses, and learning takes longer anyway.
    if command.split(" ")[0] in ("", "apply-bpe", "get-vocab"):
        assert {"dataclasses", "inspect", "pathlib"} & set(loaded) == set()


def declared() -> dict[str, set[str]]:
    """Return the import names of the declared requirements by extra; "" is for those of ``pip install .``."""
    setup = configparser.ConfigParser()
    setup.read(SETUP, encoding="utf-8")
    lists = {"": setup["options"]["install_requires"], **setup["options.extras_require"]}
    names = {extra: re.findall(r"^[\w.-]+", requirements, re.MULTILINE) for extra, requirements in lists.items()}
    return {extra: {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names[extra]} for extra in names}


def test_segmentation_needs_nothing() -> None:
    """No third-party package is declared; test_segmentation_loads_only_itself checks that none is loaded."""
    assert declared()[""] == set()


def test_the_extras_of_a_folder_declare_what_it_imports() -> None:
    """Nothing works only because another package happens to need the same."""
    extras = declared()
    missing = {
        module: undeclared
        for module in OWN
        if (imported := third_party(module) - COMPILED)
        and (undeclared := imported - set().union(*(extras[extra] for extra in EXTRAS[folder_of(module)].split())))
    }
    assert not missing, f"imported, but declared in none of the extras of the folder: {missing}"


@pytest.mark.parametrize("extra", sorted({extra for extras in EXTRAS.values() for extra in extras.split()}))
def test_an_extra_declares_nothing_unused(extra: str) -> None:
    """Nobody should have to install a package that is not imported."""
    served = (module for module in OWN if extra in EXTRAS.get(folder_of(module), "").split())
    unused = declared()[extra] - set().union(*map(third_party, served)) - RUN
    assert not unused, f"declared in the extra {extra!r} of setup.cfg, but not imported: {unused}"


@pytest.mark.parametrize("folder", ["scripts", "studies", "tests", "tools"])
def test_what_tests_and_scripts_import_is_declared(folder: str) -> None:
    """``make`` installs the extras and nothing else, so an undeclared import would fail in a fresh clone."""
    files = sorted((PACKAGE.parent / folder).rglob("*.py"))
    nodes = [(path, node) for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    imported = {name.name: path for path, node in nodes if isinstance(node, ast.Import) for name in node.names}
    imported |= {
        node.module: path for path, node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    ours = {path.stem for part in ("scripts", "tools", "benchmarks") for path in (PACKAGE.parent / part).glob("*.py")}
    ours |= {
        path.parent.name for part in ("studies", "tests") for path in (PACKAGE.parent / part).glob("*/__init__.py")
    }
    ours |= {path.stem for path in (PACKAGE.parent / "tests").rglob("*.py")}
    trainers = (PACKAGE.parent / "tests" / "trainers" / "requirements.in").read_text("utf-8")
    ours |= set(re.findall(r"^[\w-]+", trainers, re.MULTILINE))
    ours |= {"mt_scaffold", "studies", "fairseq_cli"}  # fairseq's second package
    known = sys.stdlib_module_names | ours | COMPILED | set.union(*declared().values())
    missing = {name: path.name for name, path in imported.items() if name.split(".")[0] not in known}
    assert not missing, f"imported, but not declared in any extra of setup.cfg: {missing}"


def test_the_version_is_the_same_everywhere() -> None:
    """A citation of the software names the release that was used."""
    from mt_scaffold import __version__

    citation = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]


def test_no_folder_outgrows_its_ceiling() -> None:
    """What is added to a folder takes the place of something else."""
    listed = subprocess.run(
        ["git", "ls-files", *{name.partition("/")[0] for name in CEILINGS}],
        cwd=PACKAGE.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a clone")
    sizes: Counter[str] = Counter()
    for path in map(Path, listed.stdout.splitlines()):
        if path.parts[0] == "tests" and path.suffix != ".py":
            continue
        depth = 1 if path.parts[0] != "mt_scaffold" else 3 if path.parts[1] == "experiment" else 2
        place = "/".join(path.parts[: min(depth, len(path.parts) - 1)])
        if (file := PACKAGE.parent / path).is_file():
            sizes[place] += file.read_bytes().count(b"\n")
    assert {place: size for place, size in sizes.items() if size > CEILINGS.get(place, 0)} == {}
