"""Fixed numbers from the configuration: for a first look, for rehearsals and for tests."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from adapter import errors
from adapter.rules.rule import Rule, Series
from adapter.sample import NotFiniteError, RangeError, Sample, milli_of
from autoscaler.selector import Selector


class StaticBackend:
    """Answers with the numbers written in the rule, as of now."""

    name = "static"

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    async def fetch(self, rule: Rule, selector: Selector) -> tuple[Sample, ...]:
        """Return the rule's own numbers."""
        now = self._clock()
        return tuple(_sample(rule, series, now) for series in rule.static if selector.matches(series.labels))


_milli = lru_cache(maxsize=4096)(milli_of)  # the same few numbers, again and again


def _sample(rule: Rule, series: Series, now: datetime) -> Sample:
    try:
        milli = _milli(series.value)
    except NotFiniteError:
        raise errors.NotANumber(f"metric {rule.name!r}: static: not a number") from None
    except RangeError as error:
        raise errors.OutOfRange(f"metric {rule.name!r}: static: out of range: {error}") from None
    return Sample(milli=milli, at=now - series.age, labels=series.labels)
