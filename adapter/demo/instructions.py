"""The introduction of the demo, and the commands to try while it runs."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path
from shlex import quote
from textwrap import fill

from adapter.demo.environment import AUTOSCALER, METRIC, METRICS
from adapter.demo.narrator import WIDTH

_COLUMNS = "KIND:.kind,NAME:.metadata.name,REPLICAS:.spec.replicas"
KUBECONFIG, CA, TOKEN, LOG = "kubeconfig", "ca.crt", "token", "steadyscale.log"
"""Files in the folder of the demo."""


def introduction(speed: float, length: timedelta) -> str:
    text = (
        "This demo runs the Steadyscale service against an in-memory Kubernetes API. A PodAutoscaler scales the "
        "consumers of an order queue. Only the orders and an outage of the metrics backend are scripted; every "
        f"replica count is a decision of the autoscaler. Time runs up to {speed:g} times faster than real time: "
        f"{length.total_seconds() / 60:g} minutes take about {length.total_seconds() / speed:.0f} seconds."
    )
    return f"{fill(text, WIDTH)}\n\nPress Ctrl-C to stop.\n\n"


def commands_to_try(service: str, page: str, folder: Path) -> str:
    """Return the commands, each below a comment that names it, so that all of it can be pasted into a shell."""
    metric = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{METRIC}"
    ca, token, kubeconfig, log = (quote(str(folder / name)) for name in (CA, TOKEN, KUBECONFIG, LOG))
    kubectl = ("kubectl", f"--kubeconfig {kubeconfig}")
    connection = (f"--server {service}", f"--ca-file {ca}", f"--token-file {token}")
    commands = {
        "explain the last decision": (_program(), f"explain {AUTOSCALER}", *connection),
        "read the metric, with each step": (_program(), f"metric shop/{METRIC}", *connection),
        "read the metric as an HPA does": (*kubectl, f"--context {METRICS}", "get --raw", metric),
        "list the objects": (*kubectl, "get deployments,podautoscalers", f"-o custom-columns={_COLUMNS}"),
        "status of the autoscaler": (*kubectl, "get podautoscalers checkout-consumer", "-o yaml"),
        "log of the service": (f"tail -f {log}",),
    }
    text = "".join(f"# {title}\n{_wrapped(command)}" for title, command in commands.items())
    return f"Debugging page:\n{page or '(disabled by --no-page)'}\n\nCommands to try in another terminal:\n\n{text}"


def _wrapped(parts: tuple[str, ...]) -> str:
    """Join the parts of a command to lines of at most 80 columns that end with backslashes, so that it can be pasted.

    A part is not split, so a long path makes its line longer.
    """
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) > WIDTH - len("  ") - len(" \\"):
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines) + "\n"


def _program() -> str:
    """Return the command that runs this program, with its path if it is not in PATH, as in a virtual environment."""
    program = Path(sys.executable).parent / "steadyscale"
    if shutil.which("steadyscale"):
        return "steadyscale"
    return quote(str(program)) if program.exists() else f"{quote(sys.executable)} -m adapter"
