# Targets are listed by `make` alone. PYTHON must be 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests start a thousand processes; without bytecode each compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

$(VENV)/run.stamp: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plimsoll needs Python 3.11 or newer; say make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing plimsoll into $(VENV)'
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/web.stamp: requirements/web.txt $(VENV)/run.stamp
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/web.txt
	@touch $@

$(VENV)/msk.stamp: requirements/msk.txt $(VENV)/run.stamp
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/msk.txt
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

.PHONY: setup
setup: $(VENV)/run.stamp ## install plimsoll into .venv

.PHONY: web
web: $(VENV)/web.stamp ## install what plimsoll serve needs as well

.PHONY: msk
msk: $(VENV)/msk.stamp ## install what logins to Amazon MSK by IAM need as well

.PHONY: demo
demo: $(VENV)/run.stamp ## balance a skewed local Kafka cluster; ARGS=--headless without the screen
	@$(BIN)/plimsoll demo $(ARGS)

.PHONY: check
check: $(VENV)/dev.stamp ## lint, format, wording, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -P docs/dialect.py
	$(BIN)/mypy model clients solver collector executor lab control tui tests benchmarks docs
	$(BIN)/lint-imports

.PHONY: test
test: $(VENV)/dev.stamp ## run the tests, those on real clusters included; test-slow has the longest
	@# One process, and first, so that the workers of the others find the tests compiled.
	$(BIN)/python -m pytest -n 0 -m "automq and not soak" $(ARGS) || [ $$? = 5 ]
	@# Half of the time, tests wait: for threads, timeouts and other processes.
	$(BIN)/python -m pytest -n 4 -m "not (kafka or spark or automq or soak or slow)" $(ARGS) || [ $$? = 5 ]
	@# Brokers and Spark start with half of the CPU; without these, they start all the same.
	-$(BIN)/python -P -m lab.local_cluster.class_archive
	-$(BIN)/python -P -m collector.spark.class_archive
	@# In the order of collection, since the files that take longest have few tests. With their
	@# names, since each takes long.
	$(BIN)/python -m pytest -v -n 2 --no-loadscope-reorder -m "(kafka or spark) and not (automq or soak or slow)" $(ARGS) || [ $$? = 5 ]

.PHONY: test-slow
test-slow: $(VENV)/dev.stamp ## run the tests that take half of the time of all
	$(BIN)/python -m pytest -v -n 2 -m "slow and not (automq or soak)" $(ARGS)

.PHONY: test-versions
test-versions: $(VENV)/dev.stamp ## test every pinned Kafka version, and record it for the README
	PLIMSOLL_ALL_VERSIONS=1 $(BIN)/python -m pytest -n 0 -m kafka tests/end_to_end/test_versions.py $(ARGS)
	$(BIN)/python -P -m docs.generate

.PHONY: kubernetes
kubernetes: $(VENV)/dev.stamp ## build kube-apiserver and etcd for tests, into the cache folder or ARGS=FOLDER; needs Go
	@$(BIN)/python -P -m tests.support.build_kubernetes $(ARGS)

MINUTES ?= 60

.PHONY: soak
soak: $(VENV)/dev.stamp ## run kills, throttled moves, and MINUTES=60 of moves under load and of faults on real clusters
	PLIMSOLL_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -n 0 -m soak -rP --timeout 0 $(ARGS)

SEEDS ?= 1000

.PHONY: fire
fire: $(VENV)/dev.stamp ## run SEEDS=1000 worlds in which everything fails; ARGS=--mutants for deliberate bugs
	$(BIN)/python -P -m benchmarks.fire --seeds $(SEEDS) $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/dev.stamp ## feed every reader of foreign bytes hostile ones, for MINUTES=60 in all; ARGS=--update-corpus
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/fuzz.txt
	$(BIN)/python -P -m benchmarks.fuzz --minutes $(MINUTES) $(ARGS)

.PHONY: nightly
nightly: $(VENV)/dev.stamp ## run what takes too long for every change, for hours; ARGS="--only fuzz"
	$(BIN)/python -P -m benchmarks.nightly $(ARGS)

.PHONY: quick
quick: $(VENV)/dev.stamp ## run the tests that need no JVM and no broker
	$(BIN)/python -m pytest $(ARGS)

.PHONY: bench bench-aims bench-demo bench-first-plans bench-longevity bench-loop bench-moves bench-peers bench-pipeline bench-probe bench-reaction bench-records bench-schedule bench-screen bench-service bench-solver bench-standby bench-stream bench-sweep
bench: bench-solver bench-first-plans bench-peers bench-aims bench-schedule bench-pipeline bench-records bench-stream bench-moves bench-probe bench-loop bench-longevity bench-reaction bench-service bench-standby bench-screen bench-demo bench-sweep bench-simulate ## measure everything in benchmarks/

bench-demo: $(VENV)/dev.stamp ## measure the demo; ARGS="--runs N"
	$(BIN)/python -P -m benchmarks.demo $(ARGS)

bench-records: $(VENV)/dev.stamp ## measure decoding and compacting raw records; ARGS="--only kafka"
	$(BIN)/python -P -m benchmarks.records $(ARGS)

bench-stream: $(VENV)/dev.stamp ## measure the streaming job; ARGS="--batches N"
	$(BIN)/python -P -m benchmarks.stream $(ARGS)

bench-moves: $(VENV)/dev.stamp ## measure moves on real clusters; ARGS="--only automq"
	$(BIN)/python -P -m benchmarks.moves $(ARGS)

bench-probe: $(VENV)/dev.stamp ## measure what observing a cluster costs; ARGS="--only cost"
	$(BIN)/python -P -m benchmarks.probe $(ARGS)

bench-screen: $(VENV)/dev.stamp ## measure the screen; ARGS="--only keys"
	$(BIN)/python -P -m benchmarks.screen $(ARGS)

bench-solver: $(VENV)/dev.stamp ## measure the planner; ARGS="--only 10x500 --seeds 1"
	$(BIN)/python -P -m benchmarks.solver $(ARGS)

bench-aims: $(VENV)/dev.stamp ## measure the planner beside its aims; ARGS="--large"
	$(BIN)/python -P -m benchmarks.aims $(ARGS)

bench-first-plans: $(VENV)/dev.stamp ## measure what compiling adds to the first plan
	$(BIN)/python -P -m benchmarks.first_plans

bench-loop: $(VENV)/dev.stamp ## measure what --auto costs between plans
	$(BIN)/python -P -m benchmarks.loop

bench-longevity: $(VENV)/dev.stamp ## measure what 50,000 earlier runs cost, and a simulated year; ARGS="--only year"
	$(BIN)/python -P -m benchmarks.longevity $(ARGS)

bench-reaction: $(VENV)/dev.stamp ## measure how soon --auto acts on a shift of load; ARGS="--only double"
	$(BIN)/python -P -m benchmarks.reaction $(ARGS)

bench-service: $(VENV)/dev.stamp ## measure what the service takes, and how soon it answers
	$(BIN)/python -P -m benchmarks.service $(ARGS)

bench-standby: $(VENV)/dev.stamp ## measure how soon a standby takes over; ARGS="--only kafka --times N"
	$(BIN)/python -P -m benchmarks.standby $(ARGS)

bench-schedule: $(VENV)/dev.stamp ## measure the order of moves
	$(BIN)/python -P -m benchmarks.schedule

bench-sweep: $(VENV)/dev.stamp ## measure sweeps on a standalone Spark cluster, one executor killed
	$(BIN)/python -P -m benchmarks.sweep $(ARGS)

bench-simulate: $(VENV)/dev.stamp ## measure plimsoll simulate, one executor of Spark killed; ARGS="--only hard"
	$(BIN)/python -P -m benchmarks.simulate $(ARGS)

bench-peers: $(VENV)/dev.stamp ## measure the planner beside other balancers
	$(BIN)/python -P -m benchmarks.cruise
	$(BIN)/python -P -m benchmarks.equal_quality
	$(BIN)/python -P -m benchmarks.peers

bench-pipeline: $(VENV)/dev.stamp ## measure decoders, and the history's statistics beside polars and DuckDB
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/bench.txt
	$(BIN)/python -P -m benchmarks.decoders
	$(BIN)/python -P -m benchmarks.pipeline $(ARGS)

.PHONY: reference
reference: $(VENV)/dev.stamp ## write the generated parts of docs/
	$(BIN)/python -P -m docs.generate

.PHONY: pictures
pictures: $(VENV)/dev.stamp ## take the pictures in docs/pictures
	$(BIN)/python -P -m benchmarks.pictures
	$(BIN)/python -P -m docs.before_after

.PHONY: walk
walk: $(VENV)/dev.stamp ## drive the demo by its keys on the local cluster, and take docs/pictures/real
	$(BIN)/python -P -m benchmarks.walk

DIST := $(VENV)/dist

.PHONY: dist
dist: ## build sdist and wheels into dist/, one with the planner's loops compiled, and try them in a fresh environment
	rm -rf dist $(DIST)
	$(PYTHON) -m venv $(DIST)/build
	$(DIST)/build/bin/pip install --quiet --require-hashes -r requirements/dist.txt
	$(DIST)/build/bin/python -m hatchling build --target sdist
	$(DIST)/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	git ls-files model clients solver collector executor lab control tui | sort > $(DIST)/tree
	$(DIST)/build/bin/python -m zipfile -l dist/*.whl | awk 'NR > 1 && !/[.]dist-info\// { print $$1 }' | sort | diff $(DIST)/tree -
	$(PYTHON) -m venv $(DIST)/fresh
	$(DIST)/fresh/bin/pip install --quiet --require-hashes -r requirements/run.txt
	$(DIST)/fresh/bin/pip install --quiet --no-deps dist/*.whl
	@# Outside of the repository, so that only the installed wheel can be imported.
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cp fixtures/demo.json "$$folder" && plimsoll=$$PWD/$(DIST)/fresh/bin/plimsoll \
	  && cd "$$folder" && export PLIMSOLL_STATE_DIR="$$folder/state" \
	  && "$$plimsoll" plan --snapshot demo.json --out plan.json && "$$plimsoll" verify plan.json --snapshot demo.json \
	  && "$$plimsoll" demo --simulated --headless
	@# A first plan compiles nothing where this one is installed.
	cd / && $(CURDIR)/$(DIST)/fresh/bin/python -P -m lab.precompile
	mkdir $(DIST)/loops && cp $(DIST)/fresh/lib/python*/site-packages/solver/kernels/__pycache__/*.nb? $(DIST)/loops
	PLIMSOLL_LOOPS=$(CURDIR)/$(DIST)/loops $(DIST)/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz
	rm -r $(DIST)/fresh/lib/python*/site-packages/solver
	$(DIST)/fresh/bin/pip install --quiet --no-deps --force-reinstall dist/*-cp3*.whl
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && plimsoll=$$PWD/$(DIST)/fresh/bin/plimsoll && cd "$$folder" \
	  && "$$plimsoll" generate --days 0 --out made && "$$plimsoll" plan --snapshot made/snapshot.json --out plan.json 2> said && ! grep compiling said
	rm -rf $(DIST)
	ls -l dist

.PHONY: requirements
requirements: ## pin dependency versions and hashes
	$(PYTHON) -m venv $(VENV)/uv && $(VENV)/uv/bin/pip install --quiet uv
	$(VENV)/uv/bin/uv pip compile --quiet pyproject.toml --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/run.txt
	$(VENV)/uv/bin/uv pip compile --quiet pyproject.toml --extra web -c requirements/run.txt --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/web.txt
	$(VENV)/uv/bin/uv pip compile --quiet pyproject.toml --extra msk -c requirements/run.txt --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/msk.txt
	$(VENV)/uv/bin/uv pip compile --quiet pyproject.toml --group test --group static -c requirements/run.txt --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/dev.txt
	$(VENV)/uv/bin/uv pip compile --quiet --group dist --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/dist.txt
	$(VENV)/uv/bin/uv pip compile --quiet --group bench -c requirements/run.txt --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/bench.txt
	$(VENV)/uv/bin/uv pip compile --quiet --group fuzz --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/fuzz.txt
	$(VENV)/uv/bin/uv pip compile --quiet --group audit --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make requirements" -o requirements/audit.txt

$(VENV)/audit.stamp: requirements/audit.txt
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/pip install --quiet --require-hashes -r requirements/audit.txt
	@touch $@

.PHONY: audit
audit: $(VENV)/audit.stamp ## look for known vulnerabilities of the pinned dependencies
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/run.txt -r requirements/web.txt -r requirements/msk.txt

.PHONY: sbom
sbom: $(VENV)/audit.stamp ## write dist/plimsoll.cdx.json, the pinned dependencies as CycloneDX, and those with web and msk
	@mkdir -p dist
	for extra in run web msk; do \
	  PYTHONWARNINGS=ignore $(VENV)/audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --validate \
	  -o dist/plimsoll-$$extra.cdx.json requirements/$$extra.txt || exit 1; \
	done
	mv dist/plimsoll-run.cdx.json dist/plimsoll.cdx.json

.PHONY: clean
clean: ## remove what the targets created here
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
