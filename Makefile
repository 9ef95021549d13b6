# Two commands do all set-up: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PYTEST_ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_WARN_SCRIPT_LOCATION := 1

.DEFAULT_GOAL := help
.PHONY: help demo test docs lab check prepare clean

help:  ## what can be done here
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- the environment

# A virtual environment of a Python that is new enough; one whose Python has gone is made anew.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "rlm needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo not there); say which to use: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12"; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PY) -m pip install -qq --upgrade pip

# The stamps say which requirements are installed; they are older than setup.py or settings.ini when those changed.
$(VENV)/.installed: setup.py settings.ini | $(PY)
	@echo "Installing rlm"
	@$(PY) -m pip install -qq --editable .
	@touch $@

$(VENV)/.installed-dev: setup.py settings.ini | $(PY)
	@echo "Installing rlm and what its development needs (about two minutes)"
	@$(PY) -m pip install -qq --editable ".[dev]"
	@touch $@ $(VENV)/.installed

# ---------------------------------------------------------------- the commands

demo: $(VENV)/.installed  ## set up, then write memories and find them again, in English and Korean
	@PATH="$(abspath $(BIN)):$$PATH" bash tools/demo.sh

test: check  ## set up, then pass every check and every test, each notebook included
	@$(PY) -m pytest -n 2 --dist worksteal --durations 15 $(PYTEST_ARGS)

check: $(VENV)/.installed-dev  ## style, types, drift between package, notebooks and README, documented names
	@failed=; for gate in "$(BIN)/ruff check" "$(BIN)/mypy" "$(PY) tools/drift.py" "$(PY) tools/apicheck.py"; do \
	  echo "$$gate"; $$gate || failed="$$failed $${gate##*/}"; done; \
	if [ -n "$$failed" ]; then echo "These checks failed:$$failed"; exit 1; fi

prepare: $(VENV)/.installed-dev  ## before a commit: export, re-run and clean the notebooks, make README
	@$(BIN)/nbdev_export
	@$(PY) tools/nbrun.py --jobs 2
	@$(BIN)/nbdev_clean
	@$(PY) tools/readme.py

docs: $(VENV)/.installed-dev  ## the documentation site, into _docs
	@$(PY) tools/docs.py

lab: $(VENV)/.installed-dev  ## JupyterLab on the chapters
	@$(BIN)/jupyter lab nbs

clean:  ## remove what was built; the virtual environment stays
	rm -rf _docs _proc build dist *.egg-info .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find rlm tests tools -name __pycache__ -prune -exec rm -rf {} +
