"""Translation of GraphQL errors of NerdGraph into ``BackendError``s. No I/O.

NerdGraph reports most errors in a response with status 200, next to the results of other queries.
"""

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

_MAX_DETAIL: Final = 300
_PERMISSION_DENIED: Final = (BackendUnauthorized, "permission denied: the user of apiKeyFile cannot read this account")
_INVALID_KEY: Final = (BackendUnauthorized, "authentication failed: check apiKeyFile")
_SERVER_ERROR: Final = (BackendRejected, "New Relic server error")
_TIMEOUT: Final = (BackendTimeout, "the query timed out")
_RATE_LIMIT: Final = (BackendBusy, "New Relic rate limit exceeded")
_INVALID_QUERY: Final = (BadQuery, "invalid NRQL query")
_BY_CLASS: Final[dict[str, tuple[type[BackendError], str]]] = {
    "ACCESS_DENIED": _PERMISSION_DENIED,
    "BAD_API_KEY": _INVALID_KEY,
    "FORBIDDEN": _PERMISSION_DENIED,
    "INVALID_API_KEY": _INVALID_KEY,
    "UNAUTHENTICATED": _INVALID_KEY,
    "UNAUTHORIZED": _PERMISSION_DENIED,
    "INTERNAL_SERVER_ERROR": _SERVER_ERROR,
    "SERVER_ERROR": _SERVER_ERROR,
    "SERVICE_UNAVAILABLE": _SERVER_ERROR,
    "TIMEOUT": _TIMEOUT,
    "TOO_MANY_REQUESTS": _RATE_LIMIT,
    "RATE_LIMITED": _RATE_LIMIT,
}
_BY_MESSAGE: Final[tuple[tuple[str, tuple[type[BackendError], str]], ...]] = (
    ("nrql syntax error", _INVALID_QUERY),
    ("invalid value", _INVALID_QUERY),
    ("unknown function", _INVALID_QUERY),
    ("access denied", _PERMISSION_DENIED),
    ("not authorized", _PERMISSION_DENIED),
    ("api key", _INVALID_KEY),
    ("rate limit", _RATE_LIMIT),
    ("too many requests", _RATE_LIMIT),
    ("timed out", _TIMEOUT),
)
"""Checked before the class: New Relic reports even a syntax error with the class SERVER_ERROR."""


class _ErrorExtensions(msgspec.Struct, rename={"error_class": "errorClass"}):
    error_class: str | None = None
    error_code: str | None = None
    code: str | None = None


class GraphQLError(msgspec.Struct):
    """An error, and the path of the field that is null because of it."""

    message: str = ""
    path: list[str | int] | None = None
    extensions: _ErrorExtensions | None = None

    @property
    def alias(self) -> str:
        """Alias of the query that failed, from the path ``actor.ALIAS``; empty if the whole request failed."""
        return str(self.path[1]) if self.path is not None and len(self.path) > 1 else ""


def from_graphql_error(error: GraphQLError) -> BackendError:
    """Return the error for an entry of ``errors``; the message of New Relic becomes the detail."""
    message = error.message.lower()
    known = next((known for text, known in _BY_MESSAGE if text in message), None)
    if known is None and error.extensions is not None:
        codes = (error.extensions.error_class, error.extensions.error_code, error.extensions.code)
        known = next((_BY_CLASS[code] for code in codes if code in _BY_CLASS), None)
    error_type, text = known or (BadQuery if error.alias else BackendRejected, "New Relic could not run the query")
    return error_type(text, detail=error.message[:_MAX_DETAIL])
