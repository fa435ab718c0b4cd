"""Says where to look while the demonstration runs, as commands that work when they are pasted."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from adapter.demo.environment import KEY, METRIC
from adapter.fakecluster.kubeconfig import METRICS

_COLUMNS = "NAME:.metadata.name,KIND:.kind,REPLICAS:.spec.replicas,DESIRED:.status.desiredReplicas"


class Places(NamedTuple):
    """Where everything is."""

    service: str
    folder: Path
    page: str
    """Empty: there is none."""

    @property
    def kubeconfig(self) -> Path:
        """For kubectl."""
        return self.folder / "kubeconfig"

    @property
    def authority(self) -> Path:
        """Who signed the service's certificate."""
        return self.folder / "ca.crt"

    @property
    def token(self) -> Path:
        """What the visitor shows."""
        return self.folder / "token"

    @property
    def log(self) -> Path:
        """What the service writes."""
        return self.folder / "steadyscale.log"


def opening(speed: float, lasts: timedelta) -> str:
    """Say what this is, and how fast time runs."""
    minutes, yours = lasts.total_seconds() / 60, lasts.total_seconds() / speed
    return (
        "A shop's queue, its consumers, and the autoscaler between them. The cluster is in this process' memory,\n"
        "the rest is the real thing. Made up is only how many orders come and when the metrics backend fails: every\n"
        f"replica count is the autoscaler's own. Time runs at most {speed:g} times as fast as yours, so that a day\n"
        f"of {minutes:g} minutes takes {yours:.0f} seconds or a little more. Times are the shop's. Ctrl-C ends it.\n\n"
    )


def where_to_look(places: Places) -> str:
    """List the commands."""
    metric = f"{places.service}/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{METRIC}"
    bearer = f'-H "Authorization: Bearer $(cat {places.token})"'
    kubectl = f"kubectl --kubeconfig {quote(str(places.kubeconfig))}"
    shown = f"--server {places.service} --ca-file {places.authority} --token-file {places.token}"
    asks = [
        ("the page", places.page or "(left out: --no-page)"),
        ("the metric, as an HPA asks for it", f"curl --cacert {places.authority} {bearer} {metric}"),
        ("the same with kubectl", f"{kubectl} --context {METRICS} get --raw {_path(metric)}"),
        ("the cluster", f"{kubectl} get deployments,podautoscalers -o custom-columns={_COLUMNS}"),
        ("what the autoscaler says of itself", f"{kubectl} get podautoscalers checkout-consumer -o yaml"),
        ("why it decided so", f"{_command()} explain {KEY} {shown}"),
        ("where the number comes from", f"{_command()} metric shop/{METRIC} {shown}"),
        ("the service's log", f"tail -f {places.log}"),
    ]
    return "".join(f"  {title}:\n    {command}\n" for title, command in asks)


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def _command() -> str:
    """Find what to call us by here: a virtual environment's programs are not on everyone's path."""
    beside = Path(sys.executable).parent / "steadyscale"
    if shutil.which("steadyscale"):
        return "steadyscale"
    return quote(str(beside)) if beside.exists() else f"{quote(sys.executable)} -m adapter"
