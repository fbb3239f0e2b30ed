# `make demo` and `make test` are the two commands of the README; the others are for who changes the code.
# Needed beforehand: make, Python 3.11 or newer, a package index. Everything else goes into .venv, each
# version and hash as requirements.lock says.

VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
# A uv on the PATH is used; otherwise pip puts the locked one into .venv.
UV = $(shell uv --version >/dev/null 2>&1 && echo uv || echo $(BIN)/uv)

.DEFAULT_GOAL := help
.PHONY: help demo test check test-long mutants clients coverage bench docs format lock clean uv

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(VENV)/demo.stamp ## kill an import twice and watch it resume, embedded and served
	@$(BIN)/python examples/langgraph_resume.py

test: check ## every check and every test but the long ones
	@$(BIN)/pytest -n 2 -m "not long"

check: $(VENV)/all.stamp ## lint, format, types and floors
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

test-long: $(VENV)/all.stamp ## the long tests: processes killed at random, fresh clones
	@$(BIN)/pytest -n 2 -m long

mutants: $(VENV)/all.stamp ## break each rule once and see that the tests notice (part of test-long)
	@$(BIN)/pytest -n 2 tests/mutants

clients: $(VENV)/all.stamp ## the long tests with real MCP clients, which it installs into a cache of their own
	@$(BIN)/pytest -n 2 tests/clients

coverage: $(VENV)/all.stamp ## branch coverage of the policy and the engine, which must be whole
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 2 -m "not long" --ignore=tests/packaging --ignore=tests/docs
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(VENV)/all.stamp ## ratios of medians, measured side by side on this machine
	@$(BIN)/python -m tests.benchmarks

docs: $(VENV)/all.stamp ## the documentation as a site in site/
	@$(BIN)/mkdocs build --strict --config-file - --site-dir site < docs/mkdocs.yml

format: $(VENV)/all.stamp ## format the code, renew what is made from it: examples in the documentation, catalogue files
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format
	@$(BIN)/python tests/docs/blocks.py
	@$(BIN)/python tests/service/publish.py

# What is locked stays unless pyproject.toml no longer allows it: `make lock UPGRADE=--upgrade` takes the
# newest of all, `UPGRADE="--upgrade-package NAME"` of one.
lock: uv ## renew requirements.lock
	@$(UV) pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --quiet --output-file $(LOCK) $(UPGRADE)

clean: ## remove everything make created
	@rm -rf $(VENV) dist site .coverage .coverage.* .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ------------------------------------------------------------------------------------

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "creating $(VENV) with $$($$python --version)"; \
	    exec $$python -m venv --clear $(VENV); \
	  fi; \
	done; \
	echo "no Python 3.11 or newer with venv and ensurepip on the PATH: install one" \
	  "(Debian: apt-get install python3-venv) or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

uv: | $(BIN)/python
	@if ! $(UV) --version >/dev/null 2>&1; then \
	  sed -n '/^uv==/,/# via/p' $(LOCK) > $(VENV)/uv.txt; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt; \
	fi

# Into .venv, at the versions and hashes of the lock.
INSTALL = $(UV) pip install --quiet --python $(BIN)/python --constraints $(LOCK) --build-constraints $(LOCK)

$(VENV)/demo.stamp: pyproject.toml $(LOCK) | uv
	@echo "installing the demo into $(VENV)"
	@$(INSTALL) --editable '.[langgraph,server]'
	@touch $@

# The full environment serves the demo too.
$(VENV)/all.stamp: pyproject.toml $(LOCK) | uv
	@echo "installing everything into $(VENV)"
	@$(INSTALL) --editable '.[all]' --group dev
	@touch $(VENV)/demo.stamp $@
