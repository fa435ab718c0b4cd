"""Who is asking. Made by authentication, carried to authorization and to the access log; the rest knows no header."""

from collections.abc import Mapping

from autoscaler.types.record import Record


class Caller(Record, frozen=True):
    """One authenticated (or anonymous) identity, in the words of a review."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


ANONYMOUS = Caller(name="system:anonymous", groups=("system:unauthenticated",))
"""Whoever shows no credentials at all. Whoever shows bad ones is refused instead."""
