"""Where etcd, kube-apiserver, kube-controller-manager and kubectl are on this machine, if they are."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

NEEDED: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_HOW: Final = "`make control-plane` builds them; etcd comes with the package etcd-server"


def find(program: str) -> Path | None:
    """Look where envtest looks, then on the PATH, then where `install` puts what it builds."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in filter(None, (assets, os.environ.get("PATH"), *map(str, _built()))):
        if found := shutil.which(program, path=folder):
            return Path(found)
    return None


def require() -> dict[str, Path]:
    """Return all of them; without, skip the test loudly, or fail it where it may not be skipped."""
    found = {program: find(program) for program in NEEDED}
    missing = [program for program, path in found.items() if path is None]
    if missing:
        why = f"no real control plane here: {', '.join(missing)} not found ({_HOW})"
        if os.environ.get("CI") == "true" or os.environ.get("STEADYSCALE_REQUIRE_CONTROL_PLANE"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    return {program: path for program, path in found.items() if path is not None}


def _built() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("STEADYSCALE_CONTROL_PLANE") or cache / "steadyscale" / "control-plane")
    return sorted((complete.parent for complete in root.glob("*/complete")), reverse=True)
