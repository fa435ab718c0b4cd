"""The one base of every value in this package: immutable, compared by value, camelCase on the wire."""

from typing import dataclass_transform

import msgspec


@dataclass_transform(
    frozen_default=True, field_specifiers=(msgspec.field,)
)  # tells the type checker that all are frozen
class Record(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An immutable value.

    ``gc=False``: records only hold values and tuples of records, so they cannot form a cycle, and a fleet of them
    should not be walked by the garbage collector.
    """
