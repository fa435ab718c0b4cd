"""From a metric's name to its samples: what both the served API and the autoscaler call."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from adapter import errors
from adapter.backends.backend import Backend
from adapter.rules.fill import whole
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet
from adapter.sample import NotFiniteError, RangeError, RawSample, Sample, milli_of
from autoscaler.selector import Selector


class MetricReader(Protocol):
    """Reads metrics by name."""

    async def read(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return the current samples, at least one; raise ``MetricNotFound`` or ``MetricUnavailable`` otherwise."""

    def names(self, namespace: str) -> tuple[str, ...]:
        """List the metrics that can be read here."""


class RuleReader:
    """Finds the rule, asks its backend, and refuses what is too old."""

    def __init__(self, rules: RuleSet, backend: Backend, clock: Callable[[], datetime]) -> None:
        self._rules = rules
        self._backend = backend
        self._clock = clock

    async def read(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return what the rule's backend has now."""
        rule = self._rules.find(namespace, metric)
        if rule is None:
            raise self._unknown(namespace, metric)
        try:
            found = await self._backend.fetch(whole(rule), rule.deadline)
            samples = tuple(_sample(raw) for raw in found if selector.matches(raw.labels))
            if not samples:
                raise errors.NoSeries(_nothing(selector))
            self._refuse_old(rule, samples)
        except errors.MetricUnavailable as error:
            raise error.of(rule.name, self._backend.name) from error
        return samples

    def names(self, namespace: str) -> tuple[str, ...]:
        """List the metrics that have a rule here."""
        return self._rules.names(namespace)

    def _unknown(self, namespace: str, metric: str) -> errors.MetricNotFound:
        alike = ", ".join(repr(name) for name in self._rules.nearest(namespace, metric))
        hint = f"; did you mean {alike}?" if alike else ""
        return errors.MetricNotFound(f"no rule defines metric {metric!r} in namespace {namespace!r}{hint}")

    def _refuse_old(self, rule: Rule, samples: tuple[Sample, ...]) -> None:
        oldest = self._clock() - rule.max_sample_age
        if any(sample.at < oldest for sample in samples):
            raise errors.TooOld(f"the limit is {rule.max_sample_age.total_seconds():g}s")


def _sample(raw: RawSample) -> Sample:
    try:
        return Sample(milli_of(raw.value), raw.at, raw.labels, raw.window)
    except NotFiniteError:
        raise errors.NotANumber from None
    except RangeError as error:
        raise errors.OutOfRange(str(error)) from None


def _nothing(selector: Selector) -> str:
    wanted = str(selector)
    return f"nothing matches {wanted}" if wanted else "it has none now"
