"""Benchmark of the simulation: a month of decisions at a sync period of 15 seconds, in CPU time of one core.

The reference is ``decide`` alone with the inputs of decisions of the same run, timed between the parts of the run.
A week of a fleet follows, whose histories are read from one Prometheus.
With --traces, the measures of public traces follow, which are not part of this repository.
"""

import argparse
import asyncio
import resource
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from adapter.config.loading import decode
from adapter.process import clock
from adapter.simulation.range_history import plan_reads, read_range
from autoscaler.algorithm.decide import decide
from autoscaler.simulation.measures import measure
from autoscaler.simulation.metric_history import MetricHistory, Outage
from autoscaler.simulation.run import collect
from autoscaler.simulation.scenario import Scenario
from autoscaler.simulation.simulation import SimulatedStep, Simulation, SimulationState
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import ExternalReading, Observation, ScaleTarget
from autoscaler.types.spec import EXTERNAL, ExternalSource, Metric, MetricIdentifier
from autoscaler.values.selector import LabelSelector
from autoscaler.wire import decode_autoscaler
from tests.prometheus.server import line, prometheus
from tools.sample_load import START, load

PERIOD = 15
GOAL_SECONDS, GOAL_MEGABYTES = 15.0, 300.0
_PART = 5000
_CALLS = 300
_TUNED = {
    "scaleUp": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}], "tolerance": "20m"},
    "scaleDown": {"stabilizationWindowSeconds": 900},
}
BEHAVIOR = {
    "scaleUp": {"stabilizationWindowSeconds": 30, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]},
    "scaleDown": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 300}]},
}


def autoscaler_of(average: float, behavior: object = None, fallback: object = None) -> Autoscaler:
    """Return an autoscaler with one external metric."""
    external = {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": f"{average:.3f}"}}
    if fallback is not None:
        external["fallback"] = fallback  # type: ignore[assignment]
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 1000,
        "metrics": [{"type": "External", "external": external}],
        "behavior": behavior,
    }
    return decode_autoscaler({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})


def month(days: float) -> Scenario:
    """Return a scenario with one value per minute."""
    samples = list(load(days, peak=1000))
    times, milli = (tuple(at.timestamp() for at, _ in samples), tuple(round(value * 1000) for _, value in samples))
    end = START + timedelta(days=days)
    return Scenario(autoscaler_of(50, BEHAVIOR), (MetricHistory(times, milli, 300.0),), START, end, 3)


def decide_seconds(scenario: Scenario, steps: Sequence[tuple[SimulationState, SimulatedStep]]) -> float:
    """Return the CPU time of one call of ``decide``, with the inputs of these steps."""
    inputs = []
    for state, step in steps:
        count, reading = len(state.replicas), ExternalReading((step.values[0] or 0,), state.now)
        inputs.append((state, Observation(ScaleTarget(count, count, "app=web"), readings=(reading,))))
    started = time.process_time()
    for state, observation in inputs:
        decide(
            autoscaler=state.autoscaler,
            observation=observation,
            history=state.history,
            settings=scenario.settings,
            gates=scenario.gates,
            now=state.now,
        )
    return (time.process_time() - started) / len(inputs)


def measure_speed(days: float) -> None:
    """Simulate the days and print decisions per second, the ratio to ``decide``, and the memory."""
    imported, scenario = _peak_megabytes(), month(days)
    simulation = Simulation(scenario)
    references: list[float] = []
    excluded = 0.0

    def steps() -> Iterator[SimulatedStep]:
        nonlocal excluded
        state, recent = simulation.first_state(), deque[tuple[SimulationState, SimulatedStep]](maxlen=_CALLS)
        for number, step in enumerate(simulation.run()):
            yield step
            recent.append((state, step))
            state = step.state
            if number % _PART == _CALLS:
                before = time.process_time()
                references.append(decide_seconds(scenario, recent))
                excluded += time.process_time() - before

    started = time.process_time()
    run = collect(simulation, steps())
    seconds = time.process_time() - started - excluded
    count, reference = len(run.times), sum(references) / len(references)
    megabytes = _peak_megabytes()
    print(f"{count:,} decisions in {seconds:.1f} s of CPU time: {count / seconds:,.0f} per second")
    ratio = seconds / count / reference
    print(f"decide() alone: {1 / reference:,.0f} per second; time of the simulation relative to it: {ratio:.2f}")
    is_whole = days >= 30
    goals = f" (goals: {GOAL_SECONDS:g} s, {GOAL_MEGABYTES:g} MB)" if is_whole else ""
    print(f"{len(run.rescales):,} rescales; peak memory {megabytes:.0f} MB, {imported:.0f} MB after the imports{goals}")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_fleet(count: int, days: float) -> None:
    """Simulate autoscalers on the history of one Prometheus; print the range queries and the time of both parts."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        print("\nfleet skipped: prometheus and promtool are not installed")
        return
    step, end = timedelta(minutes=5), START + timedelta(days=days)
    values = [(at, value) for index, (at, value) in enumerate(load(days, peak=1000)) if index % 5 == 0]
    apps = [f"app-{number}" for number in range(count)]
    rows = [
        line("requests", {"namespace": "shop", "app": app}, f"{value * (1 + number / count):.1f}", at.timestamp())
        for number, app in enumerate(apps)
        for at, value in values
    ]
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), samples="".join(rows)) as server:
        rule = {"name": "requests", "backend": "main", "query": "requests"}
        config = decode({"backends": {"main": {"prometheus": {"url": server.url}}}, "rules": [rule]})
        metrics = [
            Metric(EXTERNAL, external=ExternalSource(MetricIdentifier("requests", LabelSelector({"app": app}))))
            for app in apps
        ]
        reads = plan_reads(config, "shop", metrics)
        started = time.process_time()
        table, requests = asyncio.run(read_range(config.backends, [*reads.values()], (START, end), step, clock))
        read_seconds = time.process_time() - started
    started, decisions = time.process_time(), 0
    for column in reads:
        history = MetricHistory(table.times, table.columns[column], table.max_age)
        run = collect(Simulation(Scenario(autoscaler_of(50, BEHAVIOR), (history,), START, end, 3)))
        decisions += len(run.times)
    seconds = time.process_time() - started
    print(f"\n{count} autoscalers, {days:g} days from one Prometheus, range queries: {requests}")
    print(f"{read_seconds:.1f} s of CPU time to read, {seconds:.1f} s for {decisions:,} decisions")


def trace_history(file: Path) -> MetricHistory:
    """Return the history of a trace with the columns timestamp and value."""
    rows = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    samples = sorted(
        {datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp(): float(value) for at, value in rows}.items()
    )
    return MetricHistory(tuple(at for at, _ in samples), tuple(round(value * 1000) for _, value in samples), 3600.0)


def measure_trace(file: Path, period: float) -> None:
    """Print the measures of the default behavior, a tuned one, and both with and without fallback under outages."""
    history = trace_history(file)
    values = sorted(milli / 1000 for milli in history.milli if milli is not None)
    p90 = values[int(len(values) * 0.9)]
    average, start, end = p90 / 20, history.times[0], history.times[-1]
    outages = tuple(Outage(at, at + 7200) for at in (start + (end - start) * part / 20 for part in range(1, 20)))
    fallback = {"replicas": 22, "strategy": "UseMax"}
    variants = (
        ("default", autoscaler_of(average), ()),
        ("tuned", autoscaler_of(average, _TUNED), ()),
        ("default, 19 outages of 2 h", autoscaler_of(average), outages),
        ("with fallback, same outages", autoscaler_of(average, fallback=fallback), outages),
    )
    print(f"\n{file.name}: {len(values):,} values, target {average:.4g} (20 replicas at the 90th percentile)")
    print(f"{'':30}{'replica-h':>11}{'missing':>9}{'surplus':>9}{'under':>8}{'longest':>10}{'rescales':>10}")
    for name, autoscaler, found in variants:
        times = (datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC))
        scenario = Scenario(autoscaler, (history,), *times, 20, outages=found)
        settings = type(scenario.settings)(sync_period=timedelta(seconds=period))
        simulation = Simulation(replace(scenario, settings=settings))
        one = measure(collect(simulation))
        longest = timedelta(seconds=round(one.longest_under_seconds))
        areas = f"{one.replica_hours:>11,.0f}{one.under_accuracy:>9.3f}{one.over_accuracy:>9.3f}"
        print(f"{name:<30}{areas}{one.under_time_share:>8.1%}{longest!s:>10}{one.rescales:>10,}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__)
    parser.add_argument("--days", type=float, default=30, help="length of the simulated period (default: %(default)s)")
    parser.add_argument("--traces", type=Path, help="folder of traces with the columns timestamp and value")
    parser.add_argument("--period", type=float, default=60, help="sync period for the traces (default: %(default)s s)")
    parser.add_argument("--fleet", type=int, default=100, help="autoscalers of one Prometheus (default: %(default)s)")
    options = parser.parse_args()
    measure_speed(options.days)
    measure_fleet(options.fleet, min(options.days, 7))
    if options.traces is None:
        return
    if not options.traces.is_dir():
        print(f"traces skipped: {options.traces} does not exist")
        return
    for file in sorted(options.traces.glob("*.csv")):
        if file.read_text(encoding="utf-8").startswith("timestamp,value\n"):
            measure_trace(file, options.period)
        else:
            print(f"\n{file.name} skipped: its columns are not timestamp and value")


if __name__ == "__main__":
    main()
