"""Validation of the configuration beyond the types of its settings."""

from collections.abc import Iterator, Sequence

from adapter.backends import configuration as backends
from adapter.config.model import Config, Limits, Serving, TenantLimits
from adapter.decoding.problem import Problem
from adapter.rules import problems as rules
from autoscaler.types.record import Record


def problems(config: Config, rule_indexes: Sequence[int] | None = None) -> Iterator[Problem]:
    """Yield all problems of a configuration.

    ``rule_indexes`` has the index of each rule in the file, if some rules of the file were left out.
    """
    yield from _serving_problems(config.serving)
    can_be_zero = {"shutdown_delay", "drain_timeout"}
    yield from _not_positive(
        "limits", config.limits, *(field for field in Limits.__struct_fields__ if field not in can_be_zero)
    )
    yield from _not_positive("tenantLimits", config.tenant_limits, *TenantLimits.__struct_fields__)
    yield from _not_positive("decisionHistory", config.decision_history, "max_bytes", "max_age")
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


def _not_positive(path: str, record: Record, *fields: str) -> Iterator[Problem]:
    keys = dict(zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True))
    for field in fields:
        value = getattr(record, field)
        if value <= type(value)():
            yield Problem(f"{path}.{keys[field]}", "must be greater than 0", value=value)


def _prometheus_adapter_problems(config: Config) -> Iterator[Problem]:
    for index, entry in enumerate(config.prometheus_adapter):
        path, backend = f"prometheusAdapter[{index}]", config.backends.get(entry.backend)
        if backend is None or backend.kind != "prometheus":
            yield Problem(f"{path}.backend", f"no Prometheus backend {entry.backend!r} under backends")
        yield from _not_positive(path, entry, "relist_interval", "interval")
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
    yield from _not_positive("delegate", delegate, "interval", "deadline", "max_sample_age")
