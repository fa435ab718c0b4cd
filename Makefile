# `make demo` shows Steadyscale working without a cluster; `make test` runs every test that needs no cluster.
# `make help` lists all targets.
PYTHON  ?=
WORKERS ?= 3
VENV    := .venv
BIN     := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev
# Every branch of the autoscaler's pure modules must be covered; these modules do I/O and are not gated. Only the
# autoscaler is measured: tracing the adapter as well makes the tests of its parsers eight times slower.
NOT_PURE := autoscaler/__main__.py,autoscaler/kube/*,autoscaler/controller/apply.py,autoscaler/controller/controller.py,autoscaler/controller/dependencies.py,autoscaler/controller/observe.py,autoscaler/controller/reconcile.py,autoscaler/controller/reporting.py,autoscaler/controller/run.py,autoscaler/controller/shards.py,autoscaler/controller/watched_cluster.py,autoscaler/controller/worker_pool.py
NO_CLUSTER := not apiserver and not image and not faults
SKIPPED_ON_BARE_MACHINE := .skipped-tests
PYTEST  := $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder

.PHONY: help demo check test lint types contracts unit conform control-plane integration faults random-faults confinement-fuzz soak bench \
        bench-smoke bench-fleet bench-peers manifests release clean replace-venv bare-machine skipped-tests

help:                ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(RUNTIME)     ## run the demo: 29 minutes of a queue in one, without a cluster
	@$(BIN)/steadyscale demo

check: lint types contracts unit ## the inner loop: style, types, import contracts, unit tests

test: lint types contracts conform $(DEV) ## everything that needs no cluster
	$(PYTEST) -m '$(NO_CLUSTER)' --cov=autoscaler --cov-report= $(if $(SKIPPED),--write-skipped=$(SKIPPED))
	$(BIN)/coverage report --include='autoscaler/*' --omit='$(NOT_PURE)' --fail-under=100

skipped-tests: $(DEV) ## the tests that the last `make bare-machine` skipped because programs are missing there
	$(PYTEST) -m '$(NO_CLUSTER)' --run-skipped=$(SKIPPED_ON_BARE_MACHINE)

# uv installs in seconds; pip takes half a minute for the runtime and some minutes for the development dependencies.
ifneq ($(shell command -v uv),)
INSTALL := uv pip install --quiet --python=$(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --use-pep517
endif

# An environment of another Python than PYTHON, of one that is too old, or of one that was removed, is replaced.
ifneq ($(shell tools/create_venv --check '$(PYTHON)' $(VENV) && echo usable),usable)
$(RUNTIME): replace-venv
endif
replace-venv:

# Only the runtime dependencies, so that the demo starts soon on a new machine.
$(RUNTIME): pyproject.toml
	@tools/create_venv '$(PYTHON)' $(VENV)
	@echo "Installing the runtime dependencies into $(VENV)."
	@$(INSTALL) --editable .
	@touch $(RUNTIME)

$(DEV): $(RUNTIME)
	@echo "Installing the development dependencies into $(VENV)."
	@$(INSTALL) --editable '.[dev]'
	@touch $(DEV)

lint: $(DEV)         ## ruff: formatting and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(DEV)        ## mypy --strict, and mypy on the tests
	$(BIN)/mypy

contracts: $(DEV)    ## import-linter: which package may import which
	$(BIN)/lint-imports

unit: $(DEV)         ## unit, property and architecture tests
	$(PYTEST) --quiet tests/unit tests/properties tests/architecture

conform: $(DEV)      ## the conformance vectors computed by Kubernetes' own code
	$(BIN)/python -m autoscaler conform tests/vectors

control-plane:       ## build kube-apiserver, kube-controller-manager, kubectl and helm once; etcd is the package etcd-server
	tests/control_plane/programs/install
	tests/helm/install

integration: $(DEV)  ## the tests beside a real API server
	$(PYTEST) -m '(apiserver or image) and not faults' --durations=10

faults: $(DEV)       ## faults of the API server, etcd, the network and metrics, beside a real control plane; six minutes
	$(PYTEST) -m faults --durations=10 tests/faults

SEED ?= 1
random-faults: $(DEV) ## random faults, edits and metric values; invariants checked on all writes; virtual time, then a real API server
	$(BIN)/python -m tests.faults.random_run --mutants
	$(BIN)/python -m tests.faults.random_run --virtual --seeds=60 --seed=$(SEED)
	$(BIN)/python -m tests.faults.random_run --minutes=$(MINUTES) --seed=$(SEED)

confinement-fuzz: $(DEV) ## 100,000 random queries of tenants, checked with the parsers of Prometheus and VictoriaMetrics
	$(BIN)/python -m tests.security.confinement_fuzz

MINUTES ?= 10
soak: $(DEV)         ## hostile tenants beside a well-behaved one, on a real API server, within the manifest's memory limit
	$(BIN)/python -m tests.security.soak --minutes=$(MINUTES)

bare-machine:        ## `make demo` and `make test` as a new user of a Debian that debootstrap has just made; needs root
	python3 -m tools.bare_machine --skipped=$(SKIPPED_ON_BARE_MACHINE)

bench: $(DEV)        ## benchmarks, each as a ratio to a reference measured in the same run
	$(BIN)/python -m bench.decide
	$(BIN)/python -m bench.adapter
	$(BIN)/python -m bench.prometheus_load
	$(BIN)/python -m bench.snapshots
	$(BIN)/python -m bench.backends
	$(BIN)/python -m bench.decision_history
	$(BIN)/python -m bench.simulate
	$(BIN)/python -m bench.page
	$(BIN)/python -m bench.latency
	$(BIN)/python -m bench.shards
	$(BIN)/python -m bench.scaling
	$(BIN)/python -m bench.status_writes
	$(BIN)/python -m bench.autoscaler_memory

bench-smoke: $(DEV)  ## every benchmark for some seconds, to see that it runs
	$(BIN)/python -m bench.decide
	$(BIN)/python -m bench.adapter --rounds=1 --seconds=0.5
	$(BIN)/python -m bench.prometheus_load --seconds=2
	$(BIN)/python -m bench.snapshots --series=1000 --refreshes=2
	$(BIN)/python -m bench.backends --interval=2 --intervals=1
	$(BIN)/python -m bench.decision_history --count=500 --hours=0.1
	$(BIN)/python -m bench.page --count=200 --seconds=1
	$(BIN)/python -m bench.simulate --days=0.5 --fleet=5
	$(BIN)/python -m bench.status_writes --writes=20 --rounds=1
	$(BIN)/python -m bench.autoscaler_memory --count=200
	$(BIN)/python -m bench.fleet --count=50 --seconds=4 --period=2
	$(BIN)/python -m bench.scaling

bench-fleet: $(DEV)  ## 1,000 autoscalers beside a real API server and the built-in controller; five minutes
	$(BIN)/python -m bench.fleet

bench-peers: $(DEV)  ## the request path beside prometheus-adapter, which is built from its Go module; ten minutes
	$(BIN)/python -m bench.peers

manifests: $(DEV)    ## regenerate the CRDs, the chart's copies and the configuration reference
	$(BIN)/python -m tools.crd
	cp manifests/crds/externalmetrics.yaml manifests/crds/podautoscalers.yaml manifests/helm/steadyscale/crds/
	cp manifests/components/grafana/steadyscale.json manifests/helm/steadyscale/dashboard.json
	$(BIN)/python -m tools.reference

release: $(DEV)      ## build sdist, wheel, chart package, SBOM and checksums into dist/
	$(BIN)/python -m tools.release

clean:               ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage dist $(SKIPPED_ON_BARE_MACHINE)
