# Every target sets up what it needs: `make demo` and `make test` each work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo check test lint types unit reader docs wheel readme browser databases bench \
    baselines clean

help: ## Show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## Make .venv with everything for development

$(STAMP): pyproject.toml bench/pyproject.toml constraints.txt setup.py \
    $(wildcard src/tabnsm/kernels/*.c)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable ".[dev]" --editable ./bench
	@touch $@

demo: $(STAMP) ## Train on real loans with free text, compare, report (about 2 minutes)
	$(BIN)/tabnsm demo

check: lint types ## Lint, types and the fast tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow"

test: lint types docs browser databases unit wheel readme ## Everything that CI runs

lint: $(STAMP) ## Style and common mistakes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Static types
	$(BIN)/mypy

unit: $(STAMP) reader ## Tests, doctests, and the code blocks of README and docs
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

reader: ## Make .venv-reader, without torch, for the tests of exported models
	@test -x .venv-reader/bin/python || $(PYTHON) -m venv .venv-reader
	@.venv-reader/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt numpy onnxruntime tokenizers || \
	    { rm -rf .venv-reader; echo "No .venv-reader: a test of exported models is skipped."; }

docs: $(STAMP) ## Build the documentation site strictly, into docs/_build/html
	rm -rf docs/api/generated
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky --fresh-env \
	    docs docs/_build/html

wheel: $(STAMP) ## Build the wheel, install it in an empty environment, fit and predict there
	bash scripts/check_wheel.sh $(BIN)/python

readme: $(STAMP) ## Follow README, block by block, in an empty environment
	$(BIN)/python scripts/check_readme.py

browser: ## Install Chromium for the tests of the report, where apt and root are at hand
	@command -v chromium > /dev/null || \
	    { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	      && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium > /dev/null; } || \
	    echo "Chromium is not installed: the tests of the report in a browser are skipped."

databases: ## Install PostgreSQL and MariaDB for the tests of searches, where apt and root are at hand
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || \
	    { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	      && apt-get update -qq && apt-get install -qq -y --no-install-recommends postgresql > /dev/null; } || \
	    echo "PostgreSQL is not installed: the tests of searches in it are skipped."
	@command -v mariadb-install-db > /dev/null || \
	    { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update -qq \
	      && apt-get install -qq -y --no-install-recommends mariadb-server-core \
	          mariadb-client-core > /dev/null; } || \
	    echo "MariaDB is not installed: the tests of searches in it are skipped."

bench: $(STAMP) ## Speed and memory beside peers (slow; wants an idle machine)
	$(BIN)/python bench/speed/run.py
	$(BIN)/python bench/speed/report.py

# Folder of the table files; those that are missing are downloaded into it.
DATA ?= data
SMOKE := bench/results/smoke

baselines: $(STAMP) ## Install the environments of all baselines, run each on few rows
	$(BIN)/tabnsm bench env --all
	@test -e $(DATA)/cpu_small.parquet || $(BIN)/tabnsm bench download cpu_small -d $(DATA)
	$(BIN)/python bench/scripts/write_ames_housing.py $(DATA)
	$(BIN)/tabnsm bench run -m all --datasets cpu_small,ames_housing -d $(DATA) -r $(SMOKE) \
	    --encoding default --max-rows 500 --max-epochs 10 --time-limit 120 --threads 1
	$(BIN)/tabnsm bench run -m realmlp --datasets cpu_small,ames_housing -d $(DATA) -r $(SMOKE) \
	    --encoding default --max-rows 500 --time-limit 120 --threads 1
	$(BIN)/tabnsm bench tables -r $(SMOKE) --into bench/docs/baselines.md

clean: ## Remove what the targets made
	rm -rf $(VENV) .venv-reader build dist demo-output docs/_build docs/api/generated src/*.egg-info \
	    bench/build bench/src/*.egg-info
