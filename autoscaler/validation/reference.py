"""Validates references to other objects: kind, name and API version."""

from collections.abc import Iterator

from autoscaler.types.record import Record
from autoscaler.types.spec import ObjectReference
from autoscaler.validation.problem import ValidationProblem, invalid, required
from autoscaler.values.names import path_segment_problems


class ApiVersionRule(Record):
    """How a reference's API version is validated."""

    may_be_core: bool = False
    """The version may have no group, such as ``v1``."""

    unchecked: bool = False
    """Not validated, because the stored object already has it."""


def reference_problems(reference: ObjectReference, path: str, rule: ApiVersionRule) -> Iterator[ValidationProblem]:
    """Yield the problems of a reference."""
    yield from _segment_problems(reference.kind, f"{path}.kind")
    yield from _segment_problems(reference.name, f"{path}.name")
    if problem := api_version_problem(reference, rule):
        yield invalid(f"{path}.apiVersion", reference.api_version, problem)


def api_version_problem(reference: ObjectReference, rule: ApiVersionRule) -> str | None:
    """Return the problem of a reference's API version; None if it is valid."""
    version = reference.api_version
    if rule.unchecked:
        return None
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    group, slash, _ = version.partition("/")
    if not rule.may_be_core and not (slash and group):
        return "apiVersion must specify API group"
    return None


def _segment_problems(text: str, path: str) -> Iterator[ValidationProblem]:
    if not text:
        yield required(path)
    for detail in path_segment_problems(text):
        yield invalid(path, text, detail)
