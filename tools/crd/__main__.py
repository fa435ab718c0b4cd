"""Generate `manifests/crds/podautoscalers.yaml` and the parameters in `manifests/crds/externalmetrics.yaml`."""

from pathlib import Path

from tools.crd import parameters
from tools.crd.definition import render

PATH = Path(__file__).parents[2] / "manifests" / "crds" / "podautoscalers.yaml"

if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(render())
    parameters.FILE.write_text(parameters.render(parameters.FILE.read_text()))
