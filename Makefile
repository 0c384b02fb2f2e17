# Two commands: `make demo` sets up and shows what each kind of trust buys, `make test` sets up and passes the tests.
# Tests stand in two tiers: `make test` runs those that show each fact once, `make test-all` also those marked slow.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
READY := $(VENV)/.ready

LOWEST := .venv-lowest
NEWEST := .venv-newest
PYTEST := -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# What each step of this run takes is noted, and printed at the end of `make test`.
export ACCOUNT := $(VENV)/account-$(shell date +%s).tsv
TIMED := $(PYTHON) tests/account.py

# Tests start hundreds of processes: where byte code may not be kept, each would compile the same libraries again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-slow check lint types types-benchmarks unit test-lowest test-newest coverage metrics fuzz mutants site licences build clean

demo: $(BASE)
	$(BIN)/graphveil demo

test: check unit
	@$(TIMED)

test-all: check types-benchmarks unit test-slow build
	@$(TIMED)

check: lint types

lint: $(READY)
	@$(TIMED) lint $(BIN)/ruff check src tests benchmarks docs
	@$(TIMED) lint $(BIN)/ruff format --check src tests benchmarks docs

types: $(READY)
	@$(TIMED) types $(BIN)/mypy

types-benchmarks: $(READY)
	@$(TIMED) types $(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks

unit: $(READY)
	@OMP_NUM_THREADS=1 $(TIMED) tests $(BIN)/python $(PYTEST) --account -m "not slow"

# The second tier alone; ROOMS="tests/cli tests/graphs" runs some rooms, SECONDS=300 starts no test later than that.
test-slow: $(READY)
	@OMP_NUM_THREADS=1 $(TIMED) slow $(BIN)/python $(PYTEST) --account -m slow \
		$(if $(SECONDS),--most-seconds $(SECONDS)) $(ROOMS) || [ $$? -eq 5 ]  # 5: no test of these rooms is slow

# With the lowest versions that pyproject.toml allows, then with the newest there are: without constraints.txt.
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --requirements pyproject.toml --extra test
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) --no-deps --editable .
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python $(PYTEST) -m "not slow"

test-newest:
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable '.[test]'
	OMP_NUM_THREADS=1 $(NEWEST)/bin/python $(PYTEST) -m "not slow"

# All tests, and which lines of src/ they run; fails below the floor in pyproject.toml.
coverage: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) --cov --cov-report=term-missing:skip-covered

# How the source reads: lengths, docstrings, comments, Any, tests.
metrics: $(READY)
	$(BIN)/python -m tests.metrics

# Plants every bug of tests/mutants in a copy of the source; about 15 minutes, so not a part of `make test`.
mutants: $(READY)
	$(BIN)/python -m tests.mutants

# What `make demo` needs, and what `make test` needs as well.  Byte code is made when a module is first imported, not for
# the thousands that never are; pip's words are in the log, and its last ones are shown where it fails.
define install
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'graphveil needs Python 3.11 or newer')"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing $(1) into $(VENV): about $(2); pip writes to $(VENV)/pip.log"
	@$(TIMED) install $(BIN)/python -m pip install --no-compile --disable-pip-version-check --constraint constraints.txt --editable '$(3)' \
		> $(VENV)/pip.log 2>&1 || { tail -n 5 $(VENV)/pip.log >&2; exit 1; }
	@touch $@
	@echo "Installed."
endef

$(BASE): pyproject.toml constraints.txt
	$(call install,graphveil,a minute,.)

$(READY): pyproject.toml constraints.txt
	$(call install,graphveil and its test tools,two minutes,.[test])
	@touch $(BASE)

# Every reader of files and every command that takes one: INPUTS=1000 make fuzz; SEED=7 repeats.
fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),100000) $(if $(SEED),--seed $(SEED))

# The documentation as a site in build/site, its notebooks run; a warning is an error.
site: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -D run_notebooks=1 docs build/site

# What graphveil installs, and under which licences.
licences: $(READY)
	@$(BIN)/python docs/_site/licences.py

# The wheel and the source distribution in dist/.
build: $(READY)
	@$(TIMED) build $(BIN)/python -m build --no-isolation --outdir dist . > $(VENV)/build.log 2>&1 \
		|| { tail -n 5 $(VENV)/build.log >&2; exit 1; }

clean:
	rm -rf $(VENV) $(LOWEST) $(NEWEST) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.*
