# Every target works alone on a fresh clone: it makes the environment it needs, once, and again when pyproject.toml changes.
PYTHON ?= python3
# Folder of the programs of an environment.
ifeq ($(OS),Windows_NT)
PROGRAMS := Scripts
else
PROGRAMS := bin
endif
BIN := .venv/$(PROGRAMS)
# Keep bytecode: without it, every process that a test starts compiles kdmaps again.
unexport PYTHONDONTWRITEBYTECODE
# One BLAS thread for each test worker: two workers with all cores each would wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Processes of `make reproduce`.
JOBS ?= 2
# Environments of other libraries that kdmaps is compared with.
RIVALS := rivals neural mlcolvar spectralnet

.PHONY: setup demo check test cells lint docs bench bench-quick reproduce compare rivals lowest dist sbom release-check browser clean

# The minimum for `make check` and `make demo`: no JAX, Dask, OpenMM, mdtraj, … .
setup: .venv/.installed-check

# An existing installation, editable or not, is left unchanged.
demo:
	@test -x $(BIN)/kdmaps || $(MAKE) .venv/.installed-check
	$(BIN)/kdmaps demo --force

# Before every commit, in minutes: tests that are not marked slow; those that need a missing package are skipped.
check: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 -m "not slow"

# All tests, with all optional packages: a missing one is a failure.
test: .venv/.installed-test lint
	KDMAPS_ALL_PACKAGES=1 $(ONE_THREAD) $(BIN)/python -m pytest -n 2

# Tests of kdmaps.scanpy, with anndata, which needs an older pandas than the other tests.
cells: .venv-cells/.installed
	$(ONE_THREAD) .venv-cells/$(PROGRAMS)/python -m pytest -q -p no:cacheprovider tests/test_scanpy.py

lint: .venv/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Warnings are errors. Scripts of the gallery run again only if they have changed.
docs: .venv/.installed-docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: .venv/.installed
	set -e; for file in $(wildcard benchmarks/bench_*.py); do $(BIN)/python -m benchmarks.$$(basename $$file .py); done

# A minute, on an idle machine: costs as ratios to bare matrix products, with limits.
bench-quick: .venv/.installed
	$(BIN)/python -m benchmarks.quick

# The paper's tables and figures; stored measurements are kept, so a second call resumes the first.
# QUICK=1 takes one seed and fewer problems; NAMES="main_results ablation" takes these alone.
reproduce: OUT = $(if $(QUICK),build/paper,results/paper)
reproduce: .venv/.installed
	$(ONE_THREAD) $(BIN)/python -m experiments.paper $(NAMES) $(if $(QUICK),--quick) --out $(OUT) --jobs $(JOBS)

compare: .venv-compare/.installed
	set -e; for file in $(wildcard compare/*.py); do .venv-compare/$(PROGRAMS)/python $$file; done

# Finished measurements are kept under results/rivals and results/neural.
rivals: $(RIVALS:%=.venv-%/.installed)
	.venv-rivals/$(PROGRAMS)/python -m benchmarks.rivals
	.venv-rivals/$(PROGRAMS)/python -m benchmarks.neural
	.venv-mlcolvar/$(PROGRAMS)/python -m benchmarks.biased_frames

# The tests not marked slow, with the lowest version of every package that pyproject.toml names.
lowest: .venv-lowest/.installed
	KDMAPS_ALL_PACKAGES=1 $(ONE_THREAD) .venv-lowest/$(PROGRAMS)/python -m pytest -q -n 2 -m "not slow"

# Wheel and sdist; the same bytes for the same sources.
dist: .venv/.installed-release
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

# Packages installed by `pip install kdmaps`, as CycloneDX, from an environment with the wheel alone.
sbom: dist
	rm -rf .venv-sbom
	$(PYTHON) -m venv --without-pip .venv-sbom
	$(BIN)/python -m pip --python .venv-sbom/$(PROGRAMS)/python install --quiet dist/*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o dist/kdmaps.cdx.json .venv-sbom

# List missing placeholders, versions and dates before a tag is pushed.
release-check:
	@$(PYTHON) tests/release/ready.py $(TAG)

# For the test of the report in a browser. On other systems than Debian or Ubuntu, install Chromium, set KDMAPS_BROWSER.
browser:
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

clean:
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build demo docs/_build docs/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A version of pip with dependency groups.
%/.made:
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PROGRAMS)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/.installed: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet -e ".[all]"
	touch $@

.venv/.installed-check: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet -e ".[cli]" --group check
	touch $@

.venv/.installed-test: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet -e ".[all,openmm,mdanalysis,deeptime]" --group test
	touch $@ .venv/.installed .venv/.installed-check

.venv/.installed-docs: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet -e ".[all]" --group docs
	touch $@ .venv/.installed

.venv/.installed-release: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --group release
	touch $@

.venv-compare/.installed: pyproject.toml | .venv-compare/.made
	.venv-compare/$(PROGRAMS)/python -m pip install --quiet -e ".[cli]" --group compare
	touch $@

.venv-cells/.installed: pyproject.toml | .venv-cells/.made
	.venv-cells/$(PROGRAMS)/python -m pip install --quiet -e ".[scanpy]" --group cells
	touch $@

$(RIVALS:%=.venv-%/.installed): .venv-%/.installed: pyproject.toml | .venv-%/.made
	.venv-$*/$(PROGRAMS)/python -m pip install --quiet -e . --group $*
	touch $@

.venv-lowest/.installed: pyproject.toml | .venv-lowest/.made
	.venv-lowest/$(PROGRAMS)/python -m pip install --quiet uv
	.venv-lowest/$(PROGRAMS)/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e ".[all,openmm,mdanalysis,deeptime]" --group test
	touch $@
