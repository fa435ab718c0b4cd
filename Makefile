# `make demo` shows Steadyscale working without a cluster; `make test` runs every test that needs no cluster.
# `make help` lists all targets.
PYTHON  ?= python3
WORKERS ?= 3
VENV    := .venv
BIN     := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev
# Every branch of the autoscaler's pure modules must be covered; these modules do I/O and are not gated.
NOT_PURE := autoscaler/__main__.py,autoscaler/kube/*,autoscaler/controller/apply.py,autoscaler/controller/controller.py,autoscaler/controller/dependencies.py,autoscaler/controller/observe.py,autoscaler/controller/reconcile.py,autoscaler/controller/reporting.py,autoscaler/controller/run.py,autoscaler/controller/worker_pool.py
PYTEST  := $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder

.PHONY: help demo check test lint types contracts unit conform control-plane integration confinement-fuzz soak bench \
        bench-smoke bench-fleet manifests release clean

help:                ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(RUNTIME)     ## run the demo: 29 minutes of a queue in one, without a cluster
	@$(BIN)/steadyscale demo

check: lint types contracts unit ## the inner loop: style, types, import contracts, unit tests

test: lint types contracts conform $(DEV) ## everything that needs no cluster
	$(PYTEST) -m 'not apiserver and not image' --cov --cov-report=
	$(BIN)/coverage report --include='autoscaler/*' --omit='$(NOT_PURE)' --fail-under=100
	$(BIN)/coverage report --include='adapter/*' --format=total | sed 's/.*/branch coverage of adapter: & %/'

# uv installs in seconds; pip takes half a minute for the runtime and some minutes for the development dependencies.
ifneq ($(shell command -v uv),)
CREATE_VENV := uv venv --quiet --seed --allow-existing --python=$(PYTHON) $(VENV)
INSTALL     := uv pip install --quiet --python=$(BIN)/python
else
CREATE_VENV := $(PYTHON) -m venv $(VENV)
INSTALL     := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
endif

# Only the runtime dependencies, so that the demo starts soon on a new machine.
$(RUNTIME): pyproject.toml
	@echo "Installing the runtime dependencies into $(VENV)."
	@$(CREATE_VENV)
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
	$(PYTEST) -m 'apiserver or image' --durations=10

confinement-fuzz: $(DEV) ## 100,000 random queries of tenants, checked with the parsers of Prometheus and VictoriaMetrics
	$(BIN)/python -m tests.security.confinement_fuzz

MINUTES ?= 10
soak: $(DEV)         ## hostile tenants beside a well-behaved one, on a real API server, within the manifest's memory limit
	$(BIN)/python -m tests.security.soak --minutes=$(MINUTES)

bench: $(DEV)        ## benchmarks, each as a ratio to a reference measured in the same run
	$(BIN)/python -m bench.decide
	$(BIN)/python -m bench.adapter
	$(BIN)/python -m bench.prometheus_load
	$(BIN)/python -m bench.backends

bench-smoke: $(DEV)  ## every benchmark for some seconds, to see that it runs
	$(BIN)/python -m bench.decide
	$(BIN)/python -m bench.adapter --rounds=1 --seconds=0.5
	$(BIN)/python -m bench.prometheus_load --seconds=2
	$(BIN)/python -m bench.backends --interval=2 --intervals=1
	$(BIN)/python -m bench.fleet --count=50 --seconds=4 --period=2

bench-fleet: $(DEV)  ## 1,000 autoscalers beside a real API server and the built-in controller; five minutes
	$(BIN)/python -m bench.fleet

manifests: $(DEV)    ## regenerate the CRDs, the chart's copies and the configuration reference
	$(BIN)/python -m tools.crd
	cp manifests/crds/externalmetrics.yaml manifests/crds/podautoscalers.yaml manifests/helm/steadyscale/crds/
	cp manifests/components/grafana/steadyscale.json manifests/helm/steadyscale/dashboard.json
	$(BIN)/python -m tools.reference

release: $(DEV)      ## build sdist, wheel, chart package, SBOM and checksums into dist/
	$(BIN)/python -m tools.release

clean:               ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage dist
