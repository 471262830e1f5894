# Everyday commands. Each sets up what it needs in .venv, from Python 3.11+ and a package index alone.
#   make demo    convert a PyTorch model, run both versions, compare
#   make test    all tests
#   make lint    ruff and mypy
#   make docs    regenerate the pages in docs/
#   make bench   print the benchmarks' figures
#   make gpu     the whole check suite on a GPU; where there is none, it says so (status 3, which make makes 2)
# PYTHON names another interpreter to start from; PIP_FLAGS goes to pip install (-c constraints-ci.txt pins the gate's
# versions). PYTEST_FLAGS goes to pytest.

PYTHON ?= python3
PIP_FLAGS ?=
PYTEST_FLAGS ?= -n 2 -q
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint docs bench gpu
.DEFAULT_GOAL := test

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "t2j needs Python 3.11 or later; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: $(READY)
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python docs/build.py

bench: $(READY)
	$(BIN)/python -m benchmarks.convert_speed
	$(BIN)/python -m benchmarks.torchvision_models
	$(BIN)/python -m benchmarks.server_latency

gpu: $(READY)
	@$(BIN)/python -m benchmarks.gpu_suite
