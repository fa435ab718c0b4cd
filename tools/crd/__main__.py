"""Generate `manifests/crds/podautoscalers.yaml`."""

from pathlib import Path

from tools.crd.definition import render

PATH = Path(__file__).parents[2] / "manifests" / "crds" / "podautoscalers.yaml"

if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(render())
