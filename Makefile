# Everyday commands. Each sets up what it needs in .venv, from Python 3.11+ and a package index alone.
#   make demo    convert a PyTorch model, run both versions, compare
#   make test    all tests that need little; of the others and of long tables a share, each day another (the first lines say
#                which): all in twelve days
#   make thorough  all tests, with every row
#   make quick   the tests that need little: borders, the lint of the rules, and of conversions as text each second, by day
#   make rule S=spectral   the tests of one subject of the rules
#   make lint    ruff and mypy
#   make docs    regenerate the pages in docs/
#   make bench   print the benchmarks' figures
#   make vsix    package the VS Code extension
#   make vscode-parts  fetch what its tests need
#   make vscode  test it: types, lint, units, and end to end in a real VS Code (E2E_FLAGS goes there)
#   make vscode-units, make vscode-e2e  its two halves; the first packages it, the second drives the package
#   make gpu     the whole check suite on a GPU; where there is none, it says so (status 3, which make makes 2)
# PYTHON names another interpreter to start from; PIP_FLAGS goes to pip install (-c constraints-ci.txt pins the gate's
# versions). PYTEST_FLAGS goes to pytest.

PYTHON ?= python3
PIP_FLAGS ?=
PYTEST_FLAGS ?= -n 2 --dist worksteal -q
BIN := .venv/bin
READY := .venv/.ready
E2E_FLAGS ?=
CLIENT := vscode-client
NODE := $(CLIENT)/scripts/with-node.sh
NODE_READY := $(CLIENT)/node_modules/.ready

.PHONY: demo test thorough quick rule lint docs bench gpu vsix vscode vscode-parts vscode-units vscode-e2e
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

thorough: $(READY)
	T2J_ROWS=all $(BIN)/python -m pytest $(PYTEST_FLAGS)

quick: $(READY)
	$(BIN)/python -m pytest -m unit $(PYTEST_FLAGS)

rule: $(READY)
	$(BIN)/python -m pytest -q tests/rules tests/helpers -k "$(S)"

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

$(NODE_READY): $(CLIENT)/package-lock.json
	@# Not npm ci: it asks for the optional packages of every platform, and a mirror of the registry may lack some.
	cd $(CLIENT) && scripts/with-node.sh npm install --no-save --silent --ignore-scripts
	@touch $(NODE_READY)

vsix: $(READY) $(NODE_READY)
	@PYTHON="$(CURDIR)/$(BIN)/python" PIP_FLAGS="$(PIP_FLAGS)" $(NODE) node $(CLIENT)/scripts/package.mjs --out $(CLIENT)/t2j.vsix

vscode-parts: $(NODE_READY)
	cd $(CLIENT) && scripts/with-node.sh node test/e2e/run.mjs --parts

vscode: vscode-units
	$(MAKE) vscode-e2e

vscode-units: vsix
	cd $(CLIENT) && scripts/with-node.sh npm run --silent check
	cd $(CLIENT) && scripts/with-node.sh npm test --silent

vscode-e2e: $(READY) $(NODE_READY)
	cd $(CLIENT) && scripts/with-node.sh node test/e2e/run.mjs $(E2E_FLAGS)
