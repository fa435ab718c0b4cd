"""Everything that can be wrong with rules, each problem with its path."""

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta

from adapter.rules.go_template.nodes import TemplateError
from adapter.rules.query_template import filled, parsed
from adapter.rules.rule import INDEX, Rule
from autoscaler.values.names import label_key_problems, path_segment_problems

_SUBRESOURCE = "the API server authorizes a request for it as one for the namespace's own {name!r} subresource"
_TAKEN = {
    "status": _SUBRESOURCE.format(name="status"),
    "finalize": _SUBRESOURCE.format(name="finalize"),
    INDEX: "it is the name under which all metrics of a namespace are listed",
}
_LONGEST = 253
_LONGEST_TIME = timedelta(days=3650)  # as long as anyone can mean, and no date is so far back that there is none
_SHORTEST = timedelta(seconds=1)  # more often would be a load on the metric system that no reader has a use for


def problems(rules: Iterable[Rule], at: str = "rules", backends: Collection[str] | None = None) -> Iterator[str]:
    """Say everything that is wrong with these rules; ``backends`` are those that there are, None if that is unknown."""
    seen: dict[tuple[str, str], int] = {}
    for number, rule in enumerate(rules):
        path = f"{at}[{number}]"
        yield from rule_problems(rule, path, backends)
        for name in rule.names:
            for namespace in rule.namespaces or ("",):
                earlier = seen.setdefault((name.lower(), namespace), number)
                if earlier != number:
                    where = f" in namespace {namespace!r}" if namespace else ""
                    yield f"{path}.name: {name!r} is defined{where} by {at}[{earlier}] already"


def rule_problems(rule: Rule, at: str, backends: Collection[str] | None = None) -> Iterator[str]:
    """Say everything that is wrong with one rule, whatever the others are."""
    yield from (f"{at}.name: {problem}" for problem in name_problems(rule.name))
    for number, alias in enumerate(rule.aliases):
        yield from (f"{at}.aliases[{number}]: {problem}" for problem in name_problems(alias))
    for number, label in enumerate(rule.labels):
        yield from (f"{at}.labels[{number}]: {label!r} {problem}" for problem in label_key_problems(label))
    yield from _source_problems(rule, at, backends)
    yield from _time_problems(rule, at)
    if rule.namespacing.fixed and not rule.namespacing.label:
        yield f"{at}.namespace.label: is needed with fixed: it says which label holds the namespace"


def _source_problems(rule: Rule, at: str, backends: Collection[str] | None) -> Iterator[str]:
    asks = bool(rule.query or rule.parameters)
    if rule.static and (rule.backend or asks):
        yield f"{at}.static: excludes backend, query and parameters"
    elif asks and not rule.backend:
        yield f"{at}.backend: is needed with query or parameters{_known(backends)}"
    elif rule.backend and not asks:
        yield f"{at}.query: this or parameters is needed with a backend"
    elif not rule.static and not rule.backend:
        yield f"{at}.static: at least one series is needed"
    if "<<" in rule.query and not rule.series:
        try:
            filled(parsed(rule.query), "", ())
        except TemplateError as error:
            yield f"{at}.query: the template is wrong: {error}"
    if rule.backend and backends is not None and rule.backend not in backends:
        yield f"{at}.backend: there is no backend {rule.backend!r}{_known(backends)}"


def _known(backends: Collection[str] | None) -> str:
    return f"; the backends are {', '.join(sorted(backends))}" if backends else "; none is configured under backends"


def _time_problems(rule: Rule, at: str) -> Iterator[str]:
    for key, time in (("maxSampleAge", rule.max_sample_age), ("deadline", rule.deadline)):
        if time <= timedelta():
            yield f"{at}.{key}: must be more than nothing"
    times = {"maxSampleAge": rule.max_sample_age, "deadline": rule.deadline, "interval": rule.interval}
    ages = {f"static[{number}].age": series.age for number, series in enumerate(rule.static)}
    for key, time in (times | ages).items():
        if time > _LONGEST_TIME:
            yield f"{at}.{key}: must be at most {_LONGEST_TIME / timedelta(hours=1):g}h"
    if rule.interval < _SHORTEST:
        yield f"{at}.interval: must be at least {_SHORTEST.total_seconds():g}s"
    if rule.query and rule.parameters:
        yield f"{at}.parameters: excludes query"


def name_problems(name: str) -> list[str]:
    """Say what keeps a text from being a metric's name."""
    if not name:
        return ["must not be empty"]
    if why := _TAKEN.get(name.lower()):
        return [f"{name!r} cannot be a metric's name: {why}"]
    found = [f"{name!r} {problem}" for problem in path_segment_problems(name)]
    if len(name) > _LONGEST:
        found.append(f"must be no more than {_LONGEST} characters")
    if not name.isprintable():
        found.append(f"{name!r} may not contain characters that do not print")
    return found
