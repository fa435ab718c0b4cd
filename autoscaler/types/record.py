"""Base class of all data types: immutable, compared by value, camelCase in JSON."""

from typing import dataclass_transform

import msgspec


@dataclass_transform(
    frozen_default=True, field_specifiers=(msgspec.field,)
)  # for type checkers: all subclasses are frozen dataclasses
class Record(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An immutable value.

    ``gc=False``: records hold only values and tuples of records, so they cannot form reference cycles, and the garbage
    collector does not have to traverse the records of thousands of autoscalers.
    """
