"""One request on its way through the server, with what has been found out about it so far."""

from dataclasses import dataclass

from aiohttp import web
from multidict import MultiMapping

from adapter.api.negotiate import Offer, negotiate
from adapter.auth.attributes import Attributes, is_true
from adapter.auth.caller import Caller

_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


@dataclass(slots=True)
class Exchange:
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
