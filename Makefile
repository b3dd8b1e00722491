# make run   sets up .venv and reproduces the paper at a small scale: report in results/quick/index.html
# make check lints, checks types and tests the core, in a minute: for every save
# make test  sets up .venv and runs linters, type checker and tests: for every change
PYTHON ?= python3
VENV := .venv
LIBRARY := packages/ital
STUDY := packages/ital-study
PAPER := packages/ital-paper
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Without bytecode, every worker and every command that tests start would parse all sources again.
unexport PYTHONDONTWRITEBYTECODE

TYPES := $(BIN)/mypy
# The tutorial's programs run for a moment only: they are compiled as those of the tests are (conftest.py).
QUICKLY := env XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false" OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PJRT_NPROC=1
DOCS_CHECK := $(QUICKLY) $(BIN)/sphinx-build -q -W --keep-going -b dummy docs docs/_build/dummy
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal --durations 30 --programs 30

# Tests of the mathematics and of the loop.
CORE := $(addprefix $(LIBRARY)/tests/,test_volume.py test_gradients.py test_losses.py test_rationality.py test_random.py \
  test_teaching.py test_public.py teachers learners/test_two_step.py) tests/test_mutants.py::test_the_list_fits_the_sources

.PHONY: run check test test-all test-ital test-study test-paper test-alone mutants tools lint types docs docs-check figures bench lowest pythons release wheel clean

run: $(VENV)/.installed
	@$(BIN)/ital reproduce --quick

check: lint types
	$(BIN)/python -m pytest -n 2 -q $(CORE)

# The type checker and the documentation are checked beside the tests; what they say comes after.
test: lint tools
	@mkdir -p build
	@(nice $(TYPES); types=$$?; nice $(DOCS_CHECK) && exit $$types) >build/checks.txt 2>&1 & checks=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$checks; checks=$$?; cat build/checks.txt; \
	[ $$checks = 0 ] || echo "types or documentation: see above"; \
	[ $$tests = 0 ] || echo "tests: see above"; \
	[ $$checks = 0 ] && [ $$tests = 0 ]

# One package while working on it.
test-ital: $(VENV)/.installed-dev
	$(PYTEST) $(LIBRARY)/tests

test-study: $(VENV)/.installed-dev tools
	$(PYTEST) $(STUDY)/tests

test-paper: $(VENV)/.installed-dev
	$(PYTEST) $(PAPER)/tests

# The library where nothing else is installed, so that no use of another package creeps in. With FEW=1, as CI does it,
# all files of tests are imported but only the tests marked alone run; then a user's commands are tried.
ALONE := build/alone
test-alone: $(ALONE)/.installed
	env -u PYTHONPATH $(ALONE)/bin/python -m pytest -n 3 --dist worksteal -q -o pythonpath=". $(LIBRARY)" $(if $(FEW),-m alone) $(LIBRARY)/tests
	env -u PYTHONPATH $(ALONE)/bin/python tools/smoke.py --alone

$(ALONE)/.installed: $(LIBRARY)/pyproject.toml constraints.txt
	rm -rf $(ALONE) && $(PYTHON) -m venv $(ALONE)
	$(ALONE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '$(LIBRARY)[test]'
	@touch $@

test-all: lint types docs-check tools
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or not slow"

# Small errors, one at a time in N sampled places: which does no test notice?
N ?= 200
SEED ?= 0
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tools.mutants --number $(N) --seed $(SEED)

# What the tests of the study need beside Python: two browsers, PostgreSQL, nginx, axe-core, jsPsych, puppeteer-core. Where one cannot be had, its tests are skipped and say so.
tools:
	@echo "tests of the study use: chromium, firefox-esr, postgresql, nginx-light, npm; axe-core, jspsych, puppeteer-core"
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  get() { [ -n "$$updated" ] || apt-get update -qq || true; updated=yes; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$1 >/dev/null || echo "could not install $$1"; }; \
	else get() { echo "$$1 is missing: install it to run all tests of the study"; }; fi; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || get chromium; \
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || get postgresql; \
	command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || get nginx-light; \
	command -v npm >/dev/null || get npm; \
	command -v firefox-esr >/dev/null || command -v firefox >/dev/null || get firefox-esr; \
	for one in axe-core@4 jspsych@8 puppeteer-core@24; do \
	  [ -d build/node/node_modules/$${one%@*} ] || npm install --silent --no-audit --no-fund --prefix build/node $$one || echo "could not get $$one"; \
	done

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tools.house
	$(BIN)/proselint --config .proselintrc.json check README.md CONTRIBUTING.md docs/*.md docs/*/*.md

types: $(VENV)/.installed-dev
	$(TYPES)

docs-check: $(VENV)/.installed-dev
	$(DOCS_CHECK)

docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

figures: $(VENV)/.installed-dev
	$(BIN)/python docs/build_scripts/make_figures.py

bench: $(VENV)/.installed
	$(BIN)/ital bench

# A plain installation tried as its user would: with the lowest versions that pyproject.toml allows, and with other Pythons.
lowest:
	rm -rf build/lowest && $(PYTHON) -m venv build/lowest
	$(PYTHON) tools/lowest.py > build/lowest/constraints.txt
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check -c build/lowest/constraints.txt ./$(LIBRARY) ./$(STUDY) ./$(PAPER)
	build/lowest/bin/python tools/smoke.py

PYTHONS ?= 3.11 3.12 3.13
pythons: $(PYTHONS:%=python-%)
python-%:
	rm -rf build/python$* && python$* -m venv build/python$*
	build/python$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ./$(LIBRARY) ./$(STUDY) ./$(PAPER)
	build/python$*/bin/python tools/smoke.py

release: $(VENV)/.installed-dev
	@$(PIP) twine
	$(BIN)/python tools/release.py $(VERSION)

wheel: $(VENV)/.installed-dev
	for one in $(LIBRARY) $(STUDY) $(PAPER); do $(BIN)/python -m build --wheel --no-isolation --outdir dist $$one || exit 1; done

clean:
	rm -rf $(VENV) build dist docs/_build results .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ital needs Python 3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created $(wildcard packages/*/pyproject.toml) constraints.txt
	$(PIP) -e $(LIBRARY) -e $(STUDY) -e $(PAPER)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created $(wildcard packages/*/pyproject.toml) constraints.txt
	$(PIP) -e '$(LIBRARY)[dev]' -e '$(STUDY)[dev]' -e $(PAPER)
	@touch $@ $(VENV)/.installed
