"""The law of the simulation: it decides as the controller does on an API server, step by step."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import looptime
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from adapter.fakecluster.cluster import loop_clock
from autoscaler.readings import MetricsApi, read_external
from autoscaler.simulation.backlog import backlog_at
from autoscaler.simulation.metric_history import MetricHistory, Outage
from autoscaler.simulation.readings import UNREACHABLE, per_replica
from autoscaler.simulation.scenario import Scenario, WorkloadModel
from autoscaler.simulation.simulation import SimulatedStep, Simulation
from autoscaler.types.decision import Decision
from autoscaler.values.quantity import Quantity
from autoscaler.wire import decode_autoscaler
from tests.controller.harness import AUTOSCALERS, FakeExternalMetrics, Harness, running_harness
from tests.controller.simulated_pods import REQUEST, SimulatedPods

NAME = "orders-295"
"""The controller spreads second reconciles over the sync period; that of this name is at the end of the period."""

START = datetime(2026, 1, 1, tzinfo=UTC)
METRICS = ("queue", "other")


class ScenarioMetrics(FakeExternalMetrics):
    """External metrics with the values of a scenario; the workload is that of the cluster."""

    def __init__(self, harness: Harness, scenario: Scenario) -> None:
        super().__init__(clock=harness.cluster.clock)
        self._harness = harness
        self._scenario = scenario
        self._backlogs: dict[str, tuple[float, float]] = {}

    def _read(self, _namespace, metric, _selector):
        now, scenario, replicas = loop_clock(), self._scenario, self._harness.replicas(NAME)
        time, history = now.timestamp(), scenario.histories[METRICS.index(metric)]
        milli = history.at(time)
        if scenario.model is WorkloadModel.PER_POD:
            milli = per_replica(milli, replicas)
        if scenario.model is WorkloadModel.QUEUE:
            backlog, since = self._backlogs.get(metric, (0.0, time))
            backlog = backlog_at(backlog, since, time, history, (since,) * replicas, scenario.service_rate)
            self._backlogs[metric] = (backlog, time)
            milli = round(backlog * 1000)
        if any(outage.start <= time < outage.end for outage in scenario.outages):
            return UNREACHABLE[MetricsApi.EXTERNAL]
        return read_external(() if milli is None else (milli,), now)

    def subscribe(self, _changed):
        return lambda: None


class DecisionRecorder:
    """A decision listener that keeps all decisions."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    def on_decision(self, _key, _autoscaler, decision):
        self.decisions.append(decision)

    def on_deleted(self, key): ...

    def on_leadership_acquired(self, keys, shards): ...

    def on_leadership_lost(self): ...


def controller_decisions(
    document: dict[str, Any], scenario: Scenario, prepare: Callable[[Harness, Scenario], object] = lambda *_: None
) -> list[Decision]:
    """Return the decisions of the controller beside the in-memory API server, in virtual time."""

    async def run() -> list[Decision]:
        recorder = DecisionRecorder()
        async with running_harness() as harness:
            harness.external_metrics = ScenarioMetrics(harness, scenario)
            prepare(harness, scenario)
            harness.deployment(NAME, scenario.replicas)
            harness.cluster.create(AUTOSCALERS, document)
            harness.start(listeners=(recorder,))
            await asyncio.sleep((scenario.end - scenario.start).total_seconds())
        return recorder.decisions

    loop = looptime.patch_event_loop(asyncio.SelectorEventLoop(), noop_cycles=10)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(run())


def simulated_steps(scenario: Scenario, decisions: list[Decision]) -> list[SimulatedStep]:
    """Return the steps of the simulation at the times of these decisions."""
    simulation, found = Simulation(scenario), []
    state = simulation.first_state()
    for decision in decisions:
        found.append(simulation.step(replace(state, now=decision.at), scenario.outages))
        state = found[-1].state
    return found


def content(decision: Decision) -> dict[str, Any]:
    status = decision.status
    return {
        "at": decision.at,
        "replicas": decision.replicas,
        "scale_to": decision.scale_to,
        "steps": decision.steps,
        "conditions": status.conditions,
        "metrics": status.current_metrics or (),
        "last_scale_time": status.last_scale_time,
        "history": decision.history,
    }


targets = st.one_of(
    st.integers(2, 30).map(lambda average: {"type": "AverageValue", "averageValue": str(average)}),
    st.integers(20, 200).map(lambda value: {"type": "Value", "value": str(value)}),
)
fallbacks = st.fixed_dictionaries(
    {"replicas": st.integers(1, 15)},
    optional={"strategy": st.sampled_from(["Static", "UseMax", "UseMin"]), "failureDurationSeconds": st.just(200)},
)
policies = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 120),
            "periodSeconds": st.sampled_from([15, 60, 120]),
        }
    ),
    min_size=1,
    max_size=2,
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 30, 120]),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": policies,
        "tolerance": st.sampled_from(["0", "50m", "300m"]),
    },
)


@st.composite
def external_metric(draw, name):
    external = {"metric": {"name": name}, "target": draw(targets)}
    if draw(st.booleans()):
        external["fallback"] = draw(fallbacks)
    return {"type": "External", "external": external}


@st.composite
def documents(draw):
    names = METRICS[: draw(st.integers(1, 2))]
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "minReplicas": draw(st.integers(0, 3)),
        "maxReplicas": draw(st.integers(4, 30)),
        "metrics": [draw(external_metric(name)) for name in names],
    }
    if draw(st.booleans()):
        spec["behavior"] = draw(st.fixed_dictionaries({}, optional={"scaleUp": rules, "scaleDown": rules}))
    if draw(st.integers(0, 5)) == 0:
        spec["mode"] = draw(st.sampled_from(["DryRun", "Paused"]))
    return {"metadata": {"name": NAME}, "spec": spec}


@st.composite
def histories(draw):
    steps = draw(st.lists(st.floats(20, 300), min_size=1, max_size=10))
    times = [START.timestamp() + sum(steps[:index]) for index in range(len(steps))]
    values = draw(st.lists(st.none() | st.integers(0, 400_000), min_size=len(times), max_size=len(times)))
    return MetricHistory(tuple(times), tuple(values), draw(st.sampled_from([60.0, 400.0])))


@st.composite
def scenarios(draw):
    document = draw(documents())
    begin, length = draw(st.integers(0, 900)), draw(st.integers(1, 900))
    outage = Outage(START.timestamp() + begin, START.timestamp() + begin + length)
    scenario = Scenario(
        autoscaler=decode_autoscaler({**document, "metadata": {"name": NAME, "namespace": "shop", "generation": 1}}),
        histories=tuple(draw(histories()) for _ in document["spec"]["metrics"]),
        start=START,
        end=START + timedelta(seconds=1200.5),
        replicas=draw(st.integers(1, 12)),
        model=draw(st.sampled_from(WorkloadModel)),
        service_rate=draw(st.sampled_from([0.5, 10.0, 40.0])),
        outages=(outage,) if draw(st.booleans()) else (),
    )
    return document, scenario


@given(scenarios())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_simulation_decides_as_the_controller(inputs):
    document, scenario = inputs
    decisions = controller_decisions(document, scenario)
    assert len(decisions) > 75

    simulated = [content(step.decision) for step in simulated_steps(scenario, decisions)]

    assert simulated == [content(decision) for decision in decisions]


def test_simulation_decides_when_the_controller_does():
    fallback = {"replicas": 9, "failureDurationSeconds": 200}
    metric = {
        "metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "10"},
        "fallback": fallback,
    }
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
    spec = {"scaleTargetRef": reference, "maxReplicas": 20, "metrics": [{"type": "External", "external": metric}]}
    document = {"metadata": {"name": NAME}, "spec": spec}
    seconds = START.timestamp()
    scenario = Scenario(
        autoscaler=decode_autoscaler({**document, "metadata": {"name": NAME, "namespace": "shop", "generation": 1}}),
        histories=(MetricHistory((seconds, seconds + 300), (30_000, 150_000), 3600),),
        start=START,
        end=START + timedelta(seconds=1200.5),
        replicas=3,
        outages=(Outage(seconds + 400, seconds + 900),),
    )
    decisions = controller_decisions(document, scenario)
    simulation = Simulation(scenario)
    state = replace(simulation.first_state(), now=decisions[0].at)

    simulated = [step.decision.at for step in simulation.run_from(state, scenario.end, scenario.outages)]

    assert simulated == sorted({decision.at for decision in decisions})  # the first one is repeated: a target was added
    assert {(after - before).total_seconds() for before, after in pairwise(simulated)} == {15.0, 5.0}


@st.composite
def pod_scenarios(draw):
    """Return a scenario with a CPU utilization, a metric of pods, or both, and pods that need time to start."""
    utilization = {"type": "Utilization", "averageUtilization": draw(st.integers(20, 120))}
    average = {"type": "AverageValue", "averageValue": str(draw(st.integers(2, 30)))}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": utilization}}
    rate = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": average}}
    document = draw(documents())
    document["spec"] |= {"metrics": draw(st.sampled_from([[cpu], [rate], [cpu, rate]])), "minReplicas": 1}
    scenario = Scenario(
        autoscaler=decode_autoscaler({**document, "metadata": {"name": NAME, "namespace": "shop", "generation": 1}}),
        histories=tuple(draw(histories()) for _ in document["spec"]["metrics"]),
        start=START,
        end=START + timedelta(seconds=1200.5),
        replicas=draw(st.integers(1, 12)),
        model=draw(st.sampled_from([WorkloadModel.PER_POD, WorkloadModel.MIXED])),
        startup=timedelta(seconds=draw(st.sampled_from([0, 7, 52, 400]))),  # no pod becomes ready at a decision
        requests={"cpu": Quantity.parse(REQUEST)},
    )
    return document, scenario


@given(pod_scenarios())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_simulation_decides_as_the_controller_with_metrics_of_pods(inputs):
    document, scenario = inputs
    decisions = controller_decisions(document, scenario, SimulatedPods)
    assert len(decisions) > 75

    simulated = [content(step.decision) for step in simulated_steps(scenario, decisions)]

    assert simulated == [content(decision) for decision in decisions]
