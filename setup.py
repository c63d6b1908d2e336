"""Builds the native core, ``mt_scaffold._core``; setup.cfg has all other settings of the package.

MT_SCAFFOLD_SANITIZE=address,undefined (or thread) in the environment builds the core with those sanitizers;
MT_SCAFFOLD_WERROR=1 turns the compiler's warnings into errors, which CI does and a user's build must not.
"""

import os
from glob import glob

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup

core = Pybind11Extension(
    "mt_scaffold._core",
    sources=sorted(glob("mt_scaffold/core/*.cpp")),
    depends=sorted(glob("mt_scaffold/core/*.hpp")),
    include_dirs=["mt_scaffold/core"],
    cxx_std=20,
    # No -march=native: a wheel must run on any machine of the same architecture.
    extra_compile_args=["-O3", "-Wall", "-Wextra", "-pthread"],
    extra_link_args=["-pthread"],
)
sanitizers = os.environ.get("MT_SCAFFOLD_SANITIZE")
if sanitizers:
    core.extra_compile_args += [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer", "-g", "-O1"]
    core.extra_link_args += [f"-fsanitize={sanitizers}"]

if os.environ.get("MT_SCAFFOLD_WERROR") == "1":
    core.extra_compile_args += ["-Werror"]

setup(ext_modules=[core] if core.sources else [], cmdclass={"build_ext": build_ext})
