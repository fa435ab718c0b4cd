"""Finds etcd, kube-apiserver, kube-controller-manager and kubectl."""

import os
import shutil
from pathlib import Path
from typing import Final

from tests.missing_programs import missing

REQUIRED: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def find(program: str) -> Path | None:
    """Search KUBEBUILDER_ASSETS, the PATH, and the folder of `make control-plane`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in filter(None, (assets, os.environ.get("PATH"), *map(str, _built()))):
        if found := shutil.which(program, path=folder):
            return Path(found)
    return None


def require() -> dict[str, Path]:
    """Return the paths of all programs; otherwise skip the test, or fail it in CI."""
    return {program: require_one(program) for program in REQUIRED}


def require_one(program: str) -> Path:
    """Return the path of a program; without it skip the test, or fail it in CI."""
    return find(program) or missing(program, "apt install etcd-server" if program == "etcd" else "make control-plane")


def _built() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("STEADYSCALE_CONTROL_PLANE") or cache / "steadyscale" / "control-plane")
    return sorted((complete.parent for complete in root.glob("*/complete")), reverse=True)
