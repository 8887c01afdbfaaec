# `make demo` and `make test` need python3, git and a package registry; everything they install goes to .venv.
PYTHON ?= python3
BIN := .venv/bin
DEMO := examples/recognise_text.py

.PHONY: demo test lit lint docs clean

.venv/installed: pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/python $(DEMO)

test: .venv/installed
	$(BIN)/pytest -q --numprocesses auto

lit: .venv/installed
	$(BIN)/lit -v test/

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: .venv/installed
	$(BIN)/python -m mlirt.tools.documentation $(PAGES)

clean:
	rm -rf .venv .cache build dist
