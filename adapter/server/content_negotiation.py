"""Content negotiation: the first offer that matches the Accept header's clauses, by quality."""

from functools import lru_cache
from typing import NamedTuple

from adapter.errors import NotAcceptable
from autoscaler.types.record import Record

_MAX_ACCEPT_LENGTH = 4096  # bounds the memory of the cache below; no real client sends more


class Offer(Record, frozen=True, cache_hash=True):
    """A representation of a response: a media type and, for a conversion, the kind of object."""

    media: str
    kind: str = ""
    """``as=``: the kind that the object is converted to, such as Table."""

    group: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """The Content-Type header; Kubernetes includes the kind for aggregated discovery and omits it for a Table."""
        if self.kind in {"", "Table"}:
            return self.media
        return f"{self.media};g={self.group};v={self.version};as={self.kind}"


JSON = Offer("application/json")
YAML = Offer("application/yaml")
PROTOBUF = Offer("application/vnd.kubernetes.protobuf")


class _Clause(NamedTuple):
    """One comma-separated part of an Accept header; ``conversion`` is kind, group and version."""

    range: str
    quality: float
    conversion: tuple[str, str, str]

    def matches(self, offer: Offer) -> bool:
        ranges = {offer.media, f"{offer.media.partition('/')[0]}/*", "*/*"}
        return self.range in ranges and self.conversion == (offer.kind, offer.group, offer.version)


def negotiate(accept: str, offers: tuple[Offer, ...]) -> Offer:
    """Return the best offer; raise ``NotAcceptable`` if none matches."""
    if not accept.strip():
        return offers[0]
    chosen = _choose(accept, offers) if len(accept) <= _MAX_ACCEPT_LENGTH else None
    if chosen is None:
        accepted = ", ".join(dict.fromkeys(offer.media for offer in offers))
        raise NotAcceptable(f"only the following media types are accepted: {accepted}")
    return chosen


@lru_cache(maxsize=256)
def _choose(accept: str, offers: tuple[Offer, ...]) -> Offer | None:
    clauses = sorted((_clause(text) for text in accept.split(",")), key=lambda clause: -clause.quality)
    matching = (offer for clause in clauses if clause.quality > 0 for offer in offers if clause.matches(offer))
    return next(matching, None)


def _clause(text: str) -> _Clause:
    media, *rest = (part.strip() for part in text.split(";"))
    parameters = {
        key.strip().lower(): value.strip().strip('"') for key, _, value in (part.partition("=") for part in rest)
    }
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    conversion = (parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", ""))
    return _Clause(media.lower(), min(quality, 1.0), conversion)
