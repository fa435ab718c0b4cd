"""An exception becomes an answer, and only here: always a metav1 Status, never a Retry-After.

With a Retry-After client-go would sleep and try again up to ten times inside one of the few workers that the cluster's
HPAs share. ``details`` says nothing of retrying either, because Kubernetes' servers turn that into the header.
"""

import logging
from typing import Any

from aiohttp import web

from adapter import errors
from adapter.server import serialization
from adapter.server.content_negotiation import JSON

_log = logging.getLogger(__name__)
_NOSNIFF = {"X-Content-Type-Options": "nosniff"}
_EXTRA_HEADERS = {403: _NOSNIFF, 405: {"Allow": "GET"}}


def answer(error: Exception, *, pretty: bool = False) -> web.Response:
    """Turn whatever was raised into an answer; what we did not foresee is told to the log, not to the caller."""
    if not isinstance(error, errors.AdapterError):
        _log.error("a request failed in a way nobody foresaw", exc_info=error)
        error = errors.AdapterError("Internal error occurred: the cause is in the adapter's log")
    return web.Response(
        status=error.code,
        body=serialization.to_bytes(status(error), JSON.media, pretty=pretty),
        content_type=JSON.media,
        headers=_EXTRA_HEADERS.get(error.code),
    )


def status(error: errors.AdapterError) -> dict[str, Any]:
    """Say an error as a metav1 Status."""
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
        details["causes"] = [{"reason": _camel(error.failure.value), "message": error.failure.value}]
    return details


def _camel(words: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in words.split())
