"""From the series that match to what is served: each number checked by the rule's policies, then aggregated."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from adapter import errors
from adapter.rules.rule import Aggregation, OnEmpty, OnOld, OnUnusable, Rule
from adapter.sample import NotFiniteError, RangeError, RawSample, Sample, milli_of

_MOST: Final = 2**63 - 1
"""An HPA adds thousandths as int64, and what overflows it takes for a reason to scale."""

_milli = lru_cache(maxsize=65536)(milli_of)  # most numbers are the same as the last time


def evaluate(rule: Rule, matched: Sequence[RawSample], now: datetime, nothing: Callable[[], str]) -> tuple[Sample, ...]:
    """Say what is served for these series, at least one sample; raise ``MetricUnavailable`` in the rule's name.

    ``nothing`` says in words that nothing matched, and is only asked then.
    """
    usable = _usable(rule, matched, now)
    if not usable:
        return _empty(rule, now, (lambda: "none of those that match can be used") if matched else nothing)
    if len(usable) == 1:
        return usable
    return _AGGREGATED[rule.aggregation](usable)


def _usable(rule: Rule, matched: Sequence[RawSample], now: datetime) -> tuple[Sample, ...]:
    oldest = now - rule.max_sample_age
    usable = []
    for raw in matched:
        if raw.at < oldest:
            if rule.on_too_old is OnOld.ERROR:
                raise errors.TooOld(f"the limit is {rule.max_sample_age.total_seconds():g}s")
            continue
        milli = _number(rule, raw)
        if milli is not None:
            usable.append(Sample(milli, raw.at, raw.labels, raw.window))
    return tuple(usable)


def _number(rule: Rule, raw: RawSample) -> int | None:
    """Give a series' number in thousandths; None if it is to be left out."""
    try:
        return _milli(raw.value)
    except NotFiniteError:
        policy: OnUnusable = rule.on_nan
        error: errors.MetricUnavailable = errors.NotANumber()
    except RangeError as refused:
        policy, error = rule.on_out_of_range, errors.OutOfRange(str(refused))
    match policy:
        case OnUnusable.ERROR:
            raise error
        case OnUnusable.ZERO:
            return 0
        case OnUnusable.SKIP:
            return None


def _empty(rule: Rule, now: datetime, nothing: Callable[[], str]) -> tuple[Sample, ...]:
    if rule.on_empty is OnEmpty.ZERO:
        return (Sample(0, now),)
    raise errors.NoSeries(nothing())


def _sum(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    """Serve all of them: an HPA adds them, and kubectl shows them."""
    if sum(sample.milli for sample in usable) > _MOST:
        raise errors.OutOfRange("the sum is more than an HPA can hold")
    return usable


def _one(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    raise errors.Ambiguous(
        "more than one series matches, and the rule wants exactly one", detail=f"{len(usable)} match"
    )


def _max(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    return (max(usable, key=lambda sample: sample.milli),)


def _min(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    return (min(usable, key=lambda sample: sample.milli),)


def _avg(usable: tuple[Sample, ...]) -> tuple[Sample, ...]:
    total = sum(sample.milli for sample in usable)
    mean = -(-total // len(usable))  # rounded up, as every number here
    oldest = min(usable, key=lambda sample: sample.at)
    return (Sample(mean, oldest.at, _shared(usable), oldest.window),)


def _shared(usable: tuple[Sample, ...]) -> Mapping[str, str]:
    """Keep the labels that all of them have alike."""
    first, *others = (sample.labels for sample in usable)
    return {key: value for key, value in first.items() if all(labels.get(key) == value for labels in others)}


_AGGREGATED: Final[Mapping[Aggregation, Callable[[tuple[Sample, ...]], tuple[Sample, ...]]]] = {
    Aggregation.SUM: _sum,
    Aggregation.MAX: _max,
    Aggregation.MIN: _min,
    Aggregation.AVG: _avg,
    Aggregation.ONE: _one,
}
