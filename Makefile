# What you need: Python 3.11 or newer and make. Everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run
DEV_STAMP := $(VENV)/.dev
INPUTS := pyproject.toml constraints.txt

# uv is used when it is there; it is faster, and asks for nothing else.
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.PHONY: run test prove check bench histories lock clean

run: $(RUN_STAMP) ## A durable session in the terminal; with a pipe it answers each line and ends.
	@$(BIN)/gmi chat

test: $(DEV_STAMP) ## Every test but the long proofs; under 12 minutes on two cores.
	$(BIN)/python -m pytest -m "not prove" -n 3 --dist loadfile

prove: $(DEV_STAMP) ## The long proofs: random kills, 1,000 turns, everything on PostgreSQL.
	$(BIN)/python -m pytest -m prove
	$(BIN)/python -m pytest tests/durability tests/sessions -m "not prove" --database=postgresql \
		-n 2 --dist loadfile

check: $(DEV_STAMP) ## Lint, format and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(DEV_STAMP) ## A turn's overhead beside a hand-written loop, and a recall's time.
	$(BIN)/python benchmarks/turn_overhead.py
	$(BIN)/python benchmarks/recall.py

histories: $(DEV_STAMP) ## Record the histories that later versions must still replay.
	$(BIN)/python -m tests.histories.record

lock: ## Write constraints.txt anew from what the project asks for today.
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet ".[dev]"
	.lock-venv/bin/python -m pip freeze --exclude durable-gmi > constraints.txt
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

$(VENV)/pyvenv.cfg:
	$(if $(UV),$(UV) venv --quiet --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))

$(RUN_STAMP): $(VENV)/pyvenv.cfg $(INPUTS)
	$(INSTALL) -c constraints.txt -e ".[dev-server]"
	@touch $@

$(DEV_STAMP): $(VENV)/pyvenv.cfg $(INPUTS)
	$(INSTALL) -c constraints.txt -e ".[dev]"
	@touch $@ $(RUN_STAMP)
