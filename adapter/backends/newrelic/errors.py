"""What NerdGraph says went wrong, mostly inside of an answer that is otherwise good, as one of our errors; pure."""

from typing import Final

import msgspec

from adapter.errors import (
    BackendBusy,
    BackendError,
    BackendRejected,
    BackendTimeout,
    BackendUnauthorized,
    BadQuery,
)

_LONGEST: Final = 300
_BY_CLASS: Final[dict[str, tuple[type[BackendError], str]]] = {
    "ACCESS_DENIED": (BackendUnauthorized, "our key may not read that account"),
    "BAD_API_KEY": (BackendUnauthorized, "it does not know our key"),
    "FORBIDDEN": (BackendUnauthorized, "our key may not read that account"),
    "INVALID_API_KEY": (BackendUnauthorized, "it does not know our key"),
    "UNAUTHENTICATED": (BackendUnauthorized, "it does not know our key"),
    "UNAUTHORIZED": (BackendUnauthorized, "our key may not read that account"),
    "INTERNAL_SERVER_ERROR": (BackendRejected, "it failed to answer"),
    "SERVER_ERROR": (BackendRejected, "it failed to answer"),
    "SERVICE_UNAVAILABLE": (BackendRejected, "it failed to answer"),
    "TIMEOUT": (BackendTimeout, "the query took too long"),
    "TOO_MANY_REQUESTS": (BackendBusy, "asked more often than New Relic allows"),
    "RATE_LIMITED": (BackendBusy, "asked more often than New Relic allows"),
}
_BY_WORDS: Final[tuple[tuple[str, tuple[type[BackendError], str]], ...]] = (
    ("nrql syntax error", (BadQuery, "it does not understand the query")),
    ("invalid value", (BadQuery, "it does not understand the query")),
    ("unknown function", (BadQuery, "it does not understand the query")),
    ("access denied", (BackendUnauthorized, "our key may not read that account")),
    ("not authorized", (BackendUnauthorized, "our key may not read that account")),
    ("api key", (BackendUnauthorized, "it does not know our key")),
    ("rate limit", (BackendBusy, "asked more often than New Relic allows")),
    ("too many requests", (BackendBusy, "asked more often than New Relic allows")),
    ("timed out", (BackendTimeout, "the query took too long")),
)
"""What the class does not say the message may: a syntax error, too, is called a server's."""


class Extensions(msgspec.Struct, rename={"error_class": "errorClass"}):
    """What kind of error."""

    error_class: str | None = None
    error_code: str | None = None
    code: str | None = None


class GraphError(msgspec.Struct):
    """One error, and the place in the answer that is empty for it."""

    message: str = ""
    path: list[str | int] | None = None
    extensions: Extensions | None = None

    def place(self) -> str:
        """Say whose it is: ``actor`` comes first, then the name of a question; nothing, if it is everyone's."""
        return str(self.path[1]) if self.path is not None and len(self.path) > 1 else ""


def of_error(error: GraphError) -> BackendError:
    """Say what is the matter; what New Relic said is the detail."""
    said, lowered = error.message[:_LONGEST], error.message.lower()
    found = next((told for words, told in _BY_WORDS if words in lowered), None)
    if found is None and error.extensions is not None:
        kinds = (error.extensions.error_class, error.extensions.error_code, error.extensions.code)
        found = next((_BY_CLASS[kind] for kind in kinds if kind in _BY_CLASS), None)
    made, words = found or (BadQuery if error.place() else BackendRejected, "it cannot answer the query")
    return made(words, detail=said)
