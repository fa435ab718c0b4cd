"""The state of one request while it is served."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Final, Self, TypeAlias

from aiohttp import web
from multidict import MultiMapping
from yarl import URL

from adapter.auth.attributes import Attributes, attributes_of, is_true
from adapter.auth.authentication import Caller
from adapter.decoding.duration import parse_duration
from adapter.errors import InvalidRequest
from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML, Offer, negotiate

_AUDIT_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_CACHED_PATH: Final = 1024
"""Longer paths are not cached, so that made-up ones cannot fill the memory."""

_HUMAN_USER_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
_RequestLine: TypeAlias = tuple[str, MultiMapping[str], Attributes]


@dataclass(slots=True)
class RequestContext:
    """A request, its attributes, its caller and its endpoint."""

    request: web.BaseRequest
    path: str
    """The decoded path, as authorized."""

    query: MultiMapping[str]
    attributes: Attributes
    audit_id: str
    endpoint: str = "unknown"
    """The name of the route, for metrics and logs."""

    caller: Caller | None = None

    @classmethod
    def create(cls, request: web.BaseRequest) -> Self:
        """Parse the request line and the audit ID."""
        parse = _parse_cached if len(request.raw_path) <= _MAX_CACHED_PATH else _parse
        path, query, attributes = parse(request.method, request.rel_url)
        audit_id = request.headers.get("Audit-Id", "")
        if not _AUDIT_ID.fullmatch(audit_id):
            audit_id = secrets.token_hex(16)
        return cls(request, path, query, attributes, audit_id)

    def timeout(self, max_timeout: timedelta) -> timedelta:
        """Return the timeout of the request: ``?timeout=``, at most ``max_timeout``."""
        text = self.query.get("timeout")
        if not text:
            return max_timeout
        try:
            return min(parse_duration(text) or max_timeout, max_timeout)
        except ValueError as error:
            raise InvalidRequest(f"timeout: {error}") from None

    def negotiate(self, offers: tuple[Offer, ...]) -> Offer:
        """Choose the representation of the response by the Accept headers."""
        return negotiate(",".join(self.request.headers.getall("Accept", ())), offers)

    def respond(self, document: object, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return a document as JSON or YAML."""
        media = self.negotiate((JSON, YAML)).media
        body = serialization.to_bytes(document, media, pretty=self.is_pretty())
        return web.Response(body=body, content_type=media, headers=headers)

    def is_pretty(self) -> bool:
        """Return whether to indent the response: ``?pretty=``, or by default for browsers, curl and wget."""
        pretty = self.query.get("pretty")
        if pretty is not None:
            return is_true(pretty)
        return self.request.headers.get("User-Agent", "").startswith(_HUMAN_USER_AGENTS)


def _parse(method: str, url: URL) -> _RequestLine:
    return url.path, url.query, attributes_of(method, url.path, url.query)


_parse_cached = lru_cache(maxsize=4096)(_parse)
