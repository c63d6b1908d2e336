# make venv          .venv with everything, fairseq included (the commands below create it themselves)
# make demo          a first experiment, from nothing to the comparison table
# make test          all tests
# make test-slurm    the workflow on a SLURM of two nodes started for it (as root, with slurm-wlm and munge installed;
#                    ONLY="limit node" for some of its scenarios)
# make lint          style and types, of the tests, scripts and benchmarks too
# make bench         speed and memory beside other BPE implementations (CORPUS=text REPEAT=5 ONLY="learn apply"; with
#                    OLD=REVISION beside that revision, too; see docs/benchmarks.md)
# make sanitize      the segmentation tests with a core that checks memory, undefined behaviour and data races
# make soak          random trials of everything for an hour (SOAK=seconds; see docs/reliability.md)
# make compare-releases   compare an older release byte for byte (OLD=REVISION; DEMO=1 adds an experiment)
# make clean         remove what was built (experiments and downloads stay)

PYTHON ?= python3
# constraints.txt pins the versions of every installation.
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt
CORES ?= $(shell nproc)
comma := ,
CORE_SOURCES := $(wildcard mt_scaffold/core/*.cpp mt_scaffold/core/*.hpp)

# What plain `make` does.
.DEFAULT_GOAL := venv
.PHONY: venv demo test test-slurm bench compare-releases lint clean sanitize soak
.DELETE_ON_ERROR:

.venv/installed: constraints.txt
	@$(PYTHON) scripts/check_machine.py
	@echo "Creating .venv with everything that constraints.txt pins (takes some minutes)."
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) pip setuptools wheel
	# Build fairseq from source against the torch already installed, not against a second copy.
	$(PIP) torch numpy Cython pybind11
	$(PIP) --no-build-isolation fairseq-fixed
	@touch $@

# Editable, so that the tests run on this source; rebuilt when the core or the metadata changes.
.venv/built: .venv/installed setup.py setup.cfg pyproject.toml $(CORE_SOURCES)
	$(PIP) --no-build-isolation --editable '.[fairseq,workflow,analysis,documents,harness,dev]'
	@touch $@

venv: .venv/built

demo: .venv/built
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python scripts/demo.py --cores $(CORES)

test: .venv/built
	.venv/bin/python -m pytest -n $(CORES) --dist loadfile

test-slurm: .venv/built
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python scripts/test_slurm.py $(ONLY)

lint: .venv/built
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/stubtest --mypy-config-file pyproject.toml mt_scaffold._core
	$(if $(CORE_SOURCES),.venv/bin/clang-format --dry-run -Werror $(CORE_SOURCES))

# The benchmarks install the peers in a separate environment.
bench:
	$(PYTHON) benchmarks/install.py $(if $(OLD),--old $(OLD))
	benchmarks/out/venv/bin/python benchmarks/run.py $(if $(CORPUS),--corpus '$(CORPUS)') --repeat $(or $(REPEAT),5) $(if $(ONLY),--only $(ONLY)) $(if $(OLD),--old)
	$(if $(ONLY),,benchmarks/out/venv/bin/python benchmarks/report.py --write)

# Preload the sanitizers with libstdc++, so that they see the exceptions it throws.
PRELOAD = LD_PRELOAD="$$(g++ -print-file-name=lib$(1).so) $$(g++ -print-file-name=libstdc++.so)" PYTHONSAFEPATH=1 \
	PYTHONPATH='$(CURDIR)/build/sanitize/$(1)/lib' ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
SANITIZED_BUILD = MT_SCAFFOLD_SANITIZE=$(2) .venv/bin/python setup.py --quiet build \
	--build-base build/sanitize/$(1) --build-lib build/sanitize/$(1)/lib

sanitize: .venv/built
	$(call SANITIZED_BUILD,asan,address$(comma)undefined)
	$(call PRELOAD,asan) .venv/bin/python -m pytest -p no:cacheprovider tests/test_vectors.py tests/test_native_equals_twin.py \
		tests/test_dropout.py tests/test_api.py tests/test_pretokenise.py tests/test_byte_symbols.py tests/test_ids.py \
		tests/test_encode.py tests/test_count_words.py
	$(call SANITIZED_BUILD,tsan,thread)
	$(call PRELOAD,tsan) setarch -R .venv/bin/python -m pytest -p no:cacheprovider tests/test_dropout.py \
		tests/test_native_equals_twin.py -k "workers or table or blocks"

soak: .venv/built
	.venv/bin/python tests/soak --seconds $(or $(SOAK),3600)

compare-releases: .venv/built
	.venv/bin/python tests/compare_releases.py $(if $(OLD),--old $(OLD)) $(if $(DEMO),--demo)

clean:
	rm -rf .venv build *.egg-info mt_scaffold/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis .snakemake
	find mt_scaffold scripts tests -name __pycache__ -type d -exec rm -rf {} +
