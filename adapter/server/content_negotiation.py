"""Which form of an answer a caller gets: the first clause of Accept, by preference, that one of our offers fits."""

from functools import lru_cache

from adapter.errors import NotAcceptable
from autoscaler.types.record import Record

_LONGEST_ACCEPT = 4096  # no client writes more, and what is longer is not worth remembering


class Offer(Record, frozen=True, cache_hash=True):
    """One form we can send: a media type, perhaps of another kind of object than the plain one."""

    media: str
    kind: str = ""
    """``as=``: the kind that the object is turned into, such as Table."""

    group: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """What to say in Content-Type. A Table says nothing of itself there; discovery must."""
        if self.kind in {"", "Table"}:
            return self.media
        return f"{self.media};g={self.group};v={self.version};as={self.kind}"


JSON = Offer("application/json")
YAML = Offer("application/yaml")
PROTOBUF = Offer("application/vnd.kubernetes.protobuf")


class _Clause(Record, frozen=True):
    range: str
    quality: float
    kind: str
    group: str
    version: str

    def fits(self, offer: Offer) -> bool:
        """Say whether this clause asks for that form."""
        if (self.kind, self.group, self.version) != (offer.kind, offer.group, offer.version):
            return False
        major = offer.media.partition("/")[0]
        return self.range in {offer.media, f"{major}/*", "*/*"}


def negotiate(accept: str, offers: tuple[Offer, ...]) -> Offer:
    """Choose the form to answer in; raise ``NotAcceptable`` if there is none."""
    if not accept.strip():
        return offers[0]
    chosen = _choose(accept, offers) if len(accept) <= _LONGEST_ACCEPT else None
    if chosen is None:
        known = ", ".join(dict.fromkeys(offer.media for offer in offers))
        raise NotAcceptable(f"only the following media types are accepted: {known}")
    return chosen


@lru_cache(maxsize=256)
def _choose(accept: str, offers: tuple[Offer, ...]) -> Offer | None:
    clauses = sorted((_clause(text) for text in accept.split(",")), key=lambda clause: -clause.quality)
    fitting = (offer for clause in clauses if clause.quality > 0 for offer in offers if clause.fits(offer))
    return next(fitting, None)


def _clause(text: str) -> _Clause:
    media, *rest = (part.strip() for part in text.split(";"))
    parameters = {
        key.strip().lower(): value.strip().strip('"') for key, _, value in (part.partition("=") for part in rest)
    }
    return _Clause(
        range=media.lower(),
        quality=_quality(parameters.get("q", "1")),
        kind=parameters.get("as", ""),
        group=parameters.get("g", ""),
        version=parameters.get("v", ""),
    )


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
