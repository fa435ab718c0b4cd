"""The certificate that the other end of a connection showed, and who vouches for it.

Verifying costs more than all the rest of a request, and a connection's certificate never changes. So what was found out
is kept with the connection, and found out anew when the cluster's trust changes or the certificate's time has come.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID

from adapter.auth.certificates import Authorities, NotOurs
from adapter.auth.trust_store import Trusted
from adapter.errors import Unauthenticated


@dataclass(frozen=True, slots=True)
class Peer:
    """A certificate that was shown, and what the two kinds of authority say to it."""

    certificate: x509.Certificate
    not_a_user: str | None
    """Why no authority of users vouches for it; None if one does."""

    not_a_proxy: str | None
    """Why it is not a front proxy's; None if it is."""

    common_name: str
    """The first common name, empty if there is none."""

    until: datetime
    """When its time is over; asked of the certificate it is worked out anew each time."""


def names(certificate: x509.Certificate, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
    """All names of one kind in a certificate's subject, in order."""
    return tuple(str(name.value) for name in certificate.subject.get_attributes_for_oid(kind))


class Peers:
    """Finds out who is at the other end, once per connection."""

    def __init__(self, trusted: Trusted, clock: Callable[[], datetime]) -> None:
        self._trusted = trusted
        self._clock = clock
        self._seen: WeakKeyDictionary[object, tuple[int, Peer]] = WeakKeyDictionary()

    def of(self, request: web.BaseRequest) -> Peer | None:
        """Say who is at the other end; None if no certificate was shown."""
        connection = request.transport
        tls = connection.get_extra_info("ssl_object") if connection else None
        if connection is None or tls is None:
            return None
        seen = self._seen.get(connection)
        if seen and seen[0] == self._trusted.generation and self._clock() < seen[1].until:
            return seen[1]
        peer = self._verified(tls)
        if peer is not None:
            self._seen[connection] = (self._trusted.generation, peer)
        return peer

    def _verified(self, tls: ssl.SSLObject) -> Peer | None:
        shown = tls.getpeercert(binary_form=True)
        if shown is None:
            return None
        try:
            leaf, between = x509.load_der_x509_certificate(shown), _between(tls)
        except ValueError as error:
            raise Unauthenticated("a certificate that cannot be read") from error
        now = self._clock()
        trust = self._trusted.current
        return Peer(
            certificate=leaf,
            common_name=next(iter(names(leaf, NameOID.COMMON_NAME)), ""),
            until=leaf.not_valid_after_utc,
            not_a_user=_objection(trust.clients, leaf, between, now),
            not_a_proxy="front proxies cannot be told from users"
            if trust.is_ambiguous
            else _objection(trust.front_proxies, leaf, between, now),
        )


def _objection(
    authorities: Authorities, leaf: x509.Certificate, between: tuple[x509.Certificate, ...], now: datetime
) -> str | None:
    try:
        authorities.verify(leaf, between, now)
    except NotOurs as no:
        return str(no)
    return None


def _between(tls: ssl.SSLObject) -> tuple[x509.Certificate, ...]:
    """Give the certificates between leaf and authority, where this Python can tell; else they must be in the bundle."""
    chain = getattr(tls, "get_verified_chain", None)  # from 3.13 on
    return tuple(x509.load_der_x509_certificate(der) for der in chain()[1:]) if chain else ()
