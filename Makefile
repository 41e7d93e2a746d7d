# Two commands are all that most people need: `make lab` and `make test`.
# Without make (Windows): python tools/lab.py lab, python tools/lab.py test.

PYTHON ?= python3
# TORCH=cpu: the small PyTorch for Linux without an NVIDIA GPU (only when .venv is new)
export TORCH
# ARGS: handed on to JupyterLab, pytest or the build
LAB = $(PYTHON) tools/lab.py

.PHONY: help lab test test-all build check

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

lab: python      ## set up what is missing and open the workbook in JupyterLab
	@$(LAB) lab $(ARGS)

test: python     ## set up what is missing and run the tests
	@$(LAB) test $(ARGS)

test-all: test   ## the tests, and then the slow ones
	@$(LAB) test --slow $(ARGS)

build: python    ## run the pages whose sources are in notebooks/src and store them
	@$(LAB) build $(ARGS)

check: python    ## are the stored pages up to date? (runs none of them)
	@$(LAB) check $(ARGS)

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no command $(PYTHON): install Python 3.11 or newer, or name yours, as in: make lab PYTHON=python3.12" >&2; exit 1; }
