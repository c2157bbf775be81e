# Every target works alone on a fresh clone: it makes the environment it needs, once, and again when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread for each test worker: two workers with all cores each would only wait for one another.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo check test lint docs bench compare rivals browser clean

demo: .venv/.installed
	$(BIN)/kdmaps demo

# Before every commit, in less than a minute; `make test` runs the tests marked slow too.
check: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 -m "not slow"

test: lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

lint: .venv/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Warnings are errors. Scripts of the gallery run again only if they have changed.
docs: .venv/.installed-docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: .venv/.installed
	set -e; for file in $(wildcard benchmarks/bench_*.py); do $(BIN)/python -m benchmarks.$$(basename $$file .py); done

compare: .venv-compare/.installed
	set -e; for file in $(wildcard compare/*.py); do .venv-compare/bin/python $$file; done

# What is measured already is kept under results/rivals and not measured again.
rivals: .venv-rivals/.installed
	.venv-rivals/bin/python -m benchmarks.rivals

# For the test of the report in a browser. Elsewhere than on Debian or Ubuntu, install Chromium and set KDMAPS_BROWSER.
browser:
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

clean:
	rm -rf .venv .venv-compare .venv-rivals .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build demo docs/_build docs/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv-compare/bin/python:
	$(PYTHON) -m venv .venv-compare

.venv-rivals/bin/python:
	$(PYTHON) -m venv .venv-rivals

# Order-only: bin/python is a link whose date is that of the interpreter it points to.
.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e ".[all]"
	touch $@

.venv/.installed-test: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@ .venv/.installed

.venv/.installed-docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@ .venv/.installed

.venv-compare/.installed: pyproject.toml | .venv-compare/bin/python
	.venv-compare/bin/python -m pip install --quiet -e ".[compare]"
	touch $@

.venv-rivals/.installed: pyproject.toml | .venv-rivals/bin/python
	.venv-rivals/bin/python -m pip install --quiet -e ".[rivals]"
	touch $@
