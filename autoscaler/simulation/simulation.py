"""The simulation: a fold of ``decide`` over time, with the history, status and next reconcile of the controller.

Nothing of the algorithm is implemented here. Every step computes what the metrics APIs and the target's scale would
show at that moment, calls ``decide`` like ``controller.reconcile``, and applies the result to the workload.
The status of one decision is the stored status of the next one. Writes always succeed and take no time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from autoscaler.algorithm.decide import decide
from autoscaler.algorithm.next_reconcile import next_delay
from autoscaler.algorithm.stale_zero import clear_stale_zero
from autoscaler.controller.reconcile_plan import make_plan
from autoscaler.settings import FeatureGates, Settings
from autoscaler.simulation.backlog import backlog_at
from autoscaler.simulation.demand import demand_of
from autoscaler.simulation.metric_history import Outage
from autoscaler.simulation.readings import outage_of, per_replica, reading_of
from autoscaler.simulation.replicas import ReadyTimes, containers_of, count_ready, pods_of, rescaled
from autoscaler.simulation.scenario import MAX_DECISIONS, MAX_REPLICAS, Scenario, WorkloadModel
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.observation import Observation, Pod, Reading, ScaleTarget
from autoscaler.types.record import Record
from autoscaler.types.spec import EXTERNAL, OBJECT, Metric

_SELECTOR: Final = "app=simulated"
_MIN_PERIOD: Final = timedelta(seconds=1)
_READY_BEFORE: Final = 3600.0
"""Seconds before the start at which the first replicas became ready."""


class InvalidScenario(ValueError):
    """A scenario that cannot be simulated; the arguments are the problems."""


class SimulationState(Record):
    """Everything that one decision passes on to the next one."""

    now: datetime
    """The time of the next decision."""

    autoscaler: Autoscaler
    history: History
    replicas: ReadyTimes
    backlogs: tuple[float, ...]
    """Of the model ``queue``: the backlog of each metric after the previous decision."""

    since: float
    """When the backlogs were computed."""


class SimulatedStep(Record):
    """One decision of a simulation, and the workload at its time."""

    decision: Decision
    values: tuple[int | None, ...]
    """The true value of each metric in thousandths, also in an outage; None in a gap of the history."""

    demand: int | None
    """The replicas that the true values ask for; None if no metric has a value."""

    ready: int
    """The ready replicas after the decision."""

    state: SimulationState


class Workload(NamedTuple):
    """The workload at one moment, and what the metrics APIs would respond about it."""

    values: tuple[int | None, ...]
    """The true value of each metric in thousandths; None in a gap of the history."""

    ready: int
    target: ScaleTarget
    pods: tuple[Pod, ...]
    readings: tuple[Reading, ...]


def fold(
    autoscaler: Autoscaler,
    observation: Observation,
    history: History,
    settings: Settings,
    gates: FeatureGates,
    now: datetime,
) -> tuple[Decision, Autoscaler]:
    """Decide once as the controller does; return the decision, and the autoscaler with its status for the next one."""
    decision = decide(
        autoscaler=autoscaler, observation=observation, history=history, settings=settings, gates=gates, now=now
    )
    decision = clear_stale_zero(decision, in_flight=False)
    return decision, replace(autoscaler, status=decision.status)


class Simulation:
    """A scenario with its reconcile plan. Raises ``InvalidScenario`` before anything is simulated."""

    def __init__(self, scenario: Scenario) -> None:
        plan = make_plan(scenario.autoscaler, scenario.settings, scenario.gates)
        metrics = plan.spec.metrics or ()
        problems = [*plan.problems, *_problems(scenario)]
        if not problems and scenario.model not in (WorkloadModel.PER_POD, WorkloadModel.MIXED):
            kinds = sorted({metric.type for metric in metrics} - {EXTERNAL, OBJECT})
            problems += [f"{kind} metrics depend on the replicas: use the model per-pod or mixed" for kind in kinds]
        if problems:
            raise InvalidScenario(*problems)
        self.scenario = scenario
        self.metrics = metrics
        self._spec = plan.spec
        self._needs_pods = plan.needs_pods
        self._startup = scenario.startup.total_seconds()
        self._requests = tuple(scenario.requests.items())
        self._containers = containers_of(metrics)
        self._is_per_pod = tuple(_is_per_pod(metric, scenario.model) for metric in metrics)
        self._known_demand: tuple[object, int | None] = (None, None)

    def first_state(self) -> SimulationState:
        """Return the state before the first decision."""
        scenario, since = self.scenario, self.scenario.start.timestamp()
        return SimulationState(
            now=scenario.start.astimezone(UTC),
            autoscaler=replace(scenario.autoscaler, spec=self._spec),
            history=History(),
            replicas=(since - _READY_BEFORE,) * scenario.replicas,
            backlogs=(0.0,) * len(self.metrics),
            since=since,
        )

    def run(self) -> Iterator[SimulatedStep]:
        """Yield the decisions from the start to the end of the scenario."""
        return self.run_from(self.first_state(), self.scenario.end, self.scenario.outages)

    def run_from(self, state: SimulationState, end: datetime, outages: tuple[Outage, ...]) -> Iterator[SimulatedStep]:
        """Yield the decisions from a state until a time."""
        while state.now < end:
            step = self.step(state, outages)
            yield step
            state = step.state

    def step(self, state: SimulationState, outages: tuple[Outage, ...] = ()) -> SimulatedStep:
        """Decide at the time of the state, and apply the decision to the workload."""
        scenario, now, time = self.scenario, state.now, state.now.timestamp()
        backlogs = self._backlogs(state, time)
        workload = self._workload(now, time, state.replicas, backlogs)
        is_outage = bool(outages) and any(outage.start <= time < outage.end for outage in outages)
        readings = tuple(map(outage_of, self.metrics)) if is_outage else workload.readings
        observation = Observation(workload.target, workload.pods, readings)
        decision, autoscaler = fold(
            state.autoscaler, observation, state.history, scenario.settings, scenario.gates, now
        )
        replicas, ready = state.replicas, workload.ready
        if decision.scale_to is not None:
            replicas = rescaled(replicas, decision.scale_to, time + self._startup)
            ready = count_ready(replicas, time)
        following = SimulationState(
            now=now + next_delay(decision, scenario.settings.sync_period),
            autoscaler=autoscaler,
            history=decision.history,
            replicas=replicas,
            backlogs=backlogs,
            since=time,
        )
        return SimulatedStep(decision, workload.values, self._demand(workload, now), ready, following)

    def demand_at(self, now: datetime, replicas: int) -> int | None:
        """Return what the true values ask for at a time, if this many replicas are ready and there is no backlog."""
        time = now.timestamp()
        ready_times = (time - _READY_BEFORE,) * replicas
        return self._demand(self._workload(now, time, ready_times, (0.0,) * len(self.metrics)), now)

    def _workload(self, now: datetime, time: float, replicas: ReadyTimes, backlogs: tuple[float, ...]) -> Workload:
        ready, count = count_ready(replicas, time), len(replicas)
        values = self._values(backlogs, time, ready)
        pods: tuple[Pod, ...] = ()
        if self._needs_pods:
            pods = pods_of(replicas, ready, self.scenario.startup, self._requests, self._containers)
        readings = [
            reading_of(metric, milli, pods, ready, now) for metric, milli in zip(self.metrics, values, strict=True)
        ]
        return Workload(values, ready, ScaleTarget(count, count, _SELECTOR), pods, tuple(readings))

    def _backlogs(self, state: SimulationState, time: float) -> tuple[float, ...]:
        if self.scenario.model is not WorkloadModel.QUEUE or time == state.since:
            return state.backlogs
        rate = self.scenario.service_rate
        return tuple(
            backlog_at(backlog, state.since, time, arrivals, state.replicas, rate)
            for backlog, arrivals in zip(state.backlogs, self.scenario.histories, strict=True)
        )

    def _values(self, backlogs: tuple[float, ...], time: float, ready: int) -> tuple[int | None, ...]:
        """Return the true values of the metrics."""
        if self.scenario.model is WorkloadModel.QUEUE:
            return tuple(round(backlog * 1000) for backlog in backlogs)
        values = [history.at(time) for history in self.scenario.histories]
        if not any(self._is_per_pod):
            return tuple(values)
        pairs = zip(values, self._is_per_pod, strict=True)
        return tuple(per_replica(milli, ready) if is_per_pod else milli for milli, is_per_pod in pairs)

    def _demand(self, workload: Workload, now: datetime) -> int | None:
        """Return the demand; computed only if a value or the workload differs from the last decision."""
        target = workload.target
        key = (workload.values, target.replicas, workload.ready)
        if self._known_demand[0] != key:
            settings, gates = self.scenario.settings, self.scenario.gates
            demand = demand_of(self.metrics, workload.readings, target, workload.pods, settings, gates, now)
            self._known_demand = (key, demand)
        return self._known_demand[1]


def _is_per_pod(metric: Metric, model: WorkloadModel) -> bool:
    if model is WorkloadModel.MIXED:
        return metric.type not in (EXTERNAL, OBJECT)
    return model is WorkloadModel.PER_POD


def _problems(scenario: Scenario) -> Iterator[str]:
    metrics = len(scenario.autoscaler.spec.metrics or ()) or 1
    if len(scenario.histories) != metrics:
        yield f"{len(scenario.histories)} histories for {metrics} metrics"
    if scenario.settings.sync_period < _MIN_PERIOD:
        yield "the sync period must be at least one second"
    elif scenario.end <= scenario.start:
        yield "the end is not after the start"
    elif (scenario.end - scenario.start) / scenario.settings.sync_period > MAX_DECISIONS:
        yield f"more than {MAX_DECISIONS:,} decisions: choose a shorter period or a longer sync period"
    if max(scenario.autoscaler.spec.max_replicas, scenario.replicas) > MAX_REPLICAS:
        yield f"more than {MAX_REPLICAS:,} replicas: lower spec.maxReplicas"
    if scenario.replicas < 0 or scenario.startup < timedelta(0):
        yield "replicas and startup must not be negative"
    if scenario.service_rate <= 0:
        yield "the service rate must be greater than 0"
