"""Validates metadata: names, labels, annotations, and fields that are immutable on update."""

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.types.autoscaler import Metadata
from autoscaler.validation.problem import EnumValue, NameRule, ValidationProblem, invalid, name_problems, too_long
from autoscaler.values.names import (
    annotation_key_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
    mask_trailing_dash,
    path_segment_prefix_problems,
    path_segment_problems,
)

MAX_ANNOTATION_BYTES: Final = 256 * 1024


def created_metadata_problems(metadata: Metadata) -> Iterator[ValidationProblem]:
    """Yield the problems of a new autoscaler's metadata; its name must be a DNS subdomain."""
    return _standalone(
        metadata, dns_subdomain_problems, lambda prefix: dns_subdomain_problems(mask_trailing_dash(prefix))
    )


def stored_metadata_problems(metadata: Metadata) -> Iterator[ValidationProblem]:
    """Yield the problems of an updated object's metadata by the rules that the API server applies to all kinds."""
    return _standalone(metadata, path_segment_problems, path_segment_prefix_problems)


def updated_metadata_problems(metadata: Metadata, old: Metadata) -> Iterator[ValidationProblem]:
    """Yield the problems of an update: changed immutable fields, the generation, and invalid labels and annotations."""
    if not metadata.resource_version:
        yield invalid("metadata.resourceVersion", "", "must be specified for an update")
    yield from _negative_generation(metadata)
    if metadata.generation < old.generation:
        yield invalid("metadata.generation", metadata.generation, "must not be decremented")
    for field, value, before in (
        ("name", metadata.name, old.name),
        ("namespace", metadata.namespace, old.namespace),
        ("uid", EnumValue(metadata.uid), old.uid),
    ):
        if value != before:
            yield invalid(f"metadata.{field}", value, "field is immutable")
    yield from _label_and_annotation_problems(metadata)


def _standalone(metadata: Metadata, name_rule: NameRule, prefix_rule: NameRule) -> Iterator[ValidationProblem]:
    """Yield the problems that do not depend on the previous version of the object."""
    if metadata.generate_name:
        for detail in prefix_rule(metadata.generate_name):
            yield invalid("metadata.generateName", metadata.generate_name, detail)
    yield from name_problems("metadata.name", metadata.name, name_rule, "name or generateName is required")
    yield from name_problems("metadata.namespace", metadata.namespace, dns_label_problems)
    yield from _negative_generation(metadata)
    yield from _label_and_annotation_problems(metadata)


def _negative_generation(metadata: Metadata) -> Iterator[ValidationProblem]:
    if metadata.generation < 0:
        yield invalid("metadata.generation", metadata.generation, "must be greater than or equal to 0")


def _label_and_annotation_problems(metadata: Metadata) -> Iterator[ValidationProblem]:
    # Upstream iterates over maps in random order; sorting by text makes the order stable.
    yield from sorted(_label_problems(metadata.labels or {}), key=str)
    yield from sorted(_annotation_problems(metadata.annotations or {}), key=str)


def _label_problems(labels: Mapping[str, str]) -> Iterator[ValidationProblem]:
    for key, value in labels.items():
        for detail in label_key_problems(key):
            yield invalid("metadata.labels", key, detail)
        for detail in label_value_problems(value):
            yield invalid("metadata.labels", value, detail)


def _annotation_problems(annotations: Mapping[str, str]) -> Iterator[ValidationProblem]:
    for key in annotations:
        for detail in annotation_key_problems(key):
            yield invalid("metadata.annotations", key, detail)
    if sum(len(text.encode()) for entry in annotations.items() for text in entry) > MAX_ANNOTATION_BYTES:
        yield too_long("metadata.annotations", MAX_ANNOTATION_BYTES)
