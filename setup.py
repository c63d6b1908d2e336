"""Builds the native core, ``mt_scaffold._core``; setup.cfg has all other settings of the package.

MT_SCAFFOLD_SANITIZE=address,undefined (or thread) in the environment builds the core with those sanitizers;
MT_SCAFFOLD_WERROR=1 turns the compiler's warnings into errors, which CI does and a user's build must not.
"""

import os
from glob import glob
from pathlib import Path
from typing import Any

import nanobind
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NANOBIND = Path(nanobind.include_dir()).parent
# As system headers, whose warnings are not ours.
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


class BuildCore(build_ext):
    """Compiles nanobind's own source, which casts between Python's structures, without strict aliasing."""

    def build_extension(self, extension: Any) -> None:
        compile_one = self.compiler._compile

        def compile_with_flags(obj: str, source: str, ext: str, cc: Any, flags: list[str], defines: Any) -> None:
            own = ["-fno-strict-aliasing"] if Path(source).name == "nanobind_runtime.cpp" else []
            compile_one(obj, source, ext, cc, [*flags, *own], defines)

        self.compiler._compile = compile_with_flags
        super().build_extension(extension)


setup(ext_modules=[core] if core.sources else [], cmdclass={"build_ext": BuildCore})
