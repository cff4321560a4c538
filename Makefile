# `make` alone lists the targets. Each sets up what it needs: nothing has to be run before.

SHELL := bash
.DEFAULT_GOAL := help

python := .venv/bin/python
# The stamps are older than pyproject.toml as soon as that changes, and the install is done again.
CORE := .venv/.ready-core
FULL := .venv/.ready-full
JARS := .venv/.ready-jars

# More words for pytest: make unit ARGS="-k recovery -x"
ARGS ?=
# How many tests run at once, on two cores: one may wait, for a message that is due or a broker that
# stops. The tests of one file stay together, for what they share, and files are taken in the order
# of tests/conftest.py.
WORKERS ?= 3
# Tests start hundreds of processes that load the same modules; some images keep Python from storing
# what it compiles, and each would do it anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test further check unit docs bench bench-check soak clean java chromium

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(FULL) java ## Set everything up and run the demo
	$(python) examples/demo.py

# Workers take whole files: tests of one file share what is dear.
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(JARS) chromium ## Set everything up and run the tests: every promise, every part
	$(python) -m pytest -m "not (further or soak)" $(SHARED) $(ARGS)

further: $(JARS) chromium ## Run what repeats these tests at length: other versions, all notebooks, the demo
	$(python) -m pytest -m "further and not soak" $(SHARED) $(ARGS)

check: $(FULL) ## Format, lint, types, the arrows between the packages, and the site of the docs
	$(python) -m ruff format --check .
	$(python) -m ruff check .
	$(python) -m mypy
	.venv/bin/lint-imports
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --quiet --strict

docs: $(FULL) ## Serve the docs on this machine, and show changes as they are made
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs serve

unit: $(CORE) ## Run the quick tests: no Spark, no Java
	$(python) -m pytest -m "not (spark or interop or crash or slow or soak)" $(ARGS)

bench: $(FULL) java ## Measure, side by side with what one would use instead
	$(python) bench/run.py

bench-check: $(FULL) java ## Fail if a ratio to Kafka's connector is a quarter worse than noted
	$(python) bench/check.py

soak: $(FULL) java ## Run the soak tests, and the crash and property tests many times over
	ROCKETPY_SOAK=1 $(python) -m pytest -m "soak or crash" --timeout 3600 $(ARGS)
	ROCKETPY_SOAK=1 $(python) -m pytest tests/property --timeout 3600 $(ARGS)

clean: ## Remove what builds and tests leave behind; .venv stays
	rm -rf build dist site src/*.egg-info .coverage .coverage.* htmlcov
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@tools/ensure_java.sh

chromium:
	@tools/ensure_chromium.sh

$(CORE): pyproject.toml
	tools/setup.sh dev
	@touch $@

$(FULL): pyproject.toml
	tools/setup.sh dev,delta,plot,docs
	@touch $(CORE) $@

# Delta's JARs, fetched by one Spark: two that fill the cache at once can break it. It leaves an
# archive of its classes, by which those of the tests start in half the time.
$(JARS): $(FULL) | java
	$(python) -m tests.quick_spark
	@touch $@
