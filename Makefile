# Everything a developer needs. `make` alone lists the targets.

PYTHON ?= python3
VENV   ?= .venv
# Two workers: the suite has memory-hungry searches.
JOBS   ?= 2
PYTEST_ARGS ?=
LIT_ARGS    ?=
# What `make test-frontends` asks pip for: plain torch is a build of several GB, for GPUs.
TORCH ?= torch

# The stamp makes the environment once, and again when what it is made from changes.
STAMP := $(VENV)/.installed
BIN   := $(VENV)/bin

SOURCES := morello_mlir dialect passes test examples benchmarks lit.cfg.py

# Two kernels or JITs on all cores at once only measure each other.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-lit test-unit test-frontends lint format bench clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create $(VENV) with everything in it

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed, not " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what pyproject.toml names into $(VENV): a minute or more, without a word"
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP) ## compile a real module: the schedule, the check, the speed beside numpy's
	$(BIN)/python examples/demo.py

# Both halves run, whatever the first says; pytest's closing line comes last.
test: $(STAMP) ## run the whole suite
	@status=0; \
	$(MAKE) --no-print-directory test-lit || status=1; \
	$(MAKE) --no-print-directory test-unit || status=1; \
	exit $$status

test-lit: $(STAMP) ## run the tests of the tools and passes only
	$(BIN)/lit -q --order=lexical -j $(JOBS) $(LIT_ARGS) test/lit

# JAX objects to every fork of a process that has imported it: its tests have one of their own.
JAX_TESTS := $(wildcard test/unit/test_frontends_jax*.py)
FRONTEND_TESTS := $(filter-out $(JAX_TESTS),$(wildcard test/unit/test_frontends_*.py)) test/unit/test_examples.py

test-unit: $(STAMP) ## run the Python tests only
	@status=0; \
	$(BIN)/python -m pytest -q $(JAX_TESTS) || status=1; \
	$(BIN)/python -m pytest -q -n $(JOBS) $(JAX_TESTS:%=--ignore=%) $(PYTEST_ARGS) || status=1; \
	exit $$status

test-frontends: $(STAMP) ## install torch, torch-mlir and onnx ($(TORCH)) and run the tests that need them
	$(BIN)/python -m pip install --disable-pip-version-check --quiet '$(TORCH)' --editable '.[torch,onnx]'
	$(BIN)/python -m pytest -q -n $(JOBS) $(FRONTEND_TESTS)

lint: $(STAMP) ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## repair what `make lint` says about style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure against the peers
	$(BIN)/python -m benchmarks

clean: ## remove what was built, but not $(VENV)
	rm -rf build dist *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache
