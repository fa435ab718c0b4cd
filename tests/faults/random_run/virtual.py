"""A run in virtual time: three controller processes in one event loop, beside the in-memory API server."""

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import CollectorRegistry

from adapter.fakecluster.api_errors import ApiError
from adapter.fakecluster.cluster import loop_clock, loop_time
from adapter.process import ProcessClock
from autoscaler.controller.run import ControllerProcess
from autoscaler.settings import ControllerOptions, Settings
from autoscaler.telemetry import ControllerTelemetry
from tests.controller.harness import FakeExternalMetrics, definition
from tests.faults.proxy import Fault
from tests.faults.random_run.actions import LEADER, PROCESSES, Action, Profile, is_fault
from tests.faults.random_run.convergence import not_converged
from tests.faults.random_run.freezable_loop import FreezableLoop, context_of, new_event_loop
from tests.faults.random_run.generator import generate
from tests.faults.random_run.invariants import Limits, Violation, check
from tests.faults.random_run.outcome import Outcome
from tests.faults.random_run.record import LeaseWrite, ScaleWrite, SpecWrite, TargetWrite
from tests.faults.random_run.requests import AUTOSCALERS, DEPLOYMENTS, request_for
from tests.faults.random_run.virtual_cluster import VirtualCluster

LIMITS: Final = Limits(stale=111, without_faults=1)
"""90 seconds is the stated bound; two writes of up to 10 seconds may follow."""

PROFILE: Final = Profile(
    duration=600, gap=5, fault=20, window=60, period=60, fallback=180, settle=900, stale=LIMITS.stale
)
FRESH: Final = "fresh"
_OPTIONS: Final = ControllerOptions(
    settings=Settings(downscale_stabilization=timedelta(seconds=60)), retry_period=timedelta(seconds=4)
)
"""With the default retry period most requests would be for the Lease."""

_CHECK_SECONDS: Final = 15.0
_FRESH_SECONDS: Final = 60.0


@dataclass
class Machine:
    """The machine of a process, whose wall clock can be wrong."""

    error: timedelta = timedelta(0)

    def wall_clock(self) -> datetime:
        return loop_clock() + self.error

    def process_clock(self) -> ProcessClock:
        """Return the clock of a process that starts now and knows the time of the API server."""
        clock = ProcessClock(self.wall_clock, loop_time)
        clock.align(loop_clock())
        return clock


class VirtualRun:
    """The processes, the API server and the metrics of one run."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.metrics = FakeExternalMetrics(clock=cluster.clock)
        self.problems: list[Violation] = []
        self._machines = {name: Machine() for name in (*PROCESSES, FRESH)}
        self._running: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """The identity and the task of each process by its name; a restarted process has a new identity."""
        self._starts = 0
        self._timers: set[asyncio.Task[None]] = set()

    @property
    def now(self) -> float:
        return self.cluster.clock().timestamp()

    def start(self, name: str) -> None:
        self._starts += 1
        identity = f"{name}-{self._starts}"
        process = ControllerProcess(
            self.cluster.connection_of(identity),
            self.metrics,
            _OPTIONS,
            ControllerTelemetry(CollectorRegistry()),
            self._machines[name].process_clock(),
            identity,
        )
        task = asyncio.create_task(process.run(), name=identity, context=context_of(identity))
        self._running[name] = identity, task

    async def stop(self, name: str, *, is_killed: bool = False) -> None:
        """Stop a process like a signal; a killed process cannot write any more."""
        identity, task = self._running.pop(name)
        if is_killed:
            self.cluster.links[identity].add(Fault("", stall=True))
        if task.done():
            self.problems.append(Violation(self.now, "process", f"{identity} ended: {task.exception()!r}"))
        _loop().thaw(identity)
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task

    async def close(self) -> None:
        """Cancel everything that is still running."""
        for identity, _ in self._running.values():
            _loop().thaw(identity)
        for task in (*self._timers, *(task for _, task in self._running.values())):
            task.cancel()
        await asyncio.gather(*self._timers, *(task for _, task in self._running.values()), return_exceptions=True)

    def perform(self, action: Action) -> None:
        """Perform one action; faults end by themselves."""
        if is_fault(action):
            self.cluster.record.faults.append((self.now, self.now + action.seconds))
        match action.kind:
            case "metric":
                value = action.detail["value"]
                self.metrics.set(action.subject, "no value" if value is None else value)
            case "stop" | "kill":
                self._later(self._restart(action))
            case "close watches":
                self.cluster.close_watches()
            case "expire watches":
                self.cluster.expire_watches()
            case "freeze":
                self._later(self._freeze(action))
            case "clock jump":
                self._machines[self._name(action.subject)].error += timedelta(seconds=action.detail["seconds"])
            case _ if action.seconds:
                self._later(self._inject(action, self._fault(action)))
            case _:
                self._send(action)

    def _name(self, subject: str) -> str:
        """Return the name of the process that an action is about."""
        if subject != LEADER:
            return subject
        last = next((one for one in reversed(self.cluster.record.writes) if isinstance(one, LeaseWrite)), None)
        return last.writer.partition("-")[0] if last is not None else PROCESSES[0]

    def _fault(self, action: Action) -> Fault:
        return Fault(**action.detail, chances=random.Random(action.at))  # noqa: S311 - must be reproducible

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._timers.add(task)
        task.add_done_callback(self._timers.discard)

    async def _restart(self, action: Action) -> None:
        name = self._name(action.subject)
        if name not in self._running:
            return
        await self.stop(name, is_killed=action.kind == "kill")
        await asyncio.sleep(action.seconds)
        self.start(name)

    async def _freeze(self, action: Action) -> None:
        name = self._name(action.subject)
        if name not in self._running:
            return
        identity, _ = self._running[name]
        _loop().freeze(identity)
        await asyncio.sleep(action.seconds)
        _loop().thaw(identity)

    async def _inject(self, action: Action, fault: Fault) -> None:
        name = self._name(action.subject)
        if name not in self._running:
            return
        link = self.cluster.links[self._running[name][0]]
        link.add(fault)
        await asyncio.sleep(action.seconds)
        link.remove(fault)

    def _send(self, action: Action) -> None:
        """Send the request of another client, and record what it changed."""
        request = request_for(action, self.now)
        assert request is not None
        try:
            if request.method == "POST":
                content = self.cluster.create(request.path, request.body or {})
            elif request.method == "PATCH":
                content = self.cluster.patch(request.path, request.body or {})
            else:
                self.cluster.delete(request.path)
                content = {}
        except ApiError:
            return  # it exists already, or no longer
        spec, writes = content.get("spec"), self.cluster.record.writes
        if request.path.startswith(AUTOSCALERS):
            uid = content["metadata"]["uid"] if content else ""
            writes.append(SpecWrite(self.now, action.subject, uid, spec))
        else:
            writes.append(TargetWrite(self.now, action.subject, spec["replicas"] if spec else None))

    def replicas(self) -> dict[str, int]:
        """Return the replicas of all targets."""
        return {one["metadata"]["name"]: one["spec"]["replicas"] for one in self.cluster.list(DEPLOYMENTS)}

    def values(self) -> dict[str, int | None]:
        """Return the values of all metrics; None if a metric cannot be read."""
        return {
            name: None if isinstance(value, str) else value[0] // 1000 for name, value in self.metrics.values.items()
        }

    async def wait_for_faults(self) -> None:
        """Wait until all faults have ended."""
        while self._timers:
            await asyncio.wait(self._timers)


@asynccontextmanager
async def _opened() -> AsyncIterator[VirtualRun]:
    async with VirtualCluster.serving() as cluster:
        cluster.install_crd(definition())
        run = VirtualRun(cluster)
        try:
            yield run
        finally:
            await run.close()


def run_seed(seed: int, profile: Profile = PROFILE) -> Outcome:
    """Run one seed in virtual time."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(run_virtual(seed, profile))


async def run_virtual(seed: int, profile: Profile) -> Outcome:
    """Run the actions of a seed, wait until everything has settled, and check the record."""
    random.seed(seed)  # jitter of the controller, shares of faults
    actions = generate(seed, profile)
    async with _opened() as run:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for name in PROCESSES:
            run.start(name)
        for action in actions:
            await asyncio.sleep(max(begin + action.at - loop.time(), 0))
            run.perform(action)
        await run.wait_for_faults()
        await asyncio.sleep(profile.window)  # no earlier recommendation counts any more
        problems = await _settle(run, profile.settle)
        result = check(run.cluster.record, LIMITS)
        result.violations += [*run.problems, *problems]
        return Outcome(seed, (loop.time() - begin) / 60, actions, run.cluster.record, result)


async def _settle(run: VirtualRun, seconds: float) -> list[Violation]:
    """Wait until every target has its replicas; then a process without any state must change none of them."""
    record, deadline = run.cluster.record, run.now + seconds
    while found := not_converged(record, run.replicas(), run.values(), run.now, LIMITS.stale):
        if run.now > deadline:
            return found
        await asyncio.sleep(_CHECK_SECONDS)
    for name in PROCESSES:
        await run.stop(name)
    written = len(record.writes)
    run.start(FRESH)
    await asyncio.sleep(_FRESH_SECONDS)
    later = [one for one in record.writes[written:] if isinstance(one, ScaleWrite)]
    return [Violation(one.at, "convergence", f"a new process wrote {one}") for one in later]


def _loop() -> FreezableLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FreezableLoop)
    return loop
