"""The well-behaved tenant: reads its metrics through the API server and scales a Deployment, and checks both."""

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from tests.integration.scaling import autoscaler, deployment, external
from tests.prometheus.target import Target
from tests.security.soak.api import GROUP, METRICS, Api
from tests.security.soak.http_backend import Documents

NAMESPACE: Final = "shop"
CANARY: Final = 777777
KEYWORDS: Final = ("offset", "and", "or", "unless", "bool", "atan2", "group_left", "group_right", "by", "without", "on")
READ_TIMEOUT: Final = 10.0
"""An HPA reads every 15 s; a read that takes longer is lost for it."""
MAX_AGE: Final = 15.0
"""How old a value may be: scrape interval, refresh interval, and the time that a busy machine needs."""
_DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


def external_metric(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "steadyscale.dev/v1beta1", "kind": "ExternalMetric", "metadata": metadata, "spec": spec}


@dataclass
class Measurement:
    """The results of the run."""

    reads: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Reads without a value, by reason."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Reads with a value that the metric did not have at the time."""
    lost_at: list[float] = field(default_factory=list)
    """Seconds from the first read to each lost one."""
    latencies: list[float] = field(default_factory=list)
    steps: int = 0
    lost_steps: int = 0
    scale_delays: list[float] = field(default_factory=list)


class Tenant:
    """Objects in the namespace ``shop``, their values over time, and the reads."""

    def __init__(self, editor: Api, reader: Api, target: Target, documents: Documents, seed: int) -> None:
        self._editor, self._reader, self._target, self._documents = editor, reader, target, documents
        self._random = random.Random(seed)  # noqa: S311 - test data
        self._history: dict[str, list[tuple[float, float]]] = {"orders": [], "jobs": []}
        self._replicas, self._started = 2, 0.0
        self.measurement = Measurement()
        self.set_replicas(2)

    def set_replicas(self, replicas: int) -> None:
        """Set both metrics to the values that need this many replicas."""
        self._replicas = replicas
        now = time.monotonic()
        self._history["orders"].append((now, replicas * 10))
        self._history["jobs"].append((now, replicas * 7))
        self._documents.jobs = replicas * 7
        names = (f'{name}{{namespace="{NAMESPACE}",canary="{NAMESPACE}"}} {CANARY}\n' for name in KEYWORDS)
        tenants = (f'orders{{namespace="mallory-{number}"}} {number}\n' for number in range(1, 4))
        own = f'orders{{namespace="{NAMESPACE}",queue="a"}} {replicas * 10}\n'
        self._target.text = own + "".join(tenants) + "".join(names)

    async def create(self) -> None:
        """Create the metrics, the Deployment and its autoscaler."""
        # A range, because on a busy machine Prometheus may miss a scrape, and the series would be stale.
        orders = external_metric(
            "orders", backend="main", query="sum(last_over_time(orders[1m]))", interval="5s", aggregation="one"
        )
        jobs = external_metric("jobs", backend="jobs", parameters={"path": "/shop", "value": "jobs"}, interval="5s")
        at_once = {"policies": [{"type": "Pods", "value": 20, "periodSeconds": 1}]}
        behavior = {"scaleUp": at_once, "scaleDown": {"stabilizationWindowSeconds": 0}}
        scaler = autoscaler("web", external("orders", 10), behavior=behavior)
        metrics, scalers = (f"{GROUP}/namespaces/{NAMESPACE}/{kind}" for kind in ("externalmetrics", "podautoscalers"))
        created = ((metrics, orders), (metrics, jobs), (_DEPLOYMENTS, deployment("web", 2)), (scalers, scaler))
        for path, item in created:
            await self._create(path, item)

    async def _create(self, path: str, item: dict[str, Any]) -> None:
        """Create an object; retry while the role edit does not have the permissions of Steadyscale's roles yet."""
        for _ in range(60):
            status, body = await self._editor.send("POST", path, item)
            if status != 403:
                break
            await asyncio.sleep(0.5)
        assert status == 201, body

    async def read_all(self, rate: float) -> None:
        """Start ``rate`` reads per second, alternating between the metrics, until cancelled; then finish them."""
        running: set[asyncio.Task[None]] = set()
        self._started = started = time.monotonic()
        try:
            while True:
                name = ("orders", "jobs")[self.measurement.reads % 2]
                task = asyncio.create_task(self._read(name))
                running.add(task)
                task.add_done_callback(running.discard)
                self.measurement.reads += 1
                await asyncio.sleep(max(0, started + self.measurement.reads / rate - time.monotonic()))
        finally:
            await asyncio.gather(*running)

    async def is_served(self) -> bool:
        """Return whether both metrics have a correct value."""
        results = [await self._outcome(name) for name in self._history]
        return all(kind == "correct" for kind, _ in results)

    async def scale_all(self, interval: float) -> None:
        """Change the values every ``interval`` seconds and wait for the replicas, until cancelled."""
        while True:
            started = time.monotonic()
            self.set_replicas(self._random.choice([number for number in range(1, 10) if number != self._replicas]))
            try:
                async with asyncio.timeout(interval):
                    await self._has_replicas(self._replicas)
                self.measurement.scale_delays.append(time.monotonic() - started)
            except TimeoutError:
                self.measurement.lost_steps += 1
            self.measurement.steps += 1
            await asyncio.sleep(max(0, started + interval - time.monotonic()))

    async def _has_replicas(self, replicas: int) -> None:
        while await self.replicas() != replicas:  # noqa: ASYNC110 - the API server is polled
            await asyncio.sleep(0.5)

    async def replicas(self) -> int | None:
        """Return the replicas of the Deployment; None if the API server does not respond."""
        try:
            status, body = await self._editor.send("GET", f"{_DEPLOYMENTS}/web")
        except (aiohttp.ClientError, TimeoutError):
            return None
        return int(json.loads(body)["spec"]["replicas"]) if status == 200 else None

    async def _read(self, name: str) -> None:
        started = time.monotonic()
        kind, detail = await self._outcome(name)
        self.measurement.latencies.append(time.monotonic() - started)
        if kind == "lost":
            self.measurement.lost[detail] += 1
            self.measurement.lost_at.append(started - self._started)
        elif kind == "wrong":
            self.measurement.wrong[detail] += 1

    async def _outcome(self, name: str) -> tuple[str, str]:
        started = time.monotonic()
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                status, body = await self._reader.send("GET", f"{METRICS}/namespaces/{NAMESPACE}/{name}")
        except TimeoutError:
            return "lost", f"{name}: no response within {READ_TIMEOUT:g} s"
        except aiohttp.ClientError as error:
            return "lost", f"{name}: {type(error).__name__}"
        if status != 200:
            return "lost", f"{name}: {status} {_message(body)}"
        items = json.loads(body)["items"]
        if len(items) != 1:
            return "wrong", f"{name}: {len(items)} items"
        value = float(items[0]["value"])
        if value not in self._values(name, started - MAX_AGE):
            return "wrong", f"{name}: older than {MAX_AGE:g} s" if value < CANARY else f"{name}: of another tenant"
        return "correct", ""

    def _values(self, name: str, since: float) -> set[float]:
        """Return the values that a metric had since a time."""
        history = self._history[name]
        later = [value for at, value in history if at > since]
        before = [value for at, value in history if at <= since]
        return {*later, *before[-1:]}


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))[:110].strip()
    except ValueError:
        return body[:110].decode(errors="replace").strip()
