"""What is wrong with a reference to another object: its kind, its name, its API version."""

from collections.abc import Iterator

from autoscaler.types.record import Record
from autoscaler.types.spec import ObjectReference
from autoscaler.validation.problem import Problem, invalid, required
from autoscaler.values.names import path_segment_problems


class ApiVersionRule(Record):
    """How strictly a reference's API version is looked at."""

    may_be_core: bool = False
    """The version may be without a group, as ``v1`` is."""

    unchecked: bool = False
    """What is stored was accepted once, so it stays accepted."""


def reference_problems(reference: ObjectReference, path: str, rule: ApiVersionRule) -> Iterator[Problem]:
    """Yield what is wrong with a reference."""
    yield from _segment_problems(reference.kind, f"{path}.kind")
    yield from _segment_problems(reference.name, f"{path}.name")
    if complaint := api_version_complaint(reference, rule):
        yield invalid(f"{path}.apiVersion", reference.api_version, complaint)


def api_version_complaint(reference: ObjectReference, rule: ApiVersionRule) -> str | None:
    """Say what is wrong with a reference's API version, if anything."""
    version = reference.api_version
    if rule.unchecked:
        return None
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    group, slash, _ = version.partition("/")
    if not rule.may_be_core and not (slash and group):
        return "apiVersion must specify API group"
    return None


def _segment_problems(text: str, path: str) -> Iterator[Problem]:
    if not text:
        yield required(path)
    for detail in path_segment_problems(text):
        yield invalid(path, text, detail)
