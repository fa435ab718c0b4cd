# Two commands are enough: `make demo` shows it working, `make test` proves it. The rest is for who stays.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
THERE  := $(VENV)/.installed
READY  := $(VENV)/.ready

.PHONY: test lint types contracts unit conform control-plane integration bench bench-fleet manifests demo clean

test: lint types contracts unit conform    ## everything that must hold, from a clean clone

# Where there is uv, installing takes some seconds; with pip half a minute, and some minutes for all that the tests need.
ifneq ($(shell command -v uv),)
MAKE_VENV := uv venv --quiet --seed --allow-existing --python=$(PYTHON) $(VENV)
INSTALL   := uv pip install --quiet --python=$(BIN)/python
else
MAKE_VENV := $(PYTHON) -m venv $(VENV)
INSTALL   := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
endif

# What it takes to run it, and no more: whoever wants to see it should not wait for what only builds it.
$(THERE): pyproject.toml
	@echo "Installing what it needs into $(VENV), once."
	@$(MAKE_VENV)
	@$(INSTALL) --editable .
	@touch $(THERE)

$(READY): $(THERE)
	$(INSTALL) --editable '.[dev]'
	touch $(READY)

lint: $(READY)       ## format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)      ## mypy --strict
	$(BIN)/mypy

contracts: $(READY)  ## which module may import which
	$(BIN)/lint-imports

unit: $(READY)       ## the tests, and every branch of the pure packages reached
	$(BIN)/coverage run -m pytest -m 'not apiserver and not image'
	$(BIN)/coverage report

conform: $(READY)    ## the vectors computed by Kubernetes' own code
	$(BIN)/python -m autoscaler conform tests/vectors

control-plane:       ## the API server and what belongs to it, and helm, built from source once; etcd is the package etcd-server
	tests/control_plane/programs/install
	tests/helm/install

integration: $(READY) ## our process beside a real API server, with a verified certificate, HPA and all; some twenty minutes
	$(BIN)/python -m pytest -m 'apiserver or image' --durations=5

bench: $(READY)      ## figures, each as a ratio to a yardstick of the same run
	$(BIN)/python bench/decide.py
	$(BIN)/python -m bench.adapter
	$(BIN)/python -m bench.prometheus_load
	$(BIN)/python -m bench.backends

bench-fleet: $(READY) ## a thousand autoscalers beside a real API server, ours and the built-in's; five minutes
	$(BIN)/python -m bench.fleet

manifests: $(READY)  ## what is made from something else: the definition of PodAutoscaler, the chart's copies, the reference
	$(BIN)/python -m tools.crd
	cp manifests/crds/externalmetrics.yaml manifests/crds/podautoscalers.yaml manifests/helm/steadyscale/crds/
	cp manifests/components/grafana/steadyscale.json manifests/helm/steadyscale/dashboard.json
	$(BIN)/python -m tools.reference

demo: $(THERE)       ## the main job, on this machine, without a cluster
	@$(BIN)/steadyscale demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
