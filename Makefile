# Two commands: `make demo` sets up and runs the main job, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check lint types unit fuzz mutants clean

demo: $(READY)
	$(BIN)/graphveil train lpgnn digits --epsilon-x 1 --epsilon-y 2 --repeats 3

test: check unit

check: lint types

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/ruff format --check src tests benchmarks docs

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

# Plants every bug of tests/mutants in a copy of the source; about 15 minutes, so not a part of `make test`.
mutants: $(READY)
	$(BIN)/python -m tests.mutants --page docs/mutants.md

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'graphveil needs Python 3.11 or newer')"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $(READY)

# Every reader of files and every command that takes one: INPUTS=1000 make fuzz; SEED=7 repeats.
fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),100000) $(if $(SEED),--seed $(SEED))

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
