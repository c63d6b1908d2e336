# make venv          .venv with everything, fairseq included (the commands below create it themselves)
# make demo          a first experiment, from scratch to the comparison table; installs only what it needs
# make demo-full     the same with two more systems, which train with dropout
# make test          the tests, within 6 minutes on two idle cores
# make test-long     rehearsals of whole recipes, kills and long trials, minutes each
# make test-portable the tests of floating-point results again, with the arithmetic of a plain processor
# make test-integrations   other trainers (eole, JoeyNMT, Marian), CTranslate2 and datatrove with mt_scaffold, in
#                    .venv-integrations, transformers' tests of tokenizers with ours, import and export with versions
#                    0.23 and 1 of tokenizers, and exported files in transformers.js
# make test-slurm    the workflow on a SLURM of two nodes, started for the test (as root, with slurm-wlm and munge
#                    installed; ONLY="limit node" for some of its scenarios)
# make docs          the site, into build/site, with every link checked
# make lint          style and types, including tests, scripts, tools and benchmarks
# make bench         speed and memory compared with other BPE implementations (CORPUS=text REPEAT=5 ONLY="learn apply";
#                    OLD=REVISION adds that revision; ONLY=encode for encoding into ids; see docs/benchmarks.md)
# make sanitize      the segmentation tests with a core that checks memory, undefined behaviour and data races
# make soak          random cases, SOAK=20 times as many as `make test` tries (see CONTRIBUTING.md)
# make constraints   constraints.txt for the requirements of setup.cfg (UPGRADE="NAME ..." updates these packages)
# make audit         known vulnerabilities in the packages of constraints.txt
# make clean         remove build products (experiments and downloads stay)

PYTHON ?= python3
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet install
# constraints.txt pins the versions of every installation, with the hashes that pip requires.
PINNED := $(PIP) --require-hashes -c constraints.txt
CORES ?= $(shell nproc)
comma := ,
CORE_SOURCES := $(wildcard mt_scaffold/core/*.hpp mt_scaffold/core/*/*.cpp mt_scaffold/core/*/*.hpp)

.DEFAULT_GOAL := venv
.PHONY: venv demo demo-full test test-long test-portable test-integrations test-slurm bench docs lint constraints audit clean sanitize soak
.DELETE_ON_ERROR:

# The interpreter, and the tools that compile the core and fairseq.
.venv/tools: constraints.txt
	@$(PYTHON) tools/check_machine.py
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@date +%s > .venv/started
	# Older versions of pip do not support hashes in constraints.
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt > .venv/pip.txt
	$(PIP) --require-hashes -r .venv/pip.txt
	$(PINNED) setuptools wheel numpy Cython nanobind
	@touch $@

# Once the tools are installed, the core compiles during the downloads.
.venv/core: .venv/tools setup.py $(CORE_SOURCES)
	.venv/bin/python setup.py --quiet build_ext --inplace --force
	@touch $@

# fairseq is built from source against the torch already installed, not against a second copy; without CUDA_HOME, which
# would have it compile CUDA files that its archive lacks; and without debugging symbols, which take a third of the time.
.venv/installed: .venv/tools
	# PyTorch for CPUs and for each CUDA have the same version but different hashes; pip's configuration decides.
	# Not --quiet: with CUDA it is by far the largest download, and pip shows its size and remaining time.
	$(subst --quiet,,$(PIP)) "$$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)"
	env -u CUDA_HOME CFLAGS="$${CFLAGS-$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("CFLAGS"))')} -g0" \
		$(PINNED) --no-build-isolation fairseq-fixed
	@touch $@

# Editable, so that the tests run on this source; rebuilt when the core or the metadata changes. A folder has no hash.
.venv/demo: constraints.txt setup.py setup.cfg pyproject.toml tools/requirements.py $(CORE_SOURCES)
	@test -f .venv/installed || echo "Making .venv for the demo (1.6 GB, some minutes). Downloads: PyTorch, 190 MB \
	(with CUDA several GB), and about 170 MB of other packages."
	@$(MAKE) --no-print-directory -j 2 .venv/core .venv/installed
	.venv/bin/python tools/requirements.py fairseq workflow > .venv/requirements-demo.txt
	$(PINNED) -r .venv/requirements-demo.txt
	$(WITHOUT_AUDIO)
	$(PIP) --no-deps --no-build-isolation --editable .
	$(SAY_SIZE)
	@touch $@

# fairseq requires torchaudio for its speech tasks; PyPI's is for CUDA, and with a PyTorch for CPUs transformers, which
# imports it with every model, fails.
WITHOUT_AUDIO = @.venv/bin/python -c "import torchaudio" 2> /dev/null || \
	.venv/bin/python -m pip --disable-pip-version-check --quiet uninstall --yes torchaudio 2> /dev/null

SAY_SIZE = @if test -f .venv/started; then \
	echo ".venv: $$(du -sh .venv | cut -f 1) in $$(( ($$(date +%s) - $$(cat .venv/started) + 59) / 60 )) min"; \
	rm .venv/started; fi

# The requirements of tests, pages, linters and the other integrations.
.venv/built: .venv/demo
	@test -f .venv/everything || { date +%s > .venv/started; \
		echo "Adding the packages of every extra and of the tests (1.1 GB; downloads: about 300 MB)."; }
	.venv/bin/python tools/requirements.py fairseq workflow analysis documents harness transformers unigram debian docs completion dev > .venv/requirements.txt
	$(PINNED) -r .venv/requirements.txt
	$(WITHOUT_AUDIO)
	$(SAY_SIZE)
	@touch .venv/everything $@

venv: .venv/built

demo demo-full: .venv/demo
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python scripts/demo.py --cores $(CORES) $(if $(filter demo-full,$@),--full)

test: .venv/built
	.venv/bin/python -m pytest -n $(CORES) --dist loadfile --no-loadscope-reorder -m "not long"

test-long: .venv/built
	.venv/bin/python -m pytest -n $(CORES) --dist loadfile -m long

# No test may depend on the processor, by which PyTorch chooses its kernels.
PORTABLE := ATEN_CPU_CAPABILITY=default
test-portable: .venv/built
	$(PORTABLE) .venv/bin/python -m pytest -n $(CORES) --dist loadfile tests/experiment/inference \
		tests/experiment/evaluation/test_harness.py tests/experiment/evaluation/test_language_modelling.py \
		tests/experiment/report/test_embeddings.py

# It uses the packages of .venv as well, so that torch is installed once.
.venv-integrations/installed: tests/trainers/requirements.txt | .venv/built
	.venv/bin/python -m venv .venv-integrations
	.venv/bin/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
		> "$$(.venv-integrations/bin/python -c 'import site; print(site.getsitepackages()[0])')/venv.pth"
	.venv-integrations/bin/python -m pip --disable-pip-version-check --quiet install \
		--require-hashes --no-deps -r $<
	@touch $@

# The next version of tokenizers, which does not replace the installed one, and transformers.js if there is npm. The
# scripts of its dependencies would download programs that tokenizers do not need.
.venv-integrations/tokenizers-1/installed: tests/trainers/tokenizers-1.txt | .venv-integrations/installed
	.venv-integrations/bin/python -m pip --disable-pip-version-check --quiet install --upgrade --target $(@D) \
		--require-hashes --no-deps -r $<
	mkdir -p .venv-integrations/javascript
	npm --prefix .venv-integrations/javascript --silent --ignore-scripts install @huggingface/transformers@4.3.2 \
		|| rm -r .venv-integrations/javascript
	@touch $@

# The tests that transformers shares among its tokenizers are only in its source archive, whose hash is in
# constraints.txt. RUN_SLOW runs all of them.
TOKENIZER_TESTS := test_tokenization_common test_tokenizers_backend_mixin test_sentencepiece_backend_mixin
.venv-integrations/transformers-tests/unpacked: constraints.txt | .venv-integrations/installed
	rm -rf $(@D)
	mkdir -p $(@D)/transformers_tests
	.venv/bin/python -m pip --disable-pip-version-check --quiet download --no-deps --no-build-isolation \
		--no-binary transformers --require-hashes -c constraints.txt --dest $(@D) transformers
	archive=$$(basename $(@D)/transformers-*.tar.gz .tar.gz) && tar --extract --gzip --file "$(@D)/$$archive.tar.gz" \
		--directory $(@D)/transformers_tests --strip-components 2 $(TOKENIZER_TESTS:%="$$archive/tests/%.py")
	rm $(@D)/*.tar.gz
	@touch $@

# Importing and exporting vocabularies, with both versions of tokenizers.
VOCABULARY_TESTS := $(addprefix tests/integrations/test_,importing.py export_tokenizers.py random_vocabularies.py)
test-integrations: .venv-integrations/tokenizers-1/installed .venv-integrations/transformers-tests/unpacked .venv/built
	RUN_SLOW=1 PATH="$(CURDIR)/.venv-integrations/bin:$(CURDIR)/.venv/bin:$$PATH" .venv-integrations/bin/python -m pytest \
		-n $(CORES) --dist loadfile tests/trainers $(VOCABULARY_TESTS)
	PYTHONPATH="$(CURDIR)/.venv-integrations/tokenizers-1:$$PYTHONPATH" .venv-integrations/bin/python -m pytest -rs \
		-n $(CORES) --dist loadfile $(VOCABULARY_TESTS)

test-slurm: .venv/built
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python tools/test_slurm.py $(ONLY)

# Not --quiet, which would also keep warnings from counting as errors.
docs: .venv/built
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/mkdocs build --strict

lint: .venv/built
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	@mkdir -p build
	.venv/bin/python tools/requirements.py --without dev docs debian > build/requirements.txt
	.venv/bin/python tools/requirements.py dev docs debian > build/requirements-dev.txt
	.venv/bin/deptry mt_scaffold
	$(if $(CORE_SOURCES),.venv/bin/clang-format --dry-run -Werror $(CORE_SOURCES))

# The peers are installed in a separate environment; a separate program measures encoding.
BENCH = benchmarks/out/venv/bin/python benchmarks/run.py $(if $(CORPUS),--corpus '$(CORPUS)') --repeat $(or $(REPEAT),5) $(if $(OLD),--old)
bench:
	$(PYTHON) benchmarks/install.py $(if $(OLD),--old $(OLD))
	$(if $(ONLY),$(if $(filter-out encode,$(ONLY)),$(BENCH) --only $(filter-out encode,$(ONLY))),$(BENCH))
	$(if $(filter encode,$(ONLY)),benchmarks/out/venv/bin/python benchmarks/encoding.py)
	$(if $(ONLY),,benchmarks/out/venv/bin/python benchmarks/report.py --write)

# Preload the sanitizers with libstdc++, so that they see the exceptions it throws.
PRELOAD = LD_PRELOAD="$$(g++ -print-file-name=lib$(1).so) $$(g++ -print-file-name=libstdc++.so)" PYTHONSAFEPATH=1 \
	PYTHONPATH='$(CURDIR)/build/sanitize/$(1)/lib' MT_SCAFFOLD_TESTED='$(CURDIR)/build/sanitize/$(1)/lib' ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
# On the path before the source folder, from which pytest would import otherwise.
SANITIZED_PATH = -p no:cacheprovider -o 'pythonpath=build/sanitize/$(1)/lib . tests tests/core'
SANITIZED_BUILD = MT_SCAFFOLD_SANITIZE=$(2) .venv/bin/python setup.py --quiet build \
	--build-base build/sanitize/$(1) --build-lib build/sanitize/$(1)/lib

# AddressSanitizer needs more memory than the tests of memory allow.
sanitize: .venv/built
	$(call SANITIZED_BUILD,asan,address$(comma)undefined)
	$(call PRELOAD,asan) .venv/bin/python -m pytest $(call SANITIZED_PATH,asan) tests/core/test_vectors.py tests/core/test_limits.py tests/test_differential.py tests/test_broken_files.py \
		tests/core/test_dropout.py tests/test_api.py tests/corpus/test_pretokenise.py tests/core/test_byte_symbols.py tests/segment/test_ids.py \
		tests/segment/test_encode.py tests/corpus/test_count_words.py tests/methods/test_picky.py \
		-k 'not (leaves_no_memory or 32_bits or stays_within_the_limit or stay_within_the_memory)'
	$(call SANITIZED_BUILD,tsan,thread)
	$(call PRELOAD,tsan) setarch -R .venv/bin/python -m pytest $(call SANITIZED_PATH,tsan) tests/core/test_dropout.py \
		tests/core/test_limits.py -k "workers or table or blocks"
	$(call PRELOAD,tsan) setarch -R .venv/bin/python tests/core/in_threads.py 60

# The tests whose cases hypothesis draws.
RANDOM_CASES = tests/test_differential.py tests/test_broken_files.py tests/integrations/test_random_vocabularies.py
soak: .venv/built
	HYPOTHESIS_PROFILE=soak SOAK=$(or $(SOAK),20) .venv/bin/python -m pytest -n auto $(RANDOM_CASES)

# For every extra and the packages that `make` itself installs, on all Pythons and platforms at once.
constraints: .venv/built
	(.venv/bin/python tools/requirements.py; printf '%s\n' pip setuptools wheel Cython nanobind) | .venv/bin/uv --quiet pip compile - \
		--universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make constraints' \
		$(UPGRADE:%=--upgrade-package %) --output-file constraints.txt
	.venv/bin/uv --quiet pip compile tests/trainers/requirements.in --no-deps --universal --python-version 3.11 \
		--constraints constraints.txt --generate-hashes --no-annotate --custom-compile-command 'make constraints' \
		--output-file tests/trainers/requirements.txt
	echo "tokenizers == 1.0.0rc3" | .venv/bin/uv --quiet pip compile - --no-deps --universal --python-version 3.11 \
		--generate-hashes --no-annotate --custom-compile-command 'make constraints' \
		--output-file tests/trainers/tokenizers-1.txt

audit: .venv/built
	.venv/bin/uv tool run pip-audit==2.10.1 --strict --disable-pip --require-hashes --requirement constraints.txt

clean:
	rm -rf .venv .venv-integrations build *.egg-info mt_scaffold/*.so mt_scaffold/_core.pyi .pytest_cache .mypy_cache .ruff_cache .hypothesis .snakemake
	find mt_scaffold scripts tools tests -name __pycache__ -type d -exec rm -rf {} +
