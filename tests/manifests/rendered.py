"""Render manifests/ with kustomize and Helm, as objects that can be compared."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from tests.control_plane import programs
from tests.missing_programs import missing

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "manifests"
CHART: Final = MANIFESTS / "helm" / "steadyscale"

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str]


def key(item: Json) -> Key:
    """Return kind, namespace and name."""
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def documents(text: str) -> dict[Key, Json]:
    """Return the objects of a YAML stream by key; duplicates are an error."""
    found = [one for one in yaml.safe_load_all(text) if one]
    assert len({key(one) for one in found}) == len(found)
    return {key(one): one for one in found}


def kustomized(folder: Path) -> dict[Key, Json]:
    """Render a folder with kubectl kustomize."""
    return documents(_run(str(programs.require_one("kubectl")), "kustomize", str(folder)))


def kustomized_with_components(folder: Path) -> dict[Key, Json]:
    """Render the base with all components, from an overlay as a user would write it."""
    parts = sorted((MANIFESTS / "components").iterdir())
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(MANIFESTS / "base", folder)],
        "components": [os.path.relpath(part, folder) for part in parts],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(overlay))
    return kustomized(folder)


def helm() -> Path:
    """Return the path of helm; without it skip the test, or fail in CI."""
    built = sorted(_cache().glob("*/complete"), reverse=True)
    found = shutil.which("helm") or next((str(one.parent / "helm") for one in built), None)
    return Path(found) if found else missing("helm", "make control-plane")


def templated(*arguments: str, namespace: str = "steadyscale") -> dict[Key, Json]:
    """Render the chart with helm."""
    command = (str(helm()), "template", "steadyscale", str(CHART), f"--namespace={namespace}", "--include-crds")
    return documents(_run(*command, "--kube-version=1.37.0", *arguments))


def rejection(*arguments: str) -> str:
    """Render the chart with invalid values and return the error message."""
    done = _done(str(helm()), "template", "steadyscale", str(CHART), "--kube-version=1.37.0", *arguments)
    assert done.returncode != 0
    return done.stderr


def _cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("STEADYSCALE_HELM") or cache / "steadyscale" / "helm")


def _run(*command: str) -> str:
    done = _done(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - fixed commands
