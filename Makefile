# Everything a person or CI runs.  Each target makes what it needs: a virtual environment, the jars.

PYTHON ?= python3
BIN := .venv/bin
# The virtual environment grows in two steps, so that nobody waits for Spark and linters to see a broker.  Each has a
# stamp: trilogue can run; everything else is ready too.
RUN := .venv/run
READY := .venv/ready
QUICK := -q -m 'not java and not slow' wire storage broker client cli testing pipeline tools
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help run test check test-reduced test-pythons format jars clients bench-wire bench-storage bench-start bench bench-groups bench-pipeline bench-versus bench-hostile kills faults simulate simulate-mutations examples compat compat-record docker-ready docs clean

help:           ## show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22

run: $(RUN)     ## start the broker on 127.0.0.1:9092
	$(BIN)/trilogue start

test: $(READY) lint  ## the whole test suite; parts that need Java or Docker say so where those are missing
	$(BIN)/python -m pytest
	$(MAKE) test-reduced
	$(MAKE) simulate

check: $(READY) lint  ## what to run before every commit: format, lint, types and the quick tests
	$(BIN)/python -m pytest $(QUICK)

test-pythons:   ## as root: the quick tests on Python 3.13 and 3.14, each in a debootstrap of the Debian that brings it
	$(PYTHON) tools/pythons.py $(QUICK)

test-reduced: $(READY)  ## the quick tests on a system with less than POSIX, made of this one: what Windows lacks is not there
	PYTHONPATH=tools/reduced:tools $(BIN)/python -m pytest -q -p reduced.report -m 'not java and not slow' storage broker client cli testing

.PHONY: lint
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## put the code into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clients: $(READY)  ## install and build the Kafka clients of other languages into the cache; tests do it by themselves
	$(BIN)/python tools/clients.py

jars:           ## bring Apache Kafka, other versions of its clients and ZooKeeper from Maven into the cache
	$(PYTHON) tools/jars.py

bench: $(READY)  ## everything beside Apache Kafka in one run: table, JSON, plot and docs/performance.md; about 20 minutes
	$(BIN)/python -m bench

bench-wire: $(READY)  ## parse and build: construct, generated code and kafka-python, in one table
	$(BIN)/python -m bench.wire

bench-storage: $(READY)  ## the log: appends beside bare pwrite, look-ups, opening, recovery, compaction
	$(BIN)/python -m bench.storage

bench-start: $(READY)  ## from exec to the first answer, and memory when idle
	$(BIN)/python -m bench.start

bench-groups: $(READY)  ## transactions, offset commits and heartbeats, beside Apache Kafka
	$(BIN)/python -m bench --only groups

bench-pipeline: $(READY)  ## five million records into Parquet, from ours and from Apache Kafka
	$(BIN)/python -m bench.pipeline

bench-versus: $(READY)  ## this trilogue beside another: make bench-versus BEFORE=../before/.venv/bin/trilogue
	$(BIN)/python -m bench.versus $(BEFORE)

bench-hostile: $(READY)  ## what another client feels while one attacks, beside Apache Kafka (BEFORE= as above)
	$(BIN)/python -m bench.hostile $(BEFORE)

kills: $(READY)  ## a pipeline's driver killed ten times; `make test` has three
	TRILOGUE_KILLS=10 $(BIN)/python -m pytest pipeline/tests/test_kills.py

faults: $(READY)  ## a cluster under load, up to twenty times each: brokers, network, disks, sessions, clocks; `make test` has two
	TRILOGUE_FAULTS=20 $(BIN)/python -m pytest compat_tests/test_faults*.py

SEEDS ?= 0-499
WORKERS ?= $(shell nproc)

simulate: $(READY)  ## whole clusters on virtual time, a seed each: make simulate SEEDS=0-499
	$(BIN)/python -m trilogue.testing.simulation --seeds $(SEEDS) --workers $(WORKERS)

simulate-mutations: $(READY)  ## break the product in many ways, and write into docs/simulation.md which seed finds each
	$(BIN)/python -m trilogue.testing.simulation.table --workers $(WORKERS)

examples: $(READY)  ## run the pipeline's examples on a broker of their own, and draw their pictures anew
	TZ=UTC $(BIN)/python -m trilogue.pipeline.examples.pictures docs/pictures

docker-ready:   ## as root: install what container tests need (docker.io, debootstrap, docker-compose), unless an engine runs
	@docker info >/dev/null 2>&1 || { command -v dockerd && command -v debootstrap; } >/dev/null \
	    || { apt-get update -qq && apt-get install -qq --yes --no-install-recommends docker.io debootstrap docker-compose; } \
	    || echo "docker-ready: cannot install them here; container tests will be skipped"

compat: $(READY) docker-ready  ## the compatibility suite, against Apache Kafka and against ours; then docs/compatibility.md
	$(BIN)/python -m pytest compat_tests --target=apache-kafka
	$(BIN)/python -m pytest compat_tests
	$(BIN)/python -m pytest compat_tests/test_clients.py compat_tests/test_groups.py compat_tests/test_transactions.py --target=cluster
	$(BIN)/python -m pytest compat_tests/test_container.py compat_tests/test_clients.py compat_tests/test_groups.py --target=container
	$(BIN)/python -m compat_tests.report

compat-record: $(READY)  ## ask Apache Kafka everything again, and write down its answers
	$(BIN)/python -m compat_tests.differential.record

docs: $(READY)  ## write docs/configuration.md and docs/protocol.md anew
	$(BIN)/python tools/reference.py

clean:          ## remove the virtual environment and what tools leave behind
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info

# The build is not isolated: to install setuptools here, once, takes three seconds less than an environment for the build
# alone, and the constraints hold for it as they do for the rest.  Any pip can do this: a newer one would cost three more.
$(RUN): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trilogue needs Python 3.11 or newer; this is " + sys.version)'
	$(PYTHON) -m venv .venv
	$(INSTALL) setuptools
	$(INSTALL) --no-build-isolation --editable .
	touch $(RUN)

# Dependency groups are known to pip 25.1 and newer; that of Python 3.11 is older.
$(READY): $(RUN)
	$(INSTALL) --upgrade pip
	$(INSTALL) --group dev
	$(INSTALL) --no-build-isolation --editable '.[zookeeper,pipeline]'
	touch $(READY)
