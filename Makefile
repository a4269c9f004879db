# `make demo` shows what becausal does, `make test` runs its tests. Both set up first.

PYTHON ?=
UV ?= uv
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/pytest

# An interpreter that was upgraded away leaves a dead link behind: set up again then.
$(shell test -x $(BIN)/python || rm -f $(READY))

.PHONY: help setup demo test test-faults check style types walls bench lock

help:
	@echo 'make setup        make $(VENV): everything below does this first, when needed'
	@echo 'make demo         show becausal at work on a small sample project'
	@echo 'make test         run the tests'
	@echo 'make test-faults  run the long fault-injection tests'
	@echo 'make check        style, types and the walls between rooms, in under a minute'
	@echo '                  (make style, make types and make walls are its parts)'
	@echo 'make bench        run the benchmarks'
	@echo 'make lock         write requirements.lock anew from pyproject.toml (needs uv)'

setup: $(READY)

$(READY): requirements.lock pyproject.toml tools/setup
	@PYTHON='$(PYTHON)' sh tools/setup $(VENV)

demo: $(READY)
	@$(BIN)/becausal demo

test: $(READY)
	$(PYTEST) -n logical -m 'not faults'

# Nothing to run is an error for pytest, and stays one as soon as a test carries the mark.
test-faults: $(READY)
	@if grep -rqs --include='test_*.py' 'mark\.faults' tests; then \
	    set -x; $(PYTEST) -m faults; \
	else \
	    echo 'no test carries the mark `faults` yet'; \
	fi

check: style types walls

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy
	MYPYPATH=tools $(BIN)/mypy -p house

walls: $(READY)
	$(BIN)/lint-imports --no-logo
	PYTHONPATH=tools $(BIN)/python -m house

bench: $(READY)
	@found=; for each in bench/*/__main__.py; do \
	    test -f "$$each" || continue; found=yes; \
	    $(BIN)/python "$${each%/__main__.py}" || exit 1; \
	done; test -n "$$found" || { echo 'no benchmark in bench/' >&2; exit 1; }

# Serves Python 3.11 to 3.13 on every platform; says what to install, never from where.
lock:
	$(UV) pip compile pyproject.toml --group dev --group build --universal --generate-hashes \
	    --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links --upgrade \
	    --output-file requirements.lock --quiet
