PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
#: Tests that run kernels in their own processes
KERNELS := tests/machine tests/native tests/semantics tests/sim tests/observe tests/test_cases.py

.PHONY: help setup demo test check bench docs site forms tables sweep clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,dev]'
	@touch $@

setup: $(VENV)/.dev  ## Make a virtual environment with everything that development needs

demo: $(VENV)/.installed  ## Lint, assemble and run a real kernel
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: $(VENV)/.test  ## Run all tests; TESTS="…" are options and files for pytest
	$(BIN)/python -m pytest $(if $(TESTS),$(TESTS),-n auto --maxprocesses 4)

check: $(VENV)/.dev  ## Format, lint and type checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --strict examples/public.py

bench: $(VENV)/.installed  ## Print speeds beside C, ptxas and plain Python start-up
	$(BIN)/python bench/run.py
	$(BIN)/python bench/container.py
	$(BIN)/python bench/scalar.py
	$(BIN)/python -m bench.observed profile
	$(BIN)/python -m bench.observed coverage
	$(BIN)/python -m bench.observed timeline
	$(BIN)/python -m bench.debug

docs: $(VENV)/.installed  ## Rebuild the generated pages in docs/
	$(BIN)/python tools/make_docs.py

site: $(VENV)/.installed  ## Build the documentation as a site, in build/site
	$(BIN)/python -m pip install -q -e ".[docs]"
	$(BIN)/mkdocs build --strict

forms: $(VENV)/.installed  ## Print which forms of isa have no meaning yet, and the lines to write for them
	$(BIN)/python tools/forms.py

tables: $(VENV)/.installed  ## Write the parsing tables of a changed grammar into the package
	$(BIN)/python -c "from ptxtools.syntax.tables import ship; ship()"

sweep: $(VENV)/.test  ## Long checks: all rows of all tests, every form on both engines, random kernels, every case with seeds, threads and late completion
	$(BIN)/python -m pytest --whole -n auto
	for tier in quick regions; do $(BIN)/python -m pytest --tier $$tier -n auto $(KERNELS) || exit; done
	$(BIN)/python tools/sweep_semantics.py
	for cpu in "" "--cpu avx2"; do $(BIN)/python tools/sweep_tiers.py --seconds 600 $$cpu || exit; done
	$(BIN)/python tools/sweep_cases.py
	$(BIN)/python tools/sweep_cases.py --engine reference
	$(BIN)/python tools/sweep_litmus.py
	$(BIN)/python tools/sweep_weak.py
	$(BIN)/python tools/sweep_launches.py
	$(BIN)/python tools/sweep_ptxas.py
	$(BIN)/python tools/manual_examples.py

clean:  ## Remove the virtual environment and what was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
