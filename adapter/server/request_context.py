"""One request on its way through the server, with what has been found out about it so far."""

import re
import secrets
from dataclasses import dataclass

from aiohttp import web
from multidict import MultiMapping

from adapter.auth.attributes import Attributes, attributes_of, is_true
from adapter.auth.caller import Caller
from adapter.server.content_negotiation import Offer, negotiate

_AUDIT_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_REMEMBERED, _LONGEST_REMEMBERED = 4096, 1024
_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


@dataclass(slots=True)
class RequestContext:
    """A request, and who asks it for what."""

    request: web.BaseRequest
    path: str
    """Decoded, as it was authorized."""

    query: MultiMapping[str]
    attributes: Attributes
    audit_id: str
    endpoint: str = "unknown"
    """Which row of the table of URLs it went to; a metric's name would be too many."""

    caller: Caller | None = None

    def wants(self, offers: tuple[Offer, ...]) -> Offer:
        """Choose the form to answer in; several Accept headers are one list."""
        return negotiate(",".join(self.request.headers.getall("Accept", ())), offers)

    def pretty(self) -> bool:
        """Say whether a person is reading: they say so, or they use a tool for people."""
        wish = self.query.get("pretty")
        if wish is not None:
            return is_true(wish)
        return self.request.headers.get("User-Agent", "").startswith(_PEOPLE)


class RequestContexts:
    """Begins exchanges. Request lines are remembered: the same few come again and again, and are not cheap to read."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, MultiMapping[str], Attributes]] = {}

    def begin(self, request: web.BaseRequest) -> RequestContext:
        """Read what a request asks for, before anything is known of who asks."""
        line = request.method, request.raw_path
        known = self._known.get(line)
        if known is None:
            known = request.path, request.query, attributes_of(request.method, request.path, request.query)
            self._remember(line, known)
        audit_id = request.headers.get("Audit-Id", "")
        if not _AUDIT_ID.fullmatch(audit_id):
            audit_id = secrets.token_hex(16)
        return RequestContext(request, *known, audit_id)

    def _remember(self, line: tuple[str, str], known: tuple[str, MultiMapping[str], Attributes]) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        if len(line[1]) <= _LONGEST_REMEMBERED:
            self._known[line] = known
