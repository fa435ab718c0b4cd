"""The history of metrics from Prometheus: the queries of the rules that a spec names, evaluated as for a live read.

At each step the series are selected by namespace and selector, checked and aggregated by ``rules.evaluation``. A value
that the rule rejects is a gap. Unlike live, the age of samples is not known: Prometheus returns each for five minutes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from adapter.backends.configuration import BackendEntry
from adapter.backends.prometheus.range_query import RangeClient, RangeSeries, parts
from adapter.config.model import Config
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.errors import MetricUnavailable
from adapter.metrics.snapshot import Snapshot
from adapter.rules.evaluation import evaluate
from adapter.rules.query_builder import Query, snapshot_query, template_query
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet
from adapter.sample import RawSample
from adapter.simulation.csv_history import MAX_ROWS
from adapter.simulation.history_table import GAP_STEPS, HistoryTable
from autoscaler.types.record import Record
from autoscaler.types.spec import Metric
from autoscaler.values.selector import LabelSelector, Selector, from_label_selector

DEADLINE: Final = timedelta(seconds=60)
"""Of one request: a range query reads thousands of times the samples of a live one."""


class RangeRead(Record):
    """One external metric to read: its rule, its query, and its column in the table."""

    column: str
    namespace: str
    selector: Selector
    rule: Rule
    query: Query


def plan_reads(config: Config, namespace: str, metrics: Iterable[Metric]) -> dict[str, RangeRead]:
    """Return the reads of the external metrics, by column; raise ``ConfigInvalid`` if one is not possible."""
    rules, reads, problems = RuleSet(config.rules), {}, []
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        if metric.external is None:
            problems.append(Problem(path, f"{metric.type} metrics have no rule: use a CSV file"))
            continue
        identifier = metric.external.metric
        rule = rules.find(namespace, identifier.name)
        if rule is None:
            problems.append(Problem(path, f"no rule defines the metric {identifier.name!r} in namespace {namespace!r}"))
        elif rule.is_static or config.backends[rule.backend].prometheus is None:
            problems.append(Problem(path, f"the metric {identifier.name!r} is not from a Prometheus backend"))
        else:
            selector = from_label_selector(identifier.selector or LabelSelector())
            query = template_query(rule, namespace, selector) if rule.is_template else snapshot_query(rule)
            reads[str(identifier)] = RangeRead(str(identifier), namespace, selector, rule, query)
    if problems:
        raise ConfigInvalid(problems)
    return reads


async def read_range(
    backends: Mapping[str, BackendEntry],
    reads: Sequence[RangeRead],
    period: tuple[datetime, datetime],
    step: timedelta,
    clock: Callable[[], datetime],
    on_request: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[HistoryTable, int]:
    """Return the table of all reads and the number of requests; equal queries of several reads are sent once."""
    count = (period[1] - period[0]) // step + 1
    if count > MAX_ROWS:
        raise ConfigInvalid([Problem("", f"more than {MAX_ROWS:,} steps: choose a shorter period or a longer step")])
    times = [period[0].timestamp() + step.total_seconds() * index for index in range(count)]
    queries = {read.query.key: read.query for read in reads}
    chunks = list(parts(*period, step))
    clients = {name: RangeClient(entry.prometheus, clock) for name, entry in backends.items() if entry.prometheus}
    columns: dict[str, list[int | None]] = {read.column: [] for read in reads}
    sent = 0
    try:
        for first, last in chunks:
            for key, query in queries.items():
                on_request(sent, len(chunks) * len(queries))
                series = await clients[query.backend].fetch(query, first, last, step, DEADLINE)
                sent += 1
                for read in (one for one in reads if one.query.key == key):
                    columns[read.column] += _values(read, series, first, last, step)
    finally:
        for client in clients.values():
            await client.aclose()
    milli = {name: tuple(values) for name, values in columns.items()}
    if all(value is None for values in milli.values() for value in values):
        raise ConfigInvalid([Problem("", "Prometheus has no value of any of the metrics in this period")])
    return HistoryTable(tuple(times), milli, GAP_STEPS * step.total_seconds()), sent


def _values(
    read: RangeRead, series: Sequence[RangeSeries], first: datetime, last: datetime, step: timedelta
) -> list[int | None]:
    """Return the value of the metric at each step of a part."""
    by_time: dict[float, list[RawSample]] = {}
    for one in _matching(read, series, first):
        for time, text in one.values:
            at = datetime.fromtimestamp(time, UTC)
            by_time.setdefault(time, []).append(RawSample(float(text), at, one.metric))
    begin, seconds = first.timestamp(), step.total_seconds()
    moments = (begin + seconds * index for index in range((last - first) // step + 1))
    return [_value(read, by_time.get(time, []), time) for time in moments]


def _matching(read: RangeRead, series: Sequence[RangeSeries], now: datetime) -> list[RangeSeries]:
    """Return the series that the read selects: one query can have the series of hundreds of autoscalers."""
    numbered = Snapshot([RawSample(float(index), now, one.metric) for index, one in enumerate(series)], now)
    return [series[int(sample.value)] for sample in _selected(read, numbered)]


def _selected(read: RangeRead, snapshot: Snapshot) -> Sequence[RawSample]:
    if read.rule.is_template:
        return snapshot.series
    label, fixed = read.rule.namespacing.label, read.rule.namespacing.fixed
    return tuple(snapshot.select(read.selector, label, fixed or read.namespace))


def _value(read: RangeRead, samples: Sequence[RawSample], time: float) -> int | None:
    """Return the sum that an HPA computes from the served samples; None if the rule rejects them."""
    rule, now = read.rule, datetime.fromtimestamp(time, UTC)
    snapshot = Snapshot(samples, now)
    matched = _selected(read, snapshot)
    try:
        served = evaluate(rule, matched, now, lambda: "no series", snapshot.repeated_labels(matched))
    except MetricUnavailable:
        return None
    return sum(sample.milli for sample in served)
