"""Report missing requirements before the set-up starts: Python 3.11, venv, the Python headers, a C++ compiler."""

import importlib.util
import os
import shutil
import sys
import sysconfig

lacking = []
if sys.version_info < (3, 11):  # noqa: UP036 - this must run on an older Python to report it
    lacking.append(f"Python 3.11 or newer (this is {sys.version.split()[0]}; use `make PYTHON=python3.11`)")
if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
    lacking.append("Python's venv module (Debian: apt-get install python3-venv)")
if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
    lacking.append("Python's C headers (Debian: apt-get install python3-dev)")
if shutil.which(os.environ.get("CXX", "g++").split()[0]) is None:
    lacking.append("a C++ compiler (Debian: apt-get install g++)")
if lacking:
    sys.exit("Requirements of the set-up are missing; install them and run make again:\n  " + "\n  ".join(lacking))
