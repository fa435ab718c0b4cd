"""Finds etcd, kube-apiserver, kube-controller-manager and kubectl."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

REQUIRED: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_HINT: Final = "`make control-plane` builds them; etcd comes with the package etcd-server"


def find(program: str) -> Path | None:
    """Search KUBEBUILDER_ASSETS, the PATH, and the folder of `make control-plane`."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in filter(None, (assets, os.environ.get("PATH"), *map(str, _built()))):
        if found := shutil.which(program, path=folder):
            return Path(found)
    return None


def require() -> dict[str, Path]:
    """Return the paths of all programs; otherwise skip the test, or fail it in CI."""
    found = {program: find(program) for program in REQUIRED}
    missing = [program for program, path in found.items() if path is None]
    if missing:
        reason = f"control plane not installed: {', '.join(missing)} not found ({_HINT})"
        if os.environ.get("CI") == "true" or os.environ.get("STEADYSCALE_REQUIRE_CONTROL_PLANE"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return {program: path for program, path in found.items() if path is not None}


def _built() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("STEADYSCALE_CONTROL_PLANE") or cache / "steadyscale" / "control-plane")
    return sorted((complete.parent for complete in root.glob("*/complete")), reverse=True)
