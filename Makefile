# Two commands are enough: `make demo` shows it working, `make test` proves it. The rest is for who stays.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
THERE  := $(VENV)/.installed
READY  := $(VENV)/.ready

.PHONY: test lint types contracts unit conform control-plane integration bench manifests demo clean

test: lint types contracts unit conform    ## everything that must hold, from a clean clone

# What it takes to run it, and no more: whoever wants to see it should not wait for what only builds it. Where there is
# uv it takes some seconds, with pip half a minute.
$(THERE): pyproject.toml
	@echo "Installing what it needs into $(VENV), once."
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --seed --allow-existing --python=$(PYTHON) $(VENV) && \
	  uv pip install --quiet --python=$(BIN)/python --editable .; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .; \
	fi
	@touch $(THERE)

$(READY): $(THERE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
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

integration: $(READY) ## our process beside a real API server, with a verified certificate, HPA and all; some five minutes
	$(BIN)/python -m pytest -m 'apiserver or image' --durations=5

bench: $(READY)      ## figures, each as a ratio to a yardstick of the same run
	$(BIN)/python bench/decide.py
	$(BIN)/python -m bench.adapter
	$(BIN)/python -m bench.prometheus_load
	$(BIN)/python -m bench.backends

manifests: $(READY)  ## what is made from something else: the definition of PodAutoscaler, the chart's copies, the reference
	$(BIN)/python -m tools.crd
	cp manifests/crds/externalmetrics.yaml manifests/crds/podautoscalers.yaml manifests/helm/steadyscale/crds/
	cp manifests/components/grafana/steadyscale.json manifests/helm/steadyscale/dashboard.json
	$(BIN)/python -m tools.reference

demo: $(THERE)       ## the main job, on this machine, without a cluster
	@$(BIN)/steadyscale demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
