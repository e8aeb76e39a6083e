# Everything a person or CI runs.  Each target makes what it needs: a virtual environment, the jars.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help run test check format jars bench-wire bench-storage bench-start bench-groups bench-pipeline examples compat compat-record docs clean

help:           ## show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22

run: $(READY)   ## start the broker on 127.0.0.1:9092
	$(BIN)/trilogue start

test: $(READY) lint  ## the whole test suite; parts that need Java or Docker say so where those are missing
	$(BIN)/python -m pytest

check: $(READY) lint  ## what to run before every commit: format, lint, types and the quick tests
	$(BIN)/python -m pytest -q -m 'not java and not slow' wire storage broker client cli testing pipeline tools

.PHONY: lint
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## put the code into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

jars:           ## bring Apache Kafka, other versions of its clients and ZooKeeper from Maven into the cache
	$(PYTHON) tools/jars.py

bench-wire: $(READY)  ## parse and build: construct, generated code and kafka-python, in one table
	$(BIN)/python -m bench.wire

bench-storage: $(READY)  ## the log: appends beside bare pwrite, look-ups, opening, recovery, compaction
	$(BIN)/python -m bench.storage

bench-start: $(READY)  ## from exec to the first answer, and memory when idle
	$(BIN)/python -m bench.start

bench-groups: $(READY)  ## heartbeats and offset commits, beside Apache Kafka
	$(BIN)/python -m bench.groups

bench-pipeline: $(READY)  ## five million records into Parquet, from ours and from Apache Kafka
	$(BIN)/python -m bench.pipeline

examples: $(READY)  ## run the pipeline's examples on a broker of their own, and draw their pictures anew
	TZ=UTC $(BIN)/python -m trilogue.pipeline.examples.pictures docs/pictures

compat: $(READY)  ## the compatibility suite, against Apache Kafka and against ours
	$(BIN)/python -m pytest compat_tests --target=apache-kafka
	$(BIN)/python -m pytest compat_tests

compat-record: $(READY)  ## ask Apache Kafka everything again, and write down its answers
	$(BIN)/python -m compat_tests.differential.record

docs: $(READY)  ## write docs/configuration.md and docs/protocol.md anew
	$(BIN)/python tools/reference.py

clean:          ## remove the virtual environment and what tools leave behind
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trilogue needs Python 3.11 or newer; this is " + sys.version)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --editable '.[zookeeper,pipeline]' --group dev
	touch $(READY)
