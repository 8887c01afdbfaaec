# `make demo` and `make test` need python3, git and a package registry; everything they install goes to .venv.
PYTHON ?= python3
BIN := .venv/bin
DEMO := examples/recognise_text.py

.PHONY: demo test test-full test-torch test-serve test-mlperf test-package site test-site lit lint docs clean

.venv/installed: pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/python $(DEMO)

# The tests start some thousand processes of Python: without bytecode each of them would compile the sources again.
test: .venv/installed
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q --numprocesses auto

# Those of test/slow_tests.txt too, which are one in thirty, and most of the time: most pages and guides, whole tunings.
test-full: .venv/installed
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -q --numprocesses auto --full

# PyTorch is no part of `make test`: its CPU build and the packages that the tests of its importer need have a folder
# of their own. TORCH_INDEX="--index-url https://download.pytorch.org/whl/cpu" takes the build without CUDA.
TORCH_INDEX ?=
.venv-torch/installed: pyproject.toml
	test -x .venv-torch/bin/pip || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet torch==2.13.0 $(TORCH_INDEX)
	.venv-torch/bin/pip install --quiet --editable '.[torch]' pytest hypothesis expecttest transformers torchao==0.18.0
	touch $@

test-torch: .venv-torch/installed
	.venv-torch/bin/pytest -q test/frontend/torch test/builder/from_torch

# Nor are the packages of other servers: gRPC, Ray, OpenTelemetry, and Triton's client, which asks our server as a stranger.
.venv-serve/installed: pyproject.toml
	test -x .venv-serve/bin/pip || $(PYTHON) -m venv .venv-serve
	.venv-serve/bin/pip install --quiet --editable '.[grpc,ray]' pytest hypothesis 'tritonclient[http,grpc]' opentelemetry-sdk pyarrow
	touch $@

test-serve: .venv-serve/installed
	.venv-serve/bin/pytest -q test/serve

# MLPerf Inference's load generator on engines for the CPU, beside onnxruntime and OpenVINO; `bench/mlperf` measures.
.venv-mlperf/installed: pyproject.toml
	test -x .venv-mlperf/bin/pip || $(PYTHON) -m venv .venv-mlperf
	.venv-mlperf/bin/pip install --quiet --editable '.[mlperf]' 'openvino>=2025' pytest hypothesis
	touch $@

test-mlperf: .venv-mlperf/installed
	.venv-mlperf/bin/pytest -q --full test/bench/mlperf

# The wheel and the sdist, each in an empty environment of every Python from 3.11 to 3.14 that is on the machine.
.venv-package/installed: pyproject.toml
	test -x .venv-package/bin/pip || $(PYTHON) -m venv .venv-package
	.venv-package/bin/pip install --quiet build pytest
	touch $@

test-package: .venv-package/installed
	.venv-package/bin/pytest -q --override-ini addopts= --import-mode=importlib --noconftest -rs test/package

# The site of the documentation, in build/site: open its index.html, or serve the folder. Nothing is loaded from elsewhere.
# NO_MKDOCS_2_WARNING silences an advertisement of the theme.
.venv-site/installed: pyproject.toml
	test -x .venv-site/bin/pip || $(PYTHON) -m venv .venv-site
	.venv-site/bin/pip install --quiet 'mkdocs==1.6.1' 'mkdocs-material>=9.7,<10' 'mkdocstrings[python]>=1.0,<2' ruff
	touch $@

site: .venv/installed .venv-site/installed
	$(BIN)/python -m mlirt.tools.documentation.site build/site-source
	NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --quiet --strict
	$(BIN)/python -m mlirt.tools.documentation.site.check build/site

test-site: site
	$(BIN)/pytest -q test/docs/test_site.py

lit: .venv/installed
	$(BIN)/lit -v test/

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: .venv/installed
	$(BIN)/python -m mlirt.tools.documentation $(PAGES)

clean:
	rm -rf .venv .venv-torch .venv-serve .venv-mlperf .venv-site .venv-package .cache build dist
