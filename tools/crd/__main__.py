"""Write `manifests/crds/podautoscalers.yaml` afresh."""

from pathlib import Path

from tools.crd.definition import printed

PLACE = Path(__file__).parents[2] / "manifests" / "crds" / "podautoscalers.yaml"

if __name__ == "__main__":
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text(printed())
