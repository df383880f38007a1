# `make help` lists everything. A fresh machine needs Python 3.11 or later and make.
#   PYTHON=python3.12   the Python to create the environment with (default: the first that fits)
#   VENV=.venv          where the environment is
VENV   ?= .venv
PYTHON ?=
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
DEMO   := $(VENV)/ready-for-demo
# Imports resolve to the sources of this tree, also when the environment belongs to another one.
SOURCES := PYTHONPATH=worker/src:operator/src
PYTEST  := $(BIN)/python -m pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test soak bench e2e e2e-down check format layers sizes words style types quick-tests requirements clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO) ## index the standard library with workers going 0 -> n -> 0 (KEEP=1: stay up afterwards)
	@$(BIN)/python examples/stdlib-index/demo.py $(if $(KEEP),--keep)

test: $(READY) ## run every test that needs no cluster, integration and chaos included
	@$(PYTEST) tests --ignore=tests/e2e --ignore=tests/soak

soak: $(READY) ## run the broker against its model for 10,000 steps, on both servers (about five minutes)
	@$(PYTEST) -rP tests/soak

e2e: $(READY) ## run the tests on a kind cluster, made and deleted again (KEEP=1: it stays; tests/e2e/README.md)
	@$(BIN)/python -m pytest tests/e2e

e2e-down: $(READY) ## delete the clusters that e2e left and stop the Docker engine that it started
	@$(BIN)/python -m tests.e2e.rig down

check: layers sizes words style types quick-tests ## run every gate: layers, sizes, words, style, types, quick tests

format: $(READY) ## rewrite the sources as `make style` wants them, as far as that can be done by machine
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

layers: $(READY) ## imports go downwards only, and third-party libraries have one door
	@$(SOURCES) $(BIN)/lint-imports --no-logo --no-cache

sizes: $(READY) ## files and functions stay within the size budget
	@$(BIN)/python -m tests.architecture.sizes

words: $(READY) ## one word per idea in every name, plain sentences in every page
	@$(BIN)/python -m tests.architecture.words
	@$(BIN)/python -m tests.architecture.prose

style: $(READY) ## formatting and lint
	@$(BIN)/ruff format --check --quiet --diff .
	@$(BIN)/ruff check --quiet .

types: $(READY) ## strict types
	@$(BIN)/mypy

quick-tests: $(READY) ## unit, contract, property and architecture tests
	@$(PYTEST) -m 'not thorough' tests/unit tests/contract tests/property tests/architecture

requirements: $(READY) ## renew requirements/all.txt from the pyproject files (UPGRADE=1: newest versions)
	@VENV=$(VENV) requirements/renew.sh $(if $(UPGRADE),--upgrade)

bench: $(READY) ## measure Tidework and its peers (FULL=1: all of it, about 55 minutes; JSON=file; benchmarks/README.md)
	@$(BIN)/python -m benchmarks $(if $(FULL),--full) $(if $(JSON),--json $(JSON))

clean: ## remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis uv.lock
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/all.txt worker/pyproject.toml operator/pyproject.toml requirements/environment.sh
	@requirements/environment.sh all $(VENV) $(PYTHON)

$(DEMO): requirements/all.txt worker/pyproject.toml requirements/environment.sh
	@requirements/environment.sh demo $(VENV) $(PYTHON)
