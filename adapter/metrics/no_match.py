"""The message of a read that no series matches: what was searched for, and which part of it matches nothing."""

from typing import Final

from adapter.metrics.read_history import ReadKey
from adapter.metrics.snapshot import Snapshot
from adapter.rules.rule import Rule, TenantRule
from autoscaler.values.selector import Selector

_MAX_LENGTH: Final = 300
_EVERYTHING: Final = Selector()


def describe_no_match(key: ReadKey, rule: Rule, selection: str, snapshot: Snapshot) -> str:
    """Return why no series of a snapshot matches a read; ``selection`` determines the series of the query.

    The message for a tenant does not depend on series of other namespaces.
    """
    label, namespace = rule.namespacing.label, rule.namespacing.fixed or key.namespace
    selected = f": {_shortened(selection)}" if selection else ""
    of_namespace = f" of namespace {namespace!r} (label {label})" if label else ""
    if rule.is_template or not (snapshot.series or (label and rule.tenant)):
        return f"the query{_restriction(key, rule)} returned no series{selected}"
    visible = snapshot.select(_EVERYTHING, label, namespace)
    if visible:
        unmatched = _unmatched(key.selector, label, namespace, of_namespace, snapshot)
        return f"{unmatched}; query{selected}" if selected else unmatched
    if not rule.tenant and not any(label in series.labels for series in snapshot.series):
        return f"no series has the label {label!r} (namespace.label of the rule){selected}"
    return f"no series{of_namespace}, to which reads are restricted{selected}"


def _restriction(key: ReadKey, rule: Rule) -> str:
    """Return the restriction to a namespace that the query itself contains, if any."""
    label = rule.restricted_by if isinstance(rule, TenantRule) else ""
    if rule.is_template:
        label = label or rule.namespacing.label
    namespace = rule.namespacing.fixed or key.namespace
    return f", restricted to namespace {namespace!r} (label {label})," if label else ""


def _unmatched(selector: Selector, label: str, namespace: str, of_namespace: str, snapshot: Snapshot) -> str:
    """Return the requirements of a selector that no series meets."""
    unmatched = [each for each in selector.requirements if not snapshot.select(Selector([each]), label, namespace)]
    if not unmatched:
        return f"no series{of_namespace} matches all of {selector}"
    visible = snapshot.select(_EVERYTHING, label, namespace)
    missing = [each.key for each in unmatched if not any(each.key in series.labels for series in visible)]
    if missing:
        return f"no series{of_namespace} has the label {' or '.join(map(repr, dict.fromkeys(missing)))}"
    return f"no series{of_namespace} matches {' or '.join(map(str, unmatched))}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."
