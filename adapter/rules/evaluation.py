"""Evaluates the matching series of a read: checks each value as the rule requires, then aggregates the values."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

from adapter import errors
from adapter.rules.rule import Aggregation, OnEmpty, OnTooOld, OnUnusable, Rule
from adapter.sample import NotFiniteError, RangeError, RawSample, Sample, milli_of

_MAX_MILLI: Final = 2**63 - 1  # an HPA adds milli-units as int64 and would misread a sum that overflows
_MAX_DETAIL: Final = 300
_SAME_LABELS: Final = (
    "two series have the same labels: add a label that distinguishes them, or aggregate them in the query"
)
_GET_MILLI: Final = attrgetter("milli")


def evaluate(
    rule: Rule,
    matched: Sequence[RawSample],
    now: datetime,
    describe_no_match: Callable[[], str],
    repeated_labels: Mapping[str, str] | None = None,
) -> tuple[Sample, ...]:
    """Return the samples to serve, at least one; raise ``MetricUnavailable`` if the rule rejects them.

    ``describe_no_match`` returns the error text if no series matched. It is only called in that case.
    ``repeated_labels`` are labels that two matching series have: whether one repeats the other is unknown.
    """
    if repeated_labels is not None:
        raise errors.Ambiguous(_SAME_LABELS, detail=str(dict(repeated_labels))[:_MAX_DETAIL])
    usable = _usable(rule, matched, now)
    if len(usable) > 1:
        return _AGGREGATIONS[rule.aggregation](usable)
    if usable:
        return usable
    if rule.on_empty is OnEmpty.ZERO:
        return (Sample(0, now),)
    raise errors.NoSeries("all matching series were skipped as unusable" if matched else describe_no_match())


def _usable(rule: Rule, matched: Sequence[RawSample], now: datetime) -> tuple[Sample, ...]:
    oldest = now - rule.max_sample_age
    usable = []
    for raw in matched:
        if raw.at < oldest:
            if rule.on_too_old is OnTooOld.ERROR:
                raise errors.TooOld(f"the limit is {rule.max_sample_age.total_seconds():g}s")
            continue
        milli = _usablemilli_of(rule, raw)
        if milli is not None:
            usable.append(Sample(milli, raw.at, raw.labels, raw.window))
    return tuple(usable)


def _usablemilli_of(rule: Rule, raw: RawSample) -> int | None:
    """Return the value of a series in milli-units; None if the series is skipped."""
    try:
        return milli_of(raw.value)
    except NotFiniteError:
        policy: OnUnusable = rule.on_nan
        error: errors.MetricUnavailable = errors.NotANumber()
    except RangeError as out_of_range:
        policy, error = rule.on_out_of_range, errors.OutOfRange(str(out_of_range))
    match policy:
        case OnUnusable.ERROR:
            raise error
        case OnUnusable.ZERO:
            return 0
        case OnUnusable.SKIP:
            return None


def _sum(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Return every series: an HPA adds them itself, and kubectl lists them."""
    if sum(map(_GET_MILLI, usable)) > _MAX_MILLI:
        raise errors.OutOfRange("the sum is greater than an HPA can represent")
    return usable


def _one(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    raise errors.Ambiguous(
        "more than one series matches, and the aggregation 'one' allows exactly one", detail=f"{len(usable)} match"
    )


def _avg(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    total = sum(map(_GET_MILLI, usable))
    mean = -(-total // len(usable))  # rounded up, like every conversion to milli-units
    oldest = min(usable, key=lambda sample: sample.at)
    return (Sample(mean, oldest.at, _common_labels(usable), oldest.window),)


def _common_labels(usable: tuple[Sample, ...]) -> Mapping[str, str]:
    first, *others = (sample.labels for sample in usable)
    return {key: value for key, value in first.items() if all(labels.get(key) == value for labels in others)}


_AGGREGATIONS: Final[Mapping[Aggregation, Callable[[tuple[Sample, ...]], tuple[Sample, ...]]]] = {
    Aggregation.SUM: _sum,
    Aggregation.MAX: lambda usable: (max(usable, key=_GET_MILLI),),
    Aggregation.MIN: lambda usable: (min(usable, key=_GET_MILLI),),
    Aggregation.AVG: _avg,
    Aggregation.ONE: _one,
}
