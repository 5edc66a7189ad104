# tlir: `make` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
GOLDEN := tests/golden

.PHONY: help demo test lint format golden golden-update docs bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

$(BIN)/tlir: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

# Everything that the tests need: both frontends on the CPU and the test tools.
$(VENV)/.test: $(BIN)/tlir
	$(PIP) --editable '.[test,jax,torch]'
	@touch $@

demo: $(BIN)/tlir ## install tlir in .venv, then check, run and compare artifacts in the repository
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: lint golden ## install both frontends and the test tools in .venv, then run every check
	$(BIN)/python -m pytest --numprocesses 2

lint: $(VENV)/.test ## ruff (lint and format) and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

golden: $(VENV)/.test ## compare every golden artifact through the command line
	$(BIN)/tlir check --quiet $(GOLDEN)
	$(BIN)/tlir compare $(GOLDEN)

golden-update: $(VENV)/.test ## record the golden artifacts again with the installed frontends
	$(BIN)/python $(GOLDEN)/record.py

docs: $(VENV)/.test ## generate docs/ops.md, docs/coverage.md, the JSON Schemas and the output of the sessions in the documentation again
	$(BIN)/tlir ops --markdown > docs/ops.md
	$(BIN)/tlir ops --frontend jax --frontend torch --markdown > docs/coverage.md
	$(BIN)/python -m tlir.schema.generate
	$(BIN)/python tests/docs/sessions.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build *.egg-info
