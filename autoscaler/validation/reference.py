"""Validates references to other objects: kind, name and API version."""

from collections.abc import Iterator
from enum import Enum, auto

from autoscaler.types.spec import ObjectReference
from autoscaler.validation.problem import ValidationProblem, invalid, name_problems
from autoscaler.values.names import path_segment_problems


class ApiVersionRule(Enum):
    """How a reference's API version is validated."""

    GROUP_REQUIRED = auto()
    CORE_ALLOWED = auto()
    """The version may have no group, such as ``v1``."""

    UNCHECKED = auto()
    """Not validated, because the stored object already has it."""


def reference_problems(reference: ObjectReference, path: str, rule: ApiVersionRule) -> Iterator[ValidationProblem]:
    yield from name_problems(f"{path}.kind", reference.kind, path_segment_problems)
    yield from name_problems(f"{path}.name", reference.name, path_segment_problems)
    if detail := api_version_problem(reference.api_version, rule):
        yield invalid(f"{path}.apiVersion", reference.api_version, detail)


def api_version_problem(version: str, rule: ApiVersionRule) -> str | None:
    """Return the problem of an API version; None if it is valid."""
    if rule is ApiVersionRule.UNCHECKED:
        return None
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if rule is ApiVersionRule.GROUP_REQUIRED and version.find("/") < 1:
        return "apiVersion must specify API group"
    return None
