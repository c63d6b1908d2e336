"""Build the native core, ``mt_scaffold._core``; setup.cfg has all other settings of the package.

MT_SCAFFOLD_SANITIZE=address,undefined (or thread) in the environment builds the core with those sanitizers;
MT_SCAFFOLD_WERROR=1 turns the compiler's warnings into errors, which suits CI but not a user's build. MAX_JOBS is the
number of files to compile at once.
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import nanobind
from nanobind.stubgen import StubGen
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

NANOBIND = Path(nanobind.include_dir()).parent
# As system headers, to silence their warnings.
HEADERS = [f"-isystem{NANOBIND / folder}" for folder in ("include", "src", "ext/robin_map/include")]

core = Extension(
    "mt_scaffold._core",
    sources=sorted(glob("mt_scaffold/core/*/*.cpp")),
    depends=sorted(glob("mt_scaffold/core/**/*.hpp", recursive=True)),
    include_dirs=["mt_scaffold/core"],
    language="c++",
    # Types are not shared with other extensions that use nanobind.
    define_macros=[("NDEBUG", None), ("NB_COMPACT_ASSERTIONS", None), ("NB_DOMAIN", "mt_scaffold")],
    # No -march=native: a wheel must run on any machine of the same architecture.
    extra_compile_args=["-std=c++20", "-O3", "-g0", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", *HEADERS],
    extra_link_args=["-pthread"],
)
sanitizers = os.environ.get("MT_SCAFFOLD_SANITIZE")
if sanitizers:
    core.extra_compile_args += [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g", "-O1"]
    core.extra_link_args += [f"-fsanitize={sanitizers}"]

if os.environ.get("MT_SCAFFOLD_WERROR") == "1":
    core.extra_compile_args += ["-Werror"]


def jobs() -> int:
    """Return the number of files to compile at once: MAX_JOBS, or else that of the cores this process may use."""
    given = os.environ.get("MAX_JOBS", "")
    if given.isdigit() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BuildCore(build_ext):
    """Compile the files in parallel, and nanobind's own without strict aliasing, which its casts violate.

    For type checkers, _core.pyi is written next to the core.
    """

    def run(self) -> None:
        super().run()
        if sanitizers:  # which must be preloaded
            return
        built = Path(self.get_ext_fullpath(core.name))
        stub_file = built.with_name("_core.pyi")
        stub_file.unlink(missing_ok=True)
        loader = ExtensionFileLoader(core.name, str(built))
        try:
            module = module_from_spec(spec_from_loader(core.name, loader))
        except ImportError as error:  # built for another machine
            print(f"{stub_file.name} is not written: {error}", file=sys.stderr)
            return
        loader.exec_module(module)
        stub = StubGen(module)
        stub.put(module)
        stub_file.write_text(stub.get(), encoding="utf-8")

    def build_extension(self, extension: Any) -> None:
        # An editable install reuses what `build_ext --inplace` has built: make compiles it during the downloads.
        built = Path(self.get_ext_filename(extension.name))
        if self.editable_mode and not newer_group([*extension.sources, *extension.depends, "setup.py"], str(built)):
            target = Path(self.get_ext_fullpath(extension.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(built, target)
            return
        compile_one = self.compiler._compile
        pending: list[tuple[Any, ...]] = []

        def note(obj: str, source: str, ext: str, cc: Any, flags: list[str], defines: Any) -> None:
            own = ["-fno-strict-aliasing"] if Path(source).name == "nanobind_runtime.cpp" else []
            pending.append((obj, source, ext, cc, [*flags, *own], defines))

        def link(*arguments: Any, **options: Any) -> None:
            # The largest first, so that no large file is compiled alone at the end.
            pending.sort(key=lambda one: -os.path.getsize(one[1]))
            with ThreadPoolExecutor(jobs()) as pool:
                list(pool.map(lambda one: compile_one(*one), pending))
            link_objects(*arguments, **options)

        link_objects = self.compiler.link_shared_object
        self.compiler._compile, self.compiler.link_shared_object = note, link
        super().build_extension(extension)


setup(ext_modules=[core] if core.sources else [], cmdclass={"build_ext": BuildCore})
