"""Who is asking. Made by authentication, carried to authorization and to the access log; the rest knows no header."""

from autoscaler.types.record import Record


class Caller(Record, frozen=True, cache_hash=True):
    """One authenticated (or anonymous) identity, in the words of a review; what is remembered of it has it as key."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """More about it, as pairs of a name and its values, in the names' order."""


ANONYMOUS = Caller(name="system:anonymous", groups=("system:unauthenticated",))
"""Whoever shows no credentials at all. Whoever shows bad ones is refused instead."""
