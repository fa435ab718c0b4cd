"""Errors as responses: always a metav1 Status, never with a Retry-After header.

With Retry-After, client-go would wait and retry up to ten times in one of the few workers that all HPAs share.
``details.retryAfterSeconds`` is omitted too, because Kubernetes' servers turn it into the header.
"""

import logging
from typing import Any, Final

from aiohttp import web

from adapter import errors
from adapter.server import serialization
from adapter.server.content_negotiation import JSON

_log = logging.getLogger(__name__)

COMMON_HEADERS: Final = {"Server": "steadyscale", "Cache-Control": "no-cache, private"}
"""Default headers of every response. ``Server`` replaces aiohttp's, which names library versions."""

_HEADERS_BY_CODE: Final = {403: {"X-Content-Type-Options": "nosniff"}, 405: {"Allow": "GET"}}


def response(error: Exception, *, pretty: bool = False) -> web.Response:
    """Return the Status of an error; details of an unexpected error are logged and not sent to the caller."""
    if not isinstance(error, errors.AdapterError):
        _log.error("unexpected error in a request", exc_info=error)
        error = errors.AdapterError("Internal error occurred: the cause is in the adapter's log")
    return web.Response(
        status=error.code,
        body=serialization.to_bytes(status(error), JSON.media, pretty=pretty),
        content_type=JSON.media,
        headers=_HEADERS_BY_CODE.get(error.code),
    )


def status(error: errors.AdapterError) -> dict[str, Any]:
    """Return an error as a metav1 Status."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "details": _details(error),
        "code": error.code,
    }


def _details(error: errors.AdapterError) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if error.group:
        details["group"] = error.group
    if error.resource:
        details["kind"] = error.resource
    if error.failure is not None:
        camel_case = "".join(word[0].upper() + word[1:] for word in error.failure.value.split())
        details["causes"] = [{"reason": camel_case, "message": error.failure.value}]
    if isinstance(error, errors.SpecInvalid):
        details["causes"] = [
            {"reason": "FieldValueInvalid", "message": message, "field": path} for path, message in error.problems
        ]
    return details
