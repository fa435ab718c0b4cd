"""The way from what is asked to a rule and its query, and what was found at its end.

The same few are asked for again and again. They are led the same way while the rules are the same, and are told the
same while nothing new was fetched and no number is too old. Anyone with leave to read can make up names and selectors;
so what is remembered is bounded, in number and in size, for all of them together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

from adapter.metrics.read_history import Asked
from adapter.metrics.snapshot import Snapshot
from adapter.rules.query_builder import Query
from adapter.rules.rule import Rule
from adapter.rules.rule_set import RuleSet
from adapter.sample import RawSample, Sample
from autoscaler.values.selector import Selector

_MOST: Final = 16_384
_FEW: Final = 8
"""Series that are found for one reader, if what was found is to be remembered: most look at one."""


class Finding(NamedTuple):
    """What a rule made of a snapshot."""

    snapshot: "ReferenceType[Snapshot]"
    """Weak: what was read long ago must not be held by who once read it."""

    oldest: datetime
    """The time of the first number that will be too old."""

    matched: Sequence[RawSample]
    samples: tuple[Sample, ...]


@dataclass(slots=True)
class Way:
    """Where a question leads, and what was last found there."""

    asked: Asked
    rule: Rule
    query: Query
    last: Finding | None = None

    def again(self, snapshot: Snapshot, now: datetime) -> Finding | None:
        """Give what was found the last time, if it would be found now."""
        last = self.last
        if last is None or last.snapshot() is not snapshot or last.oldest < now - self.rule.max_sample_age:
            return None
        return last

    def found(
        self, snapshot: Snapshot, matched: Sequence[RawSample], samples: tuple[Sample, ...], now: datetime
    ) -> None:
        """Keep what was found, for who asks the same."""
        if len(matched) > _FEW or samples == (Sample(0, now),):
            return  # that is the zero of a rule that has nothing: it is of the moment at which it is read
        too_old = now - self.rule.max_sample_age
        oldest = min(raw.at for raw in matched if raw.at >= too_old)
        self.last = Finding(ref(snapshot), oldest, matched, samples)


class Ways:
    """All that are known of one set of rules."""

    def __init__(self) -> None:
        self._rules: RuleSet | None = None
        self._ways: dict[tuple[str, str, Selector], Way] = {}

    def known(self, rules: RuleSet, namespace: str, metric: str, selector: Selector) -> Way | None:
        """Say where these rules lead, if it was asked before."""
        if rules is not self._rules:
            self._rules, self._ways = rules, {}
        return self._ways.get((namespace, metric, selector))

    def remember(self, way: Way, metric: str) -> Way:
        """Keep a way, by the name that was asked for."""
        if way.asked.is_light:
            if len(self._ways) >= _MOST:
                self._ways.clear()
            self._ways[way.asked.namespace, metric, way.asked.selector] = way
        return way
