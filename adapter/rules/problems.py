"""Validation of rules."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta

from adapter.decoding.duration import format_duration
from adapter.decoding.problem import Problem
from adapter.rules.go_template.lexer import TemplateError
from adapter.rules.query_builder import cached_template, render_template
from adapter.rules.rule import INDEX, LABEL_MATCHERS, Rule, TenantRule
from autoscaler.values.names import label_key_problems, path_segment_problems

_SUBRESOURCE = "the API server authorizes a request for it as one for the namespace's own {name!r} subresource"
_RESERVED_NAMES = {
    "status": _SUBRESOURCE.format(name="status"),
    "finalize": _SUBRESOURCE.format(name="finalize"),
    INDEX: "it is the name under which all metrics of a namespace are listed",
}
_MAX_NAME_LENGTH = 253
_MAX_DURATION = timedelta(days=3650)  # subtracting a longer duration from the current time could overflow datetime
_MOMENT = timedelta(microseconds=1)
_MIN_INTERVAL = timedelta(seconds=1)  # HPAs read every 15 s; a shorter interval only adds load on the backend
_MIN_TENANT_INTERVAL = timedelta(seconds=5)  # tenants share the backend
_MIN_TENANT_DEADLINE = timedelta(seconds=1)  # so short deadlines that a working backend misses them look like failures
_MAX_TENANT_DEADLINE = timedelta(seconds=60)  # a query in progress occupies a connection


def problems(rules: Mapping[str, Rule], backends: Collection[str] | None = None) -> Iterator[Problem]:
    """Yield every problem of rules by path. ``backends`` are the names of the configured backends, None if unknown."""
    seen: dict[tuple[str, str], str] = {}
    for path, rule in rules.items():
        yield from rule_problems(rule, path, backends)
        for name in rule.names:
            for namespace in rule.namespaces or ("",):
                earlier = seen.setdefault((name.lower(), namespace), path)
                if earlier != path:
                    where = f" in namespace {namespace!r}" if namespace else ""
                    yield Problem(f"{path}.name", f"{name!r} is already defined{where} by {earlier}")


def rule_problems(rule: Rule, path: str, backends: Collection[str] | None = None) -> Iterator[Problem]:
    yield from (Problem(f"{path}.name", problem) for problem in name_problems(rule.name))
    for number, alias in enumerate(rule.aliases):
        yield from (Problem(f"{path}.aliases[{number}]", problem) for problem in name_problems(alias))
    for number, label in enumerate(rule.labels):
        yield from (
            Problem(f"{path}.labels[{number}]", f"{label!r} {problem}") for problem in label_key_problems(label)
        )
    yield from _source_problems(rule, path, backends)
    yield from _time_problems(rule, path)
    if rule.namespacing.fixed and not rule.namespacing.label:
        yield Problem(f"{path}.namespace.label", "required with fixed: it names the label that holds the namespace")


def _source_problems(rule: Rule, path: str, backends: Collection[str] | None) -> Iterator[Problem]:
    has_query = bool(rule.query or rule.parameters)
    if rule.static and (rule.backend or has_query):
        yield Problem(f"{path}.static", "cannot be combined with backend, query or parameters")
    elif has_query and not rule.backend:
        yield Problem(f"{path}.backend", f"required with query or parameters{_configured(backends)}")
    elif rule.backend and not has_query:
        yield Problem(f"{path}.query", "query or parameters is required with a backend")
    elif not rule.static and not rule.backend:
        yield Problem(f"{path}.static", "at least one series is required if no backend is set")
    if rule.query and rule.parameters:
        yield Problem(f"{path}.parameters", "cannot be combined with query")
    if isinstance(rule, TenantRule) and "<<" in rule.query.replace(LABEL_MATCHERS, ""):
        # Not rendered: a template can build a text of any size.
        yield Problem(f"{path}.query", f"the only template action allowed here is {LABEL_MATCHERS}")
    elif "<<" in rule.query and not rule.series:
        try:
            render_template(cached_template(rule.query), "", ())
        except TemplateError as error:
            yield Problem(f"{path}.query", f"invalid template: {error}")
    if rule.backend and backends is not None and rule.backend not in backends:
        yield Problem(f"{path}.backend", f"backend {rule.backend!r} is not configured{_configured(backends)}")


def _configured(backends: Collection[str] | None) -> str:
    return f"; configured backends: {', '.join(sorted(backends))}" if backends else "; no backends are configured"


def _time_problems(rule: Rule, path: str) -> Iterator[Problem]:
    """Yield the times that are out of range; the ranges of a tenant's rule are narrower."""
    ranges = {
        "maxSampleAge": (rule.max_sample_age, _MOMENT, _MAX_DURATION),
        "deadline": (rule.deadline, _MOMENT, _MAX_DURATION),
    }
    if rule.interval is not None:
        ranges["interval"] = (rule.interval, _MIN_TENANT_INTERVAL if rule.tenant else _MIN_INTERVAL, _MAX_DURATION)
    if rule.tenant:
        ranges["deadline"] = (rule.deadline, _MIN_TENANT_DEADLINE, _MAX_TENANT_DEADLINE)
    for number, series in enumerate(rule.static):
        ranges[f"static[{number}].age"] = (series.age, timedelta(), _MAX_DURATION)
    for key, (value, minimum, maximum) in ranges.items():
        if value < minimum:
            message = "greater than 0" if minimum == _MOMENT else f"at least {format_duration(minimum)}"
            yield Problem(f"{path}.{key}", f"must be {message}")
        elif value > maximum:
            yield Problem(f"{path}.{key}", f"must be at most {format_duration(maximum)}")


def name_problems(name: str) -> list[str]:
    if not name:
        return ["must not be empty"]
    if reason := _RESERVED_NAMES.get(name.lower()):
        return [f"{name!r} cannot be a metric's name: {reason}"]
    reasons = [f"{name!r} {problem}" for problem in path_segment_problems(name)]
    if len(name) > _MAX_NAME_LENGTH:
        reasons.append(f"must be no more than {_MAX_NAME_LENGTH} characters")
    if not name.isprintable():
        reasons.append(f"{name!r} may not contain non-printable characters")
    return reasons
