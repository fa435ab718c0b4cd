"""The Alertmanager configuration of the documentation, with a real Alertmanager that sends to a local Slack."""

import json
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest
import yaml

from tests import missing_programs
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program
from tests.docs.blocks import ROOT, blocks
from tests.manifests.test_metric_names import rules

pytestmark = pytest.mark.prometheus


@contextmanager
def slack() -> Iterator[tuple[str, "Queue[dict[str, Any]]"]]:
    """Run a server that collects the messages it receives; return its URL and the messages."""
    messages: Queue[dict[str, Any]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Write no access log."""

    server = HTTPServer((LOOPBACK, 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/services/hook", messages
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def alertmanager(folder: Path, config: dict[str, Any]) -> Iterator[str]:
    """Run Alertmanager with a configuration; return its URL."""
    program = next(filter(None, map(shutil.which, ("prometheus-alertmanager", "alertmanager"))), "")
    missing_programs.require("alertmanager", "apt install prometheus-alertmanager", is_installed=bool(program))
    file, url = folder / "alertmanager.yaml", f"http://{LOOPBACK}:{free_port()}"
    file.write_text(yaml.safe_dump(config))
    address = url.removeprefix("http://")
    flags = (f"--config.file={file}", f"--storage.path={folder}", f"--web.listen-address={address}")
    running = Program([program, *flags, "--cluster.listen-address="], folder / "log", lambda: is_ready(url))
    running.start()
    try:
        yield url
    finally:
        running.stop()


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as response:  # noqa: S310 - loopback
            return bool(response.status == 200)
    except OSError:
        return False


def post(url: str, *alerts: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v2/alerts", json.dumps(alerts).encode(), headers)  # noqa: S310
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - loopback


def alert(alertname: str, **labels: str) -> dict[str, Any]:
    """Return an alert with the annotations of the shipped rule, in which Prometheus has replaced the labels."""
    none: dict[str, Any] = {"labels": {}, "annotations": {}}
    rule = next((rule for rule in rules() if rule["alert"] == alertname), none)
    annotations = dict(rule["annotations"])
    for label, text in labels.items():
        annotations = {key: one.replace(f"{{{{ $labels.{label} }}}}", text) for key, one in annotations.items()}
    return {"labels": {"alertname": alertname, **rule["labels"], **labels}, "annotations": annotations}


def test_documented_configuration_sends_the_alerts_of_steadyscale_to_slack(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "operations.md")
    config = yaml.safe_load(next(one.content for one in page if one.file == "alertmanager.yaml"))
    with slack() as (hook, messages):
        (tmp_path / "url").write_text(hook)
        config["receivers"][1]["slack_configs"][0]["api_url_file"] = str(tmp_path / "url")
        config["route"]["routes"][0]["group_wait"] = "1s"
        with alertmanager(tmp_path, config) as url:
            conflict = [alert("SteadyscaleConflict", namespace="shop", name=name) for name in ("web", "worker")]
            post(url, alert("SomethingElse", namespace="shop"), *conflict)
            message = messages.get(timeout=60)

    assert message["channel"] == "#autoscaling"
    (attachment,) = message["attachments"]
    assert attachment["title"] == "FIRING: SteadyscaleConflict (2)"
    assert "*shop/web has a conflict with another autoscaler*" in attachment["text"]
    assert "*shop/worker has a conflict with another autoscaler*" in attachment["text"]
    assert messages.empty()
