"""The authenticated identity of a request."""

from autoscaler.types.record import Record


class Caller(Record, frozen=True, cache_hash=True):
    """A user as in the status of a TokenReview; part of the key of cached authorizations."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Extra fields as pairs of name and values, sorted by name."""


ANONYMOUS = Caller(name="system:anonymous", groups=("system:unauthenticated",))
"""The caller of a request without credentials."""
