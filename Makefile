# make run   sets up .venv and reproduces the paper at a small scale: report in results/quick/index.html
# make test  sets up .venv and runs linters, type checker and tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test test-all lint types docs figures bench wheel clean

run: $(VENV)/.installed
	@$(BIN)/ital reproduce --quick

test: lint types docs
	$(BIN)/python -m pytest -n 2

test-all: lint types docs
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

figures: $(VENV)/.installed-dev
	$(BIN)/python docs/make_figures.py

bench: $(VENV)/.installed
	$(BIN)/ital bench

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) build dist docs/_build results .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ital needs Python 3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.installed
