"""Cost of the decision history of a fleet: API requests, bytes and CPU time, also in relation to other media.

    python -m bench.decision_history [--count 5000] [--changes 40] [--hours 2] [--control-plane]

Records the changes of ``--count`` autoscalers, each of which changes ``--changes`` times a day, in simulated time.
Requests go to a store in memory that counts them; with ``--control-plane`` also to a real API server, whose CPU time
per write is compared with that of a renewal of a Lease. CPU time is given as a ratio to that of ``decide``.

The same records are also written as JSON log lines and into SQLite, for comparison.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from adapter.config.model import DecisionHistory
from adapter.history.recorder import REPEAT_INTERVAL
from adapter.history.records import encode, record_of
from adapter.history.service import DecisionHistoryService
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from bench.process_stats import cpu
from tests.builders import (
    NOW,
    ReconcileInput,
    decide_once,
    external_reading,
    make_autoscaler,
    make_behavior,
    make_external_metric,
    make_fallback,
    make_observation,
    make_rules,
    make_spec,
    run_reconciles,
    unavailable_reading,
)
from tests.control_plane import programs
from tests.control_plane.cluster import control_plane

KINDS, PERIOD = 40, 15
Changes = list[tuple[Autoscaler, list[Decision]]]


class MemoryStore:
    """The part of a Kubernetes client that the store uses, in memory; counts requests and bytes."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    async def create(self, _path: str, body: dict[str, Any]) -> None:
        self._store("write", body)

    async def replace(self, _path: str, body: dict[str, Any]) -> None:
        self._store("write", body)

    async def request(self, _method: str, path: str) -> None:
        self.requests["delete"] += 1
        self.objects.pop(path.rpartition("/")[2], None)

    async def get(self, path: str) -> dict[str, Any]:
        found = self.objects[path.rpartition("/")[2]]
        self._count("get", found)
        return found

    async def get_bytes(self, _path: str, _query: Mapping[str, str], accept: str) -> bytes:
        del accept
        listed = {"items": [{"metadata": one["metadata"]} for one in self.objects.values()]}
        self._count("list", listed)
        return json.dumps(listed).encode()

    def stored_bytes(self) -> int:
        return sum(len(b64decode(one["binaryData"]["records"])) for one in self.objects.values())

    def _store(self, verb: str, body: dict[str, Any]) -> None:
        self._count(verb, body)
        self.objects[body["metadata"]["name"]] = body

    def _count(self, verb: str, content: object) -> None:
        self.requests[verb] += 1
        self.bytes[verb] += len(json.dumps(content))


class Recorded(NamedTuple):
    """What was recorded, and the CPU time that it took."""

    store: MemoryStore
    service: DecisionHistoryService
    records: list[tuple[str, Autoscaler, Decision]]
    record_seconds: float
    write_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="autoscalers")
    parser.add_argument("--changes", type=float, default=40, help="changes of an autoscaler per day")
    parser.add_argument("--hours", type=float, default=2)
    parser.add_argument("--control-plane", action="store_true", help="measure a real API server, too")
    options = parser.parse_args()
    recorded = asyncio.run(record(options.count, options.changes, options.hours))
    report(recorded, options)
    asyncio.run(report_reads(recorded, options.hours))
    report_media(recorded)
    if options.control_plane:
        asyncio.run(report_api_server(recorded))


async def record(count: int, changes: float, hours: float) -> Recorded:
    """Record the changes of a fleet in simulated time, with a write every 15 s as in the service."""
    kinds, chosen, store = changing_autoscalers(), random.Random(5), MemoryStore()  # noqa: S311 - a simulation
    now = NOW
    client = cast("KubeClient", store)
    service = DecisionHistoryService(client, "steadyscale", DecisionHistory(), lambda: now, "bench")
    service.recorder.on_leadership_acquired(())
    positions = [chosen.randrange(100) for _ in range(count)]
    records, record_seconds, write_seconds = [], 0.0, 0.0
    expected = count * changes / 86400 * PERIOD
    for step in range(int(hours * 3600 / PERIOD)):
        now = NOW + timedelta(seconds=PERIOD * step)
        changing = (
            range(count)
            if step == 0
            else chosen.sample(range(count), max(round(chosen.gauss(expected, expected**0.5)), 0))
        )
        batch = []
        for index in changing:
            autoscaler, decisions = kinds[index % KINDS]
            positions[index] += 1
            decision = decisions[positions[index] % len(decisions)]
            key = f"team-{index % 50}/service-{index}"
            batch.append((key, named(autoscaler, key), replace(decision, at=now)))
        started = time.process_time()
        for one in batch:
            service.recorder.on_decision(*one)
        recorded_at = time.process_time()
        await service.writer.write()
        record_seconds += recorded_at - started
        write_seconds += time.process_time() - recorded_at
        records += batch
    return Recorded(store, service, records, record_seconds, write_seconds)


def changing_autoscalers() -> Changes:
    """Return autoscalers of several kinds, each with decisions that differ from one to the next."""
    found: Changes = []
    for kind in range(KINDS):
        metric = make_external_metric(f"queue_{kind % 12}", average="30", fallback=make_fallback(12, 180, "UseMax"))
        behavior = make_behavior(down=make_rules(window=300)) if kind % 2 else None
        spec = make_spec(metric, minimum=2, maximum=24, behavior=behavior)
        values = random.Random(kind)  # noqa: S311 - a simulation
        inputs = [
            ReconcileInput(
                PERIOD * step,
                (unavailable_reading() if step % 50 > 45 else external_reading(round(values.uniform(40, 700), 1)),),
            )
            for step in range(200)
        ]
        found.append((make_autoscaler(spec), list(run_reconciles(spec, inputs, replicas=3))))
    return found


def named(autoscaler: Autoscaler, key: str) -> Autoscaler:
    namespace, _, name = key.partition("/")
    return replace(autoscaler, metadata=Metadata(name, namespace, uid=f"{hash(key):032x}"))


def report(recorded: Recorded, options: argparse.Namespace) -> None:
    store, count, hours = recorded.store, options.count, options.hours
    stored = sum(one.records for one in asyncio.run(recorded.service.reader._segments()))  # noqa: SLF001
    size, writes = store.stored_bytes(), store.requests["write"]
    per_day = size / stored * count * (options.changes + timedelta(days=1) / REPEAT_INTERVAL)
    decide_seconds = best(lambda: decide_once(make_spec(), make_observation()))
    unchanged = recorded.records[-1]
    skip_seconds = best(lambda: recorded.service.recorder.on_decision(*unchanged))
    print(f"{count} autoscalers, {options.changes:g} changes per autoscaler and day, {hours:g} hours simulated")
    line("records", f"{stored}, {size / stored:.1f} bytes each, in {len(store.objects)} segments")
    line("size per day", f"{per_day / 2**20:.1f} MiB; 32 MiB are {32 * 2**20 / per_day:.1f} days")
    line("write requests", f"{writes / hours / 60:.1f} per minute, {store.bytes['write'] / writes / 1024:.1f} KiB each")
    line("other requests", f"{(sum(store.requests.values()) - writes) / hours:.1f} per hour (list, delete)")
    line("CPU, unchanged", f"{skip_seconds / decide_seconds:.3f} of decide()")
    line("CPU, recorded", f"{recorded.record_seconds / len(recorded.records) / decide_seconds:.3f} of decide()")
    line("CPU, writing", f"{recorded.write_seconds / (hours * 3600):.2%} of one core")


def line(name: str, text: str) -> None:
    print(f"{name:<16} {text}")


async def report_reads(recorded: Recorded, hours: float) -> None:
    """Print what two questions cost on a replica that has cached nothing."""
    store, last = recorded.store, recorded.records[-1][2].at
    for name, ask in (("explain --at", "moment"), ("history", "period")):
        store.requests.clear()
        store.bytes.clear()
        client = cast("KubeClient", store)
        reader = DecisionHistoryService(client, "steadyscale", DecisionHistory(), lambda: last, "bench").reader
        key, start = recorded.records[0][0], last - timedelta(hours=hours / 2)
        await (
            reader.moment(key, start) if ask == "moment" else reader.period(key, start - timedelta(hours=hours), last)
        )
        total = sum(store.bytes.values()) / 2**20
        segments = f"{store.requests['get']} of {len(store.objects)} segments read"
        line(name, f"{segments}, {total:.2f} MiB with the list of all")


def report_media(recorded: Recorded) -> None:
    """Print size and CPU time of other media for the same records, relative to segments."""
    segments = recorded.store.stored_bytes(), recorded.record_seconds + recorded.write_seconds
    encoded = [(key, decision.at, encode(record_of(one, decision))) for key, one, decision in recorded.records]
    for name, write in (("log lines", _log_lines), ("SQLite", _sqlite)):
        started = time.process_time()
        size = write(encoded, recorded)
        seconds = time.process_time() - started
        ratios = f"{size / segments[0]:.1f} times the size, {seconds / segments[1]:.2f} times the CPU time"
        line(name, f"{ratios} of segments")


def _log_lines(_: list[tuple[str, datetime, bytes]], recorded: Recorded) -> int:
    return sum(
        len(msgspec.json.encode({"autoscaler": key, "record": record_of(autoscaler, decision)}))
        for key, autoscaler, decision in recorded.records
    )


def _sqlite(encoded: list[tuple[str, datetime, bytes]], _: Recorded) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "history.sqlite"
        database = sqlite3.connect(file)
        database.execute("create table records (key text, at real, record blob)")
        database.executemany(
            "insert into records values (?, ?, ?)",
            [(key, at.timestamp(), data) for key, at, data in encoded],
        )
        database.execute("create index by_key on records (key, at)")
        database.commit()
        database.close()
        return file.stat().st_size


async def report_api_server(recorded: Recorded) -> None:
    """Print the CPU time of a real API server for a write of a segment, relative to a renewal of a Lease."""
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), programs.require()) as plane:
        async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as kube:
            body = max(recorded.store.objects.values(), key=lambda one: len(one["binaryData"]["records"]))
            segment = {**body, "immutable": False, "metadata": {**body["metadata"], "name": "segment"}}
            lease = {"metadata": {"name": "lease"}, "spec": {"holderIdentity": "0", "leaseDurationSeconds": 15}}
            write = await _repeated(kube, plane.apiserver.pid, "/api/v1/namespaces/default/configmaps", segment)
            path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
            renewal = await _repeated(kube, plane.apiserver.pid, path, lease)
        ratio = write / renewal
        per_minute = 4 * ratio / 30
        line("API server, CPU", f"a write of a full segment costs {ratio:.1f} renewals of a Lease; 4 writes per minute")
        line("", f"cost {per_minute:.2f} of the 30 renewals per minute of the leader")


async def _repeated(kube: KubeClient, pid: int, collection: str, body: dict[str, Any], times: int = 300) -> float:
    stored = await kube.create(collection, body)
    started = cpu(pid)
    for index in range(times):
        annotations = {**stored["metadata"].get("annotations", {}), "count": str(index)}
        metadata = {**stored["metadata"], "annotations": annotations}
        stored = await kube.replace(f"{collection}/{metadata['name']}", {**stored, "metadata": metadata})
    return (cpu(pid) - started) / times


def measure(function: Callable[[], object]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


def best(function: Callable[[], object]) -> float:
    """Return the shortest CPU time of a call, of many rounds."""
    return min(measure(lambda: [function() for _ in range(200)]) for _ in range(20)) / 200


if __name__ == "__main__":
    main()
