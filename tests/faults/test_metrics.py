"""Metric systems that flap, hang and send invalid responses: replicas stay until a value is valid."""

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from tests.faults.rig import FaultRig
from tests.integration.scaling import autoscaler, deployment, external
from tests.integration.service import until

pytestmark = pytest.mark.faults

GZIP: Final = {"Content-Encoding": "gzip"}
FAULTS: Final = ("html", "bomb", "nan", "types", "truncated", "half-open", "negative")


def result(value: object, at: float) -> bytes:
    """Return the response of Prometheus to an instant query with one series."""
    data = {"resultType": "vector", "result": [{"metric": {}, "value": [at, value]}]}
    return json.dumps({"status": "success", "data": data}).encode()


@dataclass
class FaultyPrometheus:
    """A server whose first path segment selects the fault of its responses while ``is_faulty``."""

    value: str = "40"
    is_faulty: bool = False
    flapping: bool = False
    url: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)

    def respond(self, fault: str, at: float, turn: int) -> tuple[int, dict[str, str], bytes]:
        if self.flapping and turn % 2:
            return 503, {}, b"unavailable"
        if not self.is_faulty:
            return 200, {}, result(self.value, at)
        return FAULT_RESPONSES.get(fault, lambda _: (200, {}, b""))(at)


FAULT_RESPONSES: Final[dict[str, Any]] = {
    "html": lambda _: (200, {}, b"<html>please log in</html>"),
    "bomb": lambda _: (200, GZIP, gzip.compress(bytes(2**27))),
    "nan": lambda at: (200, {}, result("NaN", at)),
    "types": lambda at: (200, {}, result({"many": [1]}, at)),
    "truncated": lambda at: (200, {"Content-Length": "9999"}, result("60", at)),
    "negative": lambda at: (200, {}, result("-60", at)),
}


@contextmanager
def faulty_prometheus() -> Iterator[FaultyPrometheus]:
    server_state, turns = FaultyPrometheus(), iter(range(10**9))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fault = self.path.split("/")[1]
            if fault == "half-open" and server_state.is_faulty:
                server_state.stopped.wait(120)
                return
            status, headers, body = server_state.respond(fault, time.time(), next(turns))  # noqa: TID251 - as Prometheus
            self.send_response(status)
            for name, text in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server_state.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server_state
    finally:
        server_state.stopped.set()
        server.shutdown()
        server.server_close()


def configure(rig: FaultRig, url: str, *names: str) -> None:
    """Configure a backend, a rule, a Deployment and an autoscaler for each name."""
    settings = {"sampleTimes": False}
    backends = {name: {"prometheus": {"url": f"{url}/{name}", **settings}} for name in names}
    rule = {"query": "queue", "namespace": {}, "aggregation": "one", "interval": "1s"}
    rules = [{"name": name, "backend": name, **rule} for name in names]
    rig.extra_config = {"backends": backends, "rules": rules}
    rig.set()
    rig.apply(*(deployment(name, 8) for name in names), *(autoscaler(name, external(name)) for name in names))
    for name in names:
        rig.wait_for_condition("ScalingActive", "True", "ValidMetricFound", name, within=120)


def test_invalid_responses_of_prometheus_change_no_replicas(faulty: FaultRig) -> None:
    with faulty_prometheus() as prometheus:
        configure(faulty, prometheus.url, *FAULTS)
        prometheus.is_faulty = True
        for fault in FAULTS:
            faulty.wait_for_condition("ScalingActive", "False", "FailedGetExternalMetric", fault, within=60)
        time.sleep(10)
        assert {fault: faulty.replicas(fault) for fault in FAULTS} == dict.fromkeys(FAULTS, 8)
        prometheus.value, prometheus.is_faulty = "60", False
        prometheus.stopped.set()
        for fault in FAULTS:
            faulty.wait_for_replicas(12, fault, within=60)


def test_prometheus_that_fails_every_second_query_scales_by_the_other_queries(faulty: FaultRig) -> None:
    with faulty_prometheus() as prometheus:
        configure(faulty, prometheus.url, "queue-depth")
        prometheus.flapping = True
        seen = {faulty.replicas("queue-depth")}
        prometheus.value = "60"
        until(lambda: faulty.replicas("queue-depth") == 12, "12 replicas", within=90)
        for _ in range(20):
            time.sleep(0.5)
            seen.add(faulty.replicas("queue-depth"))
        assert seen <= {8, 12}


def test_name_that_does_not_resolve_affects_only_its_own_metrics(faulty: FaultRig) -> None:
    with faulty_prometheus() as prometheus:
        configure(faulty, prometheus.url, "good", "gone")
        faulty.extra_config["backends"]["gone"]["prometheus"]["url"] = "http://prometheus.invalid:9090"
        faulty.set()
        faulty.wait_for_condition("ScalingActive", "False", "FailedGetExternalMetric", "gone", within=60)
        prometheus.value = "60"
        faulty.wait_for_replicas(12, "good", within=60)
        assert faulty.replicas("gone") == 8
