"""A run with three `steadyscale serve` processes beside a real control plane."""

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Final

from tests.control_plane.cluster import ControlPlane, control_plane
from tests.faults.api import Api, Refused
from tests.faults.proxy import Fault
from tests.faults.random_run.actions import PROCESSES, TARGETS, Action, Profile, is_fault
from tests.faults.random_run.audit import audit_flags, read_writes
from tests.faults.random_run.convergence import not_converged
from tests.faults.random_run.generator import generate
from tests.faults.random_run.invariants import Limits, Violation, check
from tests.faults.random_run.metric_server import MetricServer
from tests.faults.random_run.outcome import Outcome
from tests.faults.random_run.processes import LEASE, Processes, running_processes
from tests.faults.random_run.record import Record, ScaleWrite, TargetWrite
from tests.faults.random_run.requests import DEPLOYMENTS, NAMESPACE, request_for
from tests.faults.rig import install_manifests
from tests.security.soak.environment import find_programs

FRESH: Final = "fresh"
LIMITS: Final = Limits(stale=116, without_faults=20)
"""As in virtual time, with five seconds more for a busy machine; without faults two reconciles and a watch event."""

_START_SECONDS: Final = 60.0
_FRESH_SECONDS: Final = 10.0


def profile_for(minutes: float) -> Profile:
    """Return a profile with short windows: the processes reconcile once per second."""
    return Profile(
        duration=minutes * 60, gap=1.5, fault=10, window=8, period=5, fallback=5, settle=150, stale=LIMITS.stale
    )


@dataclass
class RealRun:
    """The control plane, the processes and the metrics of one run."""

    plane: ControlPlane
    processes: Processes
    metrics: MetricServer
    faults: list[tuple[float, float]] = field(default_factory=list)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    """What ends or follows a fault, with its time."""
    _order: Iterator[int] = field(default_factory=count)

    def perform(self, action: Action) -> None:
        """Perform one action, and schedule the end of a fault."""
        if is_fault(action):
            self.faults.append((_now(), _now() + action.seconds))
        match action.kind:
            case "metric":
                self.metrics.values[action.subject] = action.detail["value"]
            case "stop" | "kill":
                name = self.processes.resolve(action.subject)
                if self.processes.stop(name, is_killed=action.kind == "kill"):
                    self._later(action.seconds, lambda: self.processes.start(name))
            case "freeze":
                frozen = self.processes.freeze(self.processes.resolve(action.subject))
                if frozen is not None:
                    self._later(action.seconds, lambda: self.processes.thaw(frozen))
            case "close watches" | "expire watches":
                for name in PROCESSES:
                    self._inject(name, Fault("watch=1", truncate=0), seconds=1)
            case "clock jump":
                pass  # all processes share the clock of this machine
            case _ if action.seconds:
                chances = random.Random(action.at)  # noqa: S311 - must be reproducible
                name = self.processes.resolve(action.subject)
                self._inject(name, Fault(**action.detail, chances=chances), action.seconds)
            case _:
                self._send(action)

    def wait_until(self, deadline: float) -> None:
        """Wait until a time of the monotonic clock, and end the faults that are due before."""
        while True:
            while self._due and self._due[0][0] <= time.monotonic():
                heappop(self._due)[2]()
            following = min(deadline, self._due[0][0]) if self._due else deadline
            if (remaining := following - time.monotonic()) > 0:
                time.sleep(remaining)
            elif following == deadline:
                return

    def wait_for_faults(self) -> None:
        """Wait until all faults have ended."""
        while self._due:
            self.wait_until(self._due[0][0])

    def record(self) -> Record:
        """Return the record up to now."""
        log = self.plane.folder / "audit.log"
        return Record(read_writes(log, self.processes.identities, LEASE), self.faults)

    def replicas(self) -> dict[str, int]:
        """Return the replicas of all targets."""
        found = Api(self.plane).get(DEPLOYMENTS)["items"]
        return {one["metadata"]["name"]: one["spec"]["replicas"] for one in found}

    def _inject(self, name: str, fault: Fault, seconds: float) -> None:
        faults = self.processes.proxies[name].faults
        faults.append(fault)
        self._later(seconds, lambda: faults.remove(fault))

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        heappush(self._due, (time.monotonic() + seconds, next(self._order), work))

    def _send(self, action: Action) -> None:
        request = request_for(action, _now())
        assert request is not None
        kind = "application/merge-patch+json" if request.method == "PATCH" else "application/json"
        with suppress(Refused):  # it exists already, or no longer
            Api(self.plane).request(request.method, request.path, request.body, kind)


def run_real(seed: int, minutes: float) -> Outcome:
    """Run the actions of a seed, wait until everything has settled, and check the record."""
    profile = profile_for(minutes)
    actions = generate(seed, profile)
    with tempfile.TemporaryDirectory(prefix="random-run-") as folder, _opened(Path(folder)) as run:
        for name in PROCESSES:
            run.processes.start(name)
        run.processes.wait_for_leader(PROCESSES, _START_SECONDS)
        if run.processes.problems:
            raise SystemExit("\n".join(map(str, run.processes.problems)))
        started = time.monotonic()
        for action in actions:
            run.wait_until(started + action.at)
            run.perform(action)
        run.wait_for_faults()
        time.sleep(profile.window)  # no earlier recommendation counts any more
        problems = _settle(run, profile.settle)
        run.processes.check_logs()
        record = run.record()
        result = check(record, LIMITS)
        result.violations += [*run.processes.problems, *problems, *_incomplete(record, run.replicas())]
        return Outcome(seed, (time.monotonic() - started) / 60, actions, record, result)


def _settle(run: RealRun, seconds: float) -> list[Violation]:
    """Wait until every target has its replicas; then a process without any state must change none of them."""
    deadline = time.monotonic() + seconds
    while found := not_converged(run.record(), run.replicas(), run.metrics.values, _now(), LIMITS.stale):
        if time.monotonic() > deadline:
            run.processes.check_running()
            return found
        time.sleep(1)
    for name in PROCESSES:
        run.processes.stop(name)
    run.processes.start(FRESH)
    run.processes.wait_for_leader((FRESH,), _START_SECONDS)
    time.sleep(_FRESH_SECONDS)
    later = [one for one in run.record().writes if isinstance(one, ScaleWrite) and one.writer.startswith(FRESH)]
    return [Violation(one.at, "convergence", f"a new process wrote {one}") for one in later]


def _incomplete(record: Record, replicas: dict[str, int]) -> list[Violation]:
    """Return the targets whose stored replicas are not those of the last recorded write."""
    resizes = [one for one in record.writes if isinstance(one, ScaleWrite | TargetWrite)]
    last = {one.target: one.replicas for one in resizes if one.target in TARGETS}
    known = {target: number for target, number in last.items() if number is not None}
    return [] if known == replicas else [Violation(_now(), "record", f"{known} recorded, {replicas} stored")]


@contextmanager
def _opened(folder: Path) -> Iterator[RealRun]:
    with ExitStack() as stack:
        plane = stack.enter_context(control_plane(folder, find_programs(), apiserver_flags=audit_flags(folder)))
        install_manifests(plane)
        _allow_short_fallbacks(plane)
        plane.kubectl("create", "namespace", NAMESPACE)
        metrics = stack.enter_context(MetricServer().serving())
        config = folder / "config.yaml"
        config.write_text(json.dumps(_config(metrics.url)))
        yield RealRun(plane, stack.enter_context(running_processes(plane, config)), metrics)


def _config(url: str) -> dict[str, object]:
    rules = [
        {
            "name": f"m{number}",
            "backend": "values",
            "interval": "1s",
            "parameters": {"path": f"/m{number}", "value": "value"},
        }
        for number in range(len(TARGETS))
    ]
    breaker = {"openDuration": "1s", "maxOpenDuration": "2s"}
    backend = {"http": {"url": url, "circuitBreaker": breaker}}
    return {"log": {"format": "text"}, "backends": {"values": backend}, "rules": rules}


def _allow_short_fallbacks(plane: ControlPlane) -> None:
    """Lower the minimum of failureDurationSeconds in the CRD."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/metrics/items/properties/external"
    minimum = f"{path}/properties/fallback/properties/failureDurationSeconds/minimum"
    patch = json.dumps([{"op": "replace", "path": minimum, "value": 2}])
    plane.kubectl("patch", "crd", "podautoscalers.steadyscale.dev", "--type=json", "-p", patch)
    time.sleep(2)  # the API server applies the change with a delay


def _now() -> float:
    return time.time()  # noqa: TID251 - the times of the audit log
