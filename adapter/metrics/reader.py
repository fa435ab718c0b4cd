"""Reads metrics by name, for the served API, the autoscaler and the debug endpoints.

A read finds the rule, gets the result of its query, selects the matching series and evaluates them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from adapter import errors
from adapter.backends.settings import Price
from adapter.metrics.evaluation_cache import EvaluationCache, ResolvedRead
from adapter.metrics.fetcher import FetchFailure, FetchResult
from adapter.metrics.no_match import describe_no_match
from adapter.metrics.read_history import ReadHistory, ReadKey
from adapter.metrics.refresh_interval import MIN_ADAPTIVE_INTERVAL
from adapter.metrics.snapshot import Snapshot
from adapter.metrics.sources import Sources
from adapter.rules.delegation import Delegate, DelegatedRule, delegated_rule
from adapter.rules.evaluation import evaluate
from adapter.rules.query_builder import Query, delegated_query, snapshot_query, template_query
from adapter.rules.rule import DEFAULT_INTERVAL, STATIC, Rule
from adapter.rules.rule_registry import RuleRegistry
from adapter.sample import RawSample, Sample
from autoscaler.values.selector import MAX_REQUIREMENTS, MAX_SELECTOR_LENGTH, Selector

_MAX_UNKNOWN_READS_BYTES: Final = 2 * 1024 * 1024


@dataclass(slots=True)
class ReadTrace:
    """The record of one read; the fields after the step that failed are empty."""

    key: ReadKey
    rule: Rule | None = None
    query: Query | None = None
    result: FetchResult | None = None
    matched: Sequence[RawSample] = ()
    samples: tuple[Sample, ...] = ()
    error: errors.AdapterError | None = None
    resolved: ResolvedRead | None = None
    """The cache entry of the read; None for delegated and failed reads."""


class MetricReader:
    """Reads metrics by the rules of a registry; drops the snapshots of rules that change."""

    def __init__(
        self,
        registry: RuleRegistry,
        sources: Sources,
        clock: Callable[[], datetime],
        *,
        delegate: Callable[[], Delegate | None] = lambda: None,
        price_per_day: Callable[[Rule], Price | None] = lambda _rule: None,
        selection: Callable[[Rule], str] = lambda rule: rule.query,
        on_read: Callable[[ReadTrace], None] = lambda _trace: None,
    ) -> None:
        """Create a reader; ``on_read`` is called after every read of a metric that has a rule.

        ``selection`` returns what determines the series of a rule, for messages.
        """
        self.registry = registry
        self.sources = sources
        self.clock = clock
        self.history = ReadHistory()
        self.unknown_reads = ReadHistory(_MAX_UNKNOWN_READS_BYTES)
        """Reads of metrics without a rule; separate, because callers can make up any number of names."""

        self.price_per_day = price_per_day
        self._delegate = delegate
        self._selection = selection
        self._on_read = on_read
        self._evaluations = EvaluationCache()
        registry.add_listener(self._drop_snapshots)

    @property
    def delegate(self) -> Delegate | None:
        """The external metrics server for metrics without a rule or for comparison; None if none is configured."""
        return self._delegate()

    def names(self, namespace: str) -> tuple[str, ...]:
        return self.registry.rules.names(namespace)

    async def read_samples(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return the current samples, at least one; raise ``MetricNotFound`` or ``MetricUnavailable`` otherwise."""
        trace = await self.read(namespace, metric, selector)
        if trace.error is None:
            return trace.samples
        try:
            raise trace.error
        finally:
            del trace  # the error's traceback refers to this frame: the cycle would keep the snapshot in memory

    async def read(self, namespace: str, metric: str, selector: Selector) -> ReadTrace:
        """Read a metric and return the trace; an error is part of the trace."""
        trace = self._resolve(ReadKey(namespace, metric, selector))
        rule, query = trace.rule, trace.query
        if rule is not None and query is not None:
            trace.result = await self.sources.of(rule).get(query, rule.interval, rule.deadline)
        return self._completed(trace)

    def read_now(self, namespace: str, metric: str, selector: Selector) -> ReadTrace | None:
        """Read a metric as `read` does; None, and no read, if that would have to wait for the backend."""
        trace = self._resolve(ReadKey(namespace, metric, selector))
        rule, query = trace.rule, trace.query
        if rule is not None and query is not None:
            trace.result = self.sources.of(rule).current(query, rule.interval, rule.deadline)
            if trace.result is None:
                return None
        return self._completed(trace)

    def _completed(self, trace: ReadTrace) -> ReadTrace:
        """Evaluate the result of a read and record it."""
        rule, now = trace.rule, self.clock()
        if rule is not None and trace.result is not None:
            self._evaluate(trace, rule, trace.result, now)
        self._record(trace, now)
        if rule is not None and not isinstance(rule, DelegatedRule):
            self._on_read(trace)
        return trace

    def peek(self, namespace: str, metric: str, selector: Selector) -> ReadTrace:
        """Return the trace that a read would have now, without fetching and without being recorded as a read."""
        trace = self._resolve(ReadKey(namespace, metric, selector))
        if trace.rule is not None and trace.query is not None:
            trace.result = self.sources.of(trace.rule).peek(trace.query)
            if trace.result is not None:
                self._evaluate(trace, trace.rule, trace.result, self.clock())
        return trace

    def interval(self, rule: Rule) -> tuple[timedelta, bool]:
        """Return the current interval of a rule's query, and whether it is adaptive."""
        fetcher, snapshots = self.sources.fetcher, self.sources.snapshots
        if rule.is_template:
            return rule.interval or DEFAULT_INTERVAL, False
        query = snapshot_query(rule)
        is_adaptive = rule.interval is None and fetcher.has_adaptive_interval(query.backend)
        default = MIN_ADAPTIVE_INTERVAL if is_adaptive else rule.interval or DEFAULT_INTERVAL
        return snapshots.interval(query) or default, is_adaptive

    def history_of(self, trace: ReadTrace) -> ReadHistory:
        is_unknown = trace.rule is None or isinstance(trace.rule, DelegatedRule)
        return self.unknown_reads if is_unknown else self.history

    def origin(self, rule: Rule) -> str:
        return f"delegated to {rule.backend}" if isinstance(rule, DelegatedRule) else self.registry.origin(rule)

    def drop_backends(self, names: set[str]) -> None:
        self._drop_snapshots(tuple(rule for rule in self.registry.rules if rule.backend in names))

    def _resolve(self, requested: ReadKey) -> ReadTrace:
        """Find the rule and build its query; a trace with an error has no query."""
        rules, (namespace, metric, selector) = self.registry.rules, requested
        version = rules.version(namespace)
        if (resolved := self._evaluations.get(version, requested)) is not None:
            return ReadTrace(resolved.key, resolved.rule, resolved.query, resolved=resolved)
        rule = rules.find(namespace, metric)
        if rule is None:
            return self._resolve_unknown(requested)
        trace = ReadTrace(ReadKey(namespace, rule.name, selector), rule)
        try:
            _check_selector(rule, selector)
            trace.query = template_query(rule, namespace, selector) if rule.is_template else snapshot_query(rule)
        except errors.AdapterError as error:
            trace.error = _error_of(error, rule)
        else:
            trace.resolved = self._evaluations.add(version, requested, ResolvedRead(trace.key, rule, trace.query))
        return trace

    def _resolve_unknown(self, key: ReadKey) -> ReadTrace:
        """Return the trace of a metric without a rule: delegated if configured, otherwise with an error."""
        delegate = self.delegate
        if delegate is not None and delegate.unknown_metrics:
            rule = delegated_rule(delegate, *key)
            try:
                _check_selector(rule, key.selector)
            except errors.InvalidRequest as error:
                return ReadTrace(key, rule, error=error)
            return ReadTrace(key, rule, delegated_query(rule, key.namespace))
        if refusal := self.registry.refusal(key.namespace, key.metric):
            return ReadTrace(key, error=errors.RuleRefused(f"metric {key.metric!r}: refused: {refusal}"))
        similar = ", ".join(map(repr, self.registry.rules.similar_names(key.namespace, key.metric)))
        hint = f"; did you mean {similar}?" if similar else ""
        message = f"no rule defines metric {key.metric!r} in namespace {key.namespace!r}{hint}"
        return ReadTrace(key, error=errors.MetricNotFound(message))

    def _evaluate(self, trace: ReadTrace, rule: Rule, result: FetchResult, now: datetime) -> None:
        """Select the matching series and apply the rule's policies, or reuse the last evaluation."""
        if isinstance(result, FetchFailure):
            trace.error = _error_of(result.error, rule)
            return
        cached = None if trace.resolved is None else trace.resolved.cached_evaluation(result, now)
        if cached is not None:
            trace.matched, trace.samples = cached.matched, cached.samples
            return
        trace.matched = result.series
        if not rule.is_template:
            label, fixed = rule.namespacing.label, rule.namespacing.fixed
            trace.matched = result.select(trace.key.selector, label, fixed or trace.key.namespace)
        try:
            repeated = result.repeated_labels(trace.matched)
            trace.samples = evaluate(rule, trace.matched, now, lambda: self._no_match(trace, rule, result), repeated)
        except errors.AdapterError as error:
            trace.error = _error_of(error, rule)
        else:
            if trace.resolved is not None:
                trace.resolved.store(result, trace.matched, trace.samples, now)

    def _no_match(self, trace: ReadTrace, rule: Rule, snapshot: Snapshot) -> str:
        # A template is shown as it was rendered and sent.
        selection = trace.query.text if rule.query and trace.query is not None else self._selection(rule)
        return describe_no_match(trace.key, rule, selection, snapshot)

    def _drop_snapshots(self, rules: tuple[Rule, ...]) -> None:
        """Drop the snapshots of these rules; the next read of a rule that still exists fetches again."""
        for rule in rules:
            if not rule.is_template:
                self.sources.snapshots.drop(snapshot_query(rule))

    def _record(self, trace: ReadTrace, now: datetime) -> None:
        record = self.history_of(trace).record(trace.key)
        if trace.query is not None:
            record.record_query(trace.query.text)
        if trace.result is not None:
            record.fetch_duration = trace.result.duration
            record.series_found = 0 if isinstance(trace.result, FetchFailure) else len(trace.result.series)
        record.series_matched = len(trace.matched)
        if trace.error is None:
            record.record_success(trace.samples, now)
        else:
            record.record_failure(trace.error, now)


def _error_of(error: errors.AdapterError, rule: Rule) -> errors.AdapterError:
    """Return a new error for this read. Reads share a cached error, and each raise would extend its traceback."""
    if isinstance(error, errors.MetricUnavailable):
        return error.with_context(rule.name, rule.backend or STATIC)
    return type(error)(error.message)


def _check_selector(rule: Rule, selector: Selector) -> None:
    if len(selector.requirements) > MAX_REQUIREMENTS or selector.length > MAX_SELECTOR_LENGTH:
        raise errors.InvalidRequest(
            f"metric {rule.name!r}: the selector is larger than {MAX_REQUIREMENTS} requirements or"
            f" {MAX_SELECTOR_LENGTH} characters: use fewer labels and values"
        )
    for requirement in selector.requirements if rule.labels else ():
        if requirement.key not in rule.labels:
            raise errors.InvalidRequest(
                f"metric {rule.name!r}: label {requirement.key!r} is not allowed in selectors;"
                f" allowed labels: {', '.join(rule.labels)}"
            )
