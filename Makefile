# Two commands for everyone: `make run` and `make test`. Both create .venv and install what
# constraints.txt pins, once; they install again when constraints.txt or pyproject.toml changes.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

BIN := .venv/bin
INSTALLED := .venv/.installed
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test check fast format format-check lint types imports tests soak

help:
	@echo 'make run      the main comparison (options: make run ARGS="...")'
	@echo 'make test     the environment and everything that CI runs'
	@echo 'make fast     the fast tests only'
	@echo 'make soak     a fleet that is killed and cut off for minutes, with real deadlines'
	@echo 'make format   format and repair what ruff can repair'
	@echo 'make check    format-check, lint, types, imports, tests: each is a target, too'

run: $(INSTALLED)
	$(BIN)/dynavg reproduce E5 --scale quick $(ARGS)

test: check

check: format-check lint types imports tests

format: $(INSTALLED)
	$(BIN)/python -m ruff check --fix-only .
	$(BIN)/python -m ruff format .

format-check: $(INSTALLED)
	$(BIN)/python -m ruff format --check .

lint: $(INSTALLED)
	$(BIN)/python -m ruff check .

types: $(INSTALLED)
	$(BIN)/python -m mypy

imports: $(INSTALLED)
	$(BIN)/lint-imports

# One thread per worker keeps the workers from fighting over the cores. The profile `ci` of
# hypothesis draws the same examples every time, so a failure here is a failure there;
# `make fast` draws new ones.
tests: $(INSTALLED)
	OMP_NUM_THREADS=1 $(PYTEST) -m "not soak" --hypothesis-profile=ci --cov --cov-report=
	$(BIN)/python -m coverage report
	$(BIN)/python -m coverage report --fail-under=100 \
		--include='src/dynavg/protocol/*,src/dynavg/operators/*'

# Each test prints what it did and with which seed; -rA shows that, and then a line per test.
soak: $(INSTALLED)
	OMP_NUM_THREADS=1 $(PYTEST) tests/fleet -m soak -v -rA --durations=0 $(ARGS)

fast: $(INSTALLED)
	OMP_NUM_THREADS=1 $(PYTEST)

# An environment that works is kept, whichever Python made it. hatchling, which builds the package,
# is installed first: pip's isolated builds would take it unpinned.
$(INSTALLED): pyproject.toml constraints.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
			echo "dynavg needs Python 3.11 or newer, and '$(PYTHON)' is `$(PYTHON) --version 2>&1`." \
				"Name another one: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }; \
		echo "Creating .venv"; $(PYTHON) -m venv .venv; }
	$(INSTALL) hatchling
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $@
