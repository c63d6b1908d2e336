"""The walls of the package: segmentation never imports experiment, no step a later one, every import is declared."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

grimp = pytest.importorskip("grimp", reason="comes with the extra 'dev'")

PACKAGE = Path(__file__).parent.parent / "mt_scaffold"
SETUP = PACKAGE.parent / "setup.cfg"
EXPERIMENT = "mt_scaffold.experiment"
GRAPH = grimp.build_graph("mt_scaffold", include_external_packages=True, cache_dir=None)
# Includes imports within functions and under TYPE_CHECKING.
OWN = sorted(module for module in GRAPH.modules if module.split(".")[0] == "mt_scaffold")

# The modules of experiment, in layers: each imports only from its own line and those above it.
ORDER = (
    ("schema", "limits", "child_processes"),
    ("configuration", "locks", "synthetic", "training_log"),
    ("results", "provenance"),
    ("experiment_folder",),
    ("layout", "paper"),
    ("download", "archives", "markup", "overlap"),
    ("data", "get_documents"),
    ("moses",),
    ("tokenise",),
    ("clean",),
    ("data_report",),
    ("training_options", "averaging_check"),
    ("fairseq_tools", "checkpoints"),
    ("unigram", "segmenters"),
    ("unigram_lattice",),
    ("unigram_segmenter",),
    ("unigram_statistics",),
    ("segmentation", "dictionary"),
    ("model_files",),
    ("mmap_dataset",),
    ("binarise", "binarise_words"),
    ("shared_draws",),
    ("lengths",),
    ("language_modelling",),
    ("language_modelling.vocabulary", "language_modelling.ids_file", "language_modelling.data_folder"),
    ("language_modelling.binarise", "language_modelling.epoch_ids"),
    ("averaging_check", "training_options"),
    ("resuming", "stop_request"),
    ("train",),
    ("average", "thin"),
    ("export_ctranslate2",),
    ("ctranslate2_engine",),
    ("translate",),
    ("fairseq_plugin",),
    ("metrics", "comet_scores"),
    ("score",),
    ("packed_folder",),
    ("packed_weights", "packed_workers"),
    ("packed_search",),
    ("packed_model",),
    ("model_card",),
    ("pack", "translate_text"),
    ("language_modelling.model",),
    ("language_modelling.evaluate", "language_modelling.sample", "language_modelling.scoring_model"),
    ("language_modelling.harness_model",),
    ("language_modelling.harness",),
    ("significance",),
    ("comparison",),
    ("comparison_tables",),
    ("compare",),
    ("language_modelling.document_tests",),
    ("language_modelling.model_comparison",),
    ("language_modelling.compare_models",),
    ("embeddings",),
    ("figures",),
    ("intrinsic_study",),
    ("statistics",),
    ("html_report",),
    ("making_codes",),
    ("workflow",),
    ("language_model_workflow",),
    ("commands",),
)
PACKAGES_OF_STEPS = {"language_modelling"}
PLACE = {name: place for place, line in enumerate(ORDER) for name in line}

# What modules of segmentation import within functions: text comes in many wrappings.
OPTIONAL = {
    "commands.completion": {"shtab"},
    "ids": {"numpy"},
    "integrations.tokenizers": {"tokenizers"},
    "integrations.transformers": {"transformers"},
    "parquet": {"pyarrow"},
    "pretokenise": {"regex"},
    "reference": {"regex"},
    "zstd": {"zstandard"},
}
# Which modules of experiment an extra of setup.cfg serves; "workflow" serves all that "fairseq", "comet",
# "ctranslate2", "harness" and "unigram" do not.
EXTRAS = {
    "fairseq": {
        "average",
        "binarise_words",
        "checkpoints",
        "fairseq_plugin",
        "fairseq_tools",
        "language_modelling.binarise",
        "language_modelling.data_folder",
        "language_modelling.epoch_ids",
        "language_modelling.ids_file",
        "language_modelling.model",
        "language_modelling.sample",
        "language_modelling.scoring_model",
        "language_modelling.vocabulary",
        "lengths",
        "mmap_dataset",
        "packed_model",
        "packed_search",
        "packed_weights",
        "packed_workers",
        "shared_draws",
        "thin",
    },
    "analysis": {
        *(
            "configuration",
            "comparison",
            "embeddings",
            "figures",
            "html_report",
            "language_modelling.compare_models",
            "language_modelling.document_tests",
            "language_modelling.evaluate",
            "language_modelling.model_comparison",
            "metrics",
            "provenance",
            "schema",
            "score",
            "significance",
        ),
        "statistics",
    },
    "comet": {"comet_scores"},
    "ctranslate2": {"ctranslate2_engine", "export_ctranslate2"},
    "harness": {"language_modelling.harness", "language_modelling.harness_model"},
    "unigram": {"unigram", "unigram_segmenter"},
}
EXTRAS["workflow"] = PLACE.keys() - EXTRAS["fairseq"] - EXTRAS["comet"] - EXTRAS["ctranslate2"] - EXTRAS["harness"]
EXTRAS["workflow"] -= EXTRAS["unigram"]
# Declared because they are run, or imported by scripts/, not by the package.
RUN = {"snakemake", "snakemake_executor_plugin_slurm", "snakemake_interface_logger_plugins"}
# What a distribution is imported as, where the name differs.
IMPORT_NAMES = {
    "griffelib": "griffe",
    "markdown-it-py": "markdown_it",
    "fairseq-fixed": "fairseq",
    "unbabel-comet": "comet",
    "Jinja2": "jinja2",
    "MarkupSafe": "markupsafe",
    "PyYAML": "yaml",
}


def imports(importer: str, imported: str) -> str:
    """An import with file and line."""
    found = GRAPH.get_import_details(importer=importer, imported=imported)
    return "; ".join(f"{importer}, line {each['line_number']}: {each['line_contents']}" for each in found)


def within_experiment(module: str) -> str | None:
    """The part of experiment that a module belongs to: ``fairseq_plugin`` for ``…experiment.fairseq_plugin.task``.

    The modules of a package of steps are parts of their own.
    """
    if not module.startswith(EXPERIMENT + "."):
        return None
    parts = module.removeprefix(EXPERIMENT + ".").split(".")
    return ".".join(parts[: 2 if parts[0] in PACKAGES_OF_STEPS else 1])


def third_party(module: str) -> set[str]:
    """The packages that a module imports besides Python's own and this one."""
    names = {imported.split(".")[0] for imported in GRAPH.find_modules_directly_imported_by(module)}
    return names - sys.stdlib_module_names - {"mt_scaffold", "compression"}  # the last is Python's own from 3.14


def test_segmentation_does_not_import_experiment() -> None:
    """Not indirectly either: any chain of imports from one to the other contains an import that crosses over."""
    crossing = [
        imports(importer, imported)
        for imported in OWN
        if imported == EXPERIMENT or within_experiment(imported)
        for importer in sorted(GRAPH.find_modules_that_directly_import(imported))
        if importer != EXPERIMENT and not within_experiment(importer)
    ]
    assert not crossing, "segmentation must not import experiment:\n" + "\n".join(crossing)


def test_no_step_imports_a_later_one() -> None:
    """Data flows one way, so that a step can be read, run and replaced without those after it."""
    backwards = [
        imports(importer, imported)
        for importer in OWN
        for imported in sorted(GRAPH.find_modules_directly_imported_by(importer))
        if (step := within_experiment(importer)) in PLACE
        and (other := within_experiment(imported)) in PLACE
        and PLACE[step] < PLACE[other]
    ]
    assert not backwards, "a step must not import a later one:\n" + "\n".join(backwards)


def test_every_module_of_experiment_has_its_place() -> None:
    """A new module must be given a place in ORDER, or the test above would not see it."""
    assert {part for module in OWN if (part := within_experiment(module))} == PLACE.keys()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and codes to run the commands on."""
    from mt_scaffold import learn_bpe
    from mt_scaffold.encode import encode_documents

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
        "stats --codes bpe scaffold --input text --containing low",
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
    # Each of these takes longer to import than the core takes for a thousand sentences.
    # What learns is a dataclass (mt_scaffold.methods), and takes longer than that anyway.
    if command.split(" ")[0] in ("", "apply-bpe", "get-vocab"):
        assert {"dataclasses", "inspect", "pathlib"} & set(loaded) == set()


def declared() -> dict[str, set[str]]:
    """The import names of what setup.cfg declares, by extra; "" is what ``pip install .`` brings."""
    setup = configparser.ConfigParser()
    setup.read(SETUP, encoding="utf-8")
    lists = {"": setup["options"]["install_requires"], **setup["options.extras_require"]}
    names = {extra: re.findall(r"^[\w.-]+", requirements, re.MULTILINE) for extra, requirements in lists.items()}
    return {extra: {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names[extra]} for extra in names}


def test_segmentation_needs_nothing() -> None:
    """No third-party package is declared or imported, not even within a function, but by what offers it as an extra."""
    assert declared()[""] == set()
    imported = {module: third_party(module) for module in OWN if not within_experiment(module)}
    optional = {f"mt_scaffold.{module}": packages for module, packages in OPTIONAL.items()}
    assert {module: packages for module, packages in imported.items() if packages} == optional
    offered = set.union(*OPTIONAL.values())
    assert declared()["documents"] <= offered <= set.union(*declared().values())


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_declares_what_its_modules_import(extra: str) -> None:
    """Nothing unused, and nothing that is installed only because another package happens to need it."""
    served = [module for module in OWN if within_experiment(module) in EXTRAS[extra]]
    imported = {package: module for module in served for package in third_party(module)}
    missing = {package: module for package, module in imported.items() if package not in declared()[extra]}
    assert not missing, f"imported, but not declared in the extra {extra!r} of setup.cfg: {missing}"
    unused = declared()[extra] - imported.keys() - RUN
    assert not unused, f"declared in the extra {extra!r} of setup.cfg, but not imported: {unused}"


@pytest.mark.parametrize("folder", ["scripts", "tests"])
def test_what_tests_and_scripts_import_is_declared(folder: str) -> None:
    """``make`` installs the extras and nothing else, so an undeclared import would fail in a fresh clone."""
    files = sorted((PACKAGE.parent / folder).rglob("*.py"))
    nodes = [(path, node) for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    imported = {name.name: path for path, node in nodes if isinstance(node, ast.Import) for name in node.names}
    imported |= {
        node.module: path for path, node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    beside = {path.stem for part in ("scripts", "tests") for path in (PACKAGE.parent / part).glob("*.py")}
    beside |= {path.parent.name for path in (PACKAGE.parent / "scripts").glob("*/__init__.py")}
    beside |= {path.stem for path in (PACKAGE.parent / "tests").glob("*/*.py")}
    trainers = (PACKAGE.parent / "tests" / "integrations" / "requirements.in").read_text("utf-8")
    beside |= set(re.findall(r"^[\w-]+", trainers, re.MULTILINE))
    beside |= {"mt_scaffold", "fairseq_cli"}  # fairseq's second package
    known = sys.stdlib_module_names | beside | set.union(*declared().values())
    missing = {name: path.name for name, path in imported.items() if name.split(".")[0] not in known}
    assert not missing, f"imported, but not declared in any extra of setup.cfg: {missing}"


def test_the_version_is_the_same_everywhere() -> None:
    """Whoever cites the software names the release that was used."""
    from mt_scaffold import __version__

    citation = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]


def test_the_snakefile_is_rules_and_nothing_else() -> None:
    """Its logic belongs in Python that is typed and tested: the file stays short, its functions within ten lines."""
    text = (PACKAGE.parent / "scripts" / "Snakefile").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 330
    for function in re.findall(r"^def .*?(?=^\S)", text, re.MULTILINE | re.DOTALL):
        assert len(function.strip().splitlines()) <= 10, function


def test_no_module_of_the_package_is_long() -> None:
    """A module of more than 350 lines does more than one thing."""
    modules = [path for ending in ("py", "cpp", "hpp") for path in PACKAGE.rglob(f"*.{ending}")]
    assert len(modules) > 60
    long = {path.name: count for path in modules if (count := len(path.read_text("utf-8").splitlines())) > 350}
    assert long == {}
