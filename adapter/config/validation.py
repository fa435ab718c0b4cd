"""Validation of the configuration beyond the types of its settings."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from adapter.backends import configuration as backends
from adapter.config.model import Config, Limits, Serving
from adapter.decoding.problem import Problem
from adapter.rules import problems as rules

_NOT_POSITIVE = "must be greater than 0"


def problems(config: Config, rule_indexes: Sequence[int] | None = None) -> Iterator[Problem]:
    """Yield all problems of a configuration.

    ``rule_indexes`` are the indexes that its rules have in the file, where some rules of the file were left out.
    """
    yield from _serving_problems(config.serving)
    yield from _limit_problems(config.limits)
    yield from backends.problems(config.backends)
    indexes = range(len(config.rules)) if rule_indexes is None else rule_indexes
    by_path = {f"rules[{index}]": rule for index, rule in zip(indexes, config.rules, strict=True)}
    yield from rules.problems(by_path, backends=config.backends)
    for path, rule in by_path.items():
        yield from backends.query_problems(rule, config.backends.get(rule.backend), path)
    yield from _prometheus_adapter_problems(config)
    yield from _delegate_problems(config)


def _serving_problems(serving: Serving) -> Iterator[Problem]:
    if not 0 <= serving.port <= 65535:
        yield Problem("serving.port", "must be between 0 and 65535", value=serving.port)
    if serving.tls.files is not None and serving.tls.self_managed is not None:
        yield Problem("serving.tls", "files and selfManaged are mutually exclusive")


def _limit_problems(limits: Limits) -> Iterator[Problem]:
    can_be_zero = {"shutdown_delay", "drain_timeout"}
    for field, key in zip(limits.__struct_fields__, limits.__struct_encode_fields__, strict=True):
        value = getattr(limits, field)
        if field not in can_be_zero and value <= type(value)():
            yield Problem(f"limits.{key}", _NOT_POSITIVE, value=value)


def _prometheus_adapter_problems(config: Config) -> Iterator[Problem]:
    for index, entry in enumerate(config.prometheus_adapter):
        path, backend = f"prometheusAdapter[{index}]", config.backends.get(entry.backend)
        if backend is None or backend.kind != "prometheus":
            yield Problem(f"{path}.backend", f"no Prometheus backend {entry.backend!r} under backends")
        for key, duration in (("relistInterval", entry.relist_interval), ("interval", entry.interval)):
            if duration <= timedelta():
                yield Problem(f"{path}.{key}", _NOT_POSITIVE)
        if entry.file in {other.file for other in config.prometheus_adapter[:index]}:
            yield Problem(f"{path}.file", "is listed twice")


def _delegate_problems(config: Config) -> Iterator[Problem]:
    delegate = config.delegate
    if delegate is None:
        return
    backend = config.backends.get(delegate.backend)
    if backend is None or backend.kind != "upstream":
        yield Problem("delegate.backend", f"no upstream backend {delegate.backend!r} under backends")
    if not delegate.unknown_metrics and not delegate.compare:
        yield Problem("delegate", "has no effect", hint="set unknownMetrics or compare to true")
    if not 0 <= delegate.tolerance < 1:
        yield Problem("delegate.tolerance", "must be at least 0 and less than 1", value=delegate.tolerance)
    durations = {
        "interval": delegate.interval,
        "deadline": delegate.deadline,
        "maxSampleAge": delegate.max_sample_age,
    }
    yield from (Problem(f"delegate.{key}", _NOT_POSITIVE) for key, value in durations.items() if value <= timedelta())
