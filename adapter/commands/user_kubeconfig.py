"""The kubeconfig of the user, found as kubectl finds it."""

import os
from pathlib import Path


def user_kubeconfig(kubeconfig: Path | None) -> Path | None:
    """Return the kubeconfig that kubectl would use; None in a pod, and if there is none.

    ``KUBECONFIG`` can name several files, which are merged; the result then contains the separators.
    """
    if kubeconfig is not None:
        return kubeconfig
    named = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    files = [file for file in named.split(os.pathsep) if file and Path(file).is_file()]
    return Path(os.pathsep.join(files)) if files else None
