"""From a metric's name to its samples: what the served API, the autoscaler and the debugging endpoints call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from adapter import errors
from adapter.backends.settings import Price
from adapter.metrics.evaluation_cache import Way, Ways
from adapter.metrics.fetcher import Failed, Fetcher, Outcome
from adapter.metrics.query_cache import QueryCache
from adapter.metrics.read_history import Asked, Reads
from adapter.metrics.snapshots import Snapshots
from adapter.rules.delegation import Delegate, PassedOn, passed_on
from adapter.rules.evaluation import evaluate
from adapter.rules.query_builder import Query, filled, whole
from adapter.rules.rule import STATIC, Rule
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample, Sample
from autoscaler.values.selector import Selector

_STRAYS: Final = 1000


class MetricReader(Protocol):
    """Reads metrics by name."""

    async def read(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return the current samples, at least one; raise ``MetricNotFound`` or ``MetricUnavailable`` otherwise."""

    def names(self, namespace: str) -> tuple[str, ...]:
        """List the metrics that can be read here."""


@dataclass(slots=True)
class Look:
    """One read and the way there, as far as it went."""

    asked: Asked
    rule: Rule | None = None
    query: Query | None = None
    outcome: Outcome | None = None
    matched: Sequence[RawSample] = ()
    samples: tuple[Sample, ...] = ()
    error: errors.AdapterError | None = None
    """Why there are no samples."""

    way: Way | None = None
    """The way that a rule of ours leads; None for what none has a name for."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where outcomes come from: snapshots for whole rules, the cache for queries with a selector inside."""

    fetcher: Fetcher
    snapshots: Snapshots
    cache: QueryCache

    @classmethod
    def of(cls, fetcher: Fetcher) -> "Sources":
        """Put them together."""
        return cls(fetcher, Snapshots(fetcher), QueryCache(fetcher))

    async def aclose(self) -> None:
        """Stop fetching, then let go of the backends."""
        await self.snapshots.aclose()
        await self.cache.aclose()
        for backend in self.fetcher.backends.values():
            await backend.aclose()


@dataclass(slots=True)
class RuleReader:
    """Finds the rule, gets its series, picks those that match, and applies the rule's policies."""

    book: RuleRegistry
    sources: Sources
    clock: Callable[[], datetime]
    reads: Reads = field(default_factory=Reads)
    strays: Reads = field(default_factory=partial(Reads, _STRAYS))
    """Reads of names that no rule has, apart from the others: anyone can make up names."""

    price: Callable[[Rule], Price | None] = lambda _: None
    """What it costs to keep a rule's numbers up to date, where somebody charges for that."""

    delegate: Delegate | None = None
    """Who is asked for names that no rule has."""

    heard: Callable[[Look], None] = lambda _: None
    """Told of each read that a rule answered, or should have."""

    _ways: Ways = field(default_factory=Ways)

    def __post_init__(self) -> None:
        self.book.tell(self._forget)

    async def read(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return what the metric is now, or raise why that cannot be told."""
        look = await self.look(namespace, metric, selector)
        if look.error is not None:
            raise look.error
        return look.samples

    def names(self, namespace: str) -> tuple[str, ...]:
        """List the metrics that have a rule here."""
        return self.book.rules.names(namespace)

    async def look(self, namespace: str, metric: str, selector: Selector) -> Look:
        """Read a metric and tell the way; whatever goes wrong is in the answer."""
        look = self._begin(namespace, metric, selector)
        rule, query = look.rule, look.query
        if rule is not None and query is not None:
            source = self.sources.cache if rule.is_template else self.sources.snapshots
            look.outcome = await source.get(query, rule.interval, rule.deadline)
        now = self.clock()
        if rule is not None and look.outcome is not None:
            self._conclude(look, rule, look.outcome, now)
        self._remember(look, now)
        if rule is not None and not isinstance(rule, PassedOn):
            self.heard(look)
        return look

    def memory_of(self, look: Look) -> Reads:
        """Say where reads like this are remembered."""
        return self.strays if look.rule is None or isinstance(look.rule, PassedOn) else self.reads

    def origin(self, rule: Rule) -> str:
        """Say where a rule comes from."""
        return f"passed on to {rule.backend}" if isinstance(rule, PassedOn) else self.book.origin(rule)

    def glance(self, namespace: str, metric: str, selector: Selector) -> Look:
        """Tell what a read would find without fetching anything, and without counting as a reader."""
        look = self._begin(namespace, metric, selector)
        if look.rule is not None and look.query is not None:
            source = self.sources.cache if look.rule.is_template else self.sources.snapshots
            look.outcome = source.peek(look.query)
            if look.outcome is not None:
                self._conclude(look, look.rule, look.outcome, self.clock())
        return look

    def _begin(self, namespace: str, metric: str, selector: Selector) -> Look:
        """Find the rule and its query; where there is none, the look ends here."""
        rules = self.book.rules
        way = self._ways.known(rules, namespace, metric, selector)
        if way is not None:
            return Look(way.asked, way.rule, way.query, way=way)
        rule = rules.find(namespace, metric)
        if rule is None:
            return self._begin_elsewhere(namespace, metric, selector)
        look = Look(Asked(namespace, rule.name, selector), rule)
        try:
            _check_labels(rule, selector)
            look.query = filled(rule, namespace, selector) if rule.is_template else whole(rule)
        except errors.AdapterError as error:
            look.error = self._in_its_name(error, rule)
        else:
            look.way = self._ways.remember(Way(look.asked, rule, look.query), metric)
        return look

    def _begin_elsewhere(self, namespace: str, metric: str, selector: Selector) -> Look:
        """Pass on what no rule has a name for, if there is somebody to pass it on to."""
        asked = Asked(namespace, metric, selector)
        if self.delegate is None or not self.delegate.unknown:
            return Look(asked, error=self._unknown(namespace, metric))
        rule = passed_on(self.delegate, namespace, metric, selector)
        return Look(asked, rule, whole(rule))

    def _conclude(self, look: Look, rule: Rule, outcome: Outcome, now: datetime) -> None:
        """Go from what the query found to what is served."""
        if isinstance(outcome, Failed):
            look.error = self._in_its_name(outcome.error, rule)
            return
        again = None if look.way is None else look.way.again(outcome, now)
        if again is not None:
            look.matched, look.samples = again.matched, again.samples
            return
        namespace, _, selector = look.asked
        look.matched = outcome.rows
        if not rule.is_template:
            belongs = rule.namespacing
            look.matched = outcome.select(selector, belongs.label, belongs.fixed or namespace)
        try:
            look.samples = evaluate(rule, look.matched, now, lambda: _nothing(look, rule))
        except errors.AdapterError as error:
            look.error = self._in_its_name(error, rule)
        else:
            if look.way is not None:
                look.way.found(outcome, look.matched, look.samples, now)

    def _in_its_name(self, error: errors.AdapterError, rule: Rule) -> errors.AdapterError:
        """Make an error of this reader's own: the one remembered is told to many, and none must add to it."""
        if isinstance(error, errors.MetricUnavailable):
            return error.of(rule.name, self.sources.fetcher.hop(rule.backend or STATIC))
        return type(error)(error.message)

    def _forget(self, changed: tuple[Rule, ...]) -> None:
        """Let go of what was read for rules that are no more; those that still ask the same will ask again."""
        for rule in changed:
            if not rule.is_template:
                self.sources.snapshots.forget(whole(rule))

    def forget_backends(self, names: set[str]) -> None:
        """Let go of what was read from these backends."""
        for rule in self.book.rules:
            if rule.backend in names and not rule.is_template:
                self.sources.snapshots.forget(whole(rule))

    def _remember(self, look: Look, now: datetime) -> None:
        read = self.memory_of(look).of(look.asked)
        if look.query is not None:
            read.query = look.query.text
        if look.outcome is not None:
            read.took = look.outcome.took
            read.seen = 0 if isinstance(look.outcome, Failed) else len(look.outcome.rows)
        read.chosen = len(look.matched)
        if look.error is None:
            read.succeeded(look.samples, now)
        else:
            read.failed(look.error, now)

    def _unknown(self, namespace: str, metric: str) -> errors.MetricNotFound:
        alike = ", ".join(repr(name) for name in self.book.rules.nearest(namespace, metric))
        hint = f"; did you mean {alike}?" if alike else ""
        return errors.MetricNotFound(f"no rule defines metric {metric!r} in namespace {namespace!r}{hint}")


def _check_labels(rule: Rule, selector: Selector) -> None:
    if not rule.labels:
        return
    for requirement in selector.requirements:
        if requirement.key not in rule.labels:
            known = ", ".join(rule.labels)
            raise errors.BadRequest(
                f"metric {rule.name!r}: selectors cannot use the label {requirement.key!r}; they can use: {known}"
            )


def _nothing(look: Look, rule: Rule) -> str:
    """Say that nothing matched, and what to look at first."""
    wanted, belongs = str(look.asked.selector), rule.namespacing
    if look.outcome is None or isinstance(look.outcome, Failed) or not look.outcome.rows or rule.is_template:
        return f"nothing matches {wanted}" if wanted and rule.is_template else "it has none now"
    if belongs.label and not any(belongs.label in row.labels for row in look.outcome.rows):
        return f"no series has the label {belongs.label!r} that the rule's namespace.label names"
    here = f"{belongs.label}={belongs.fixed or look.asked.namespace}" if belongs.label else ""
    return f"nothing matches {','.join(part for part in (wanted, here) if part)}"
