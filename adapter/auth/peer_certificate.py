"""Verification of the client certificates of connections, and authentication by client certificate.

Verification is slower than the rest of a request, and the certificate of a connection never changes. So the result is
cached for each connection, until the trusted CAs change or the certificate expires.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from adapter.auth.authentication import Caller
from adapter.auth.certificates import CABundle, CertificateUntrusted
from adapter.auth.trust_store import TrustStore
from adapter.errors import Unauthenticated


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A client certificate and the results of its verification."""

    certificate: x509.Certificate
    client_error: str | None
    """Why the client CAs do not trust it; None if they do."""

    front_proxy_error: str | None
    """Why the front proxy's CAs do not trust it; None if they do."""

    common_name: str
    """The first common name; empty if there is none."""

    expires_at: datetime
    """Stored, because ``certificate.not_valid_after_utc`` parses the certificate on each access."""


class PeerCertificates:
    """The verified certificates of open connections."""

    def __init__(self, trust_store: TrustStore, clock: Callable[[], datetime]) -> None:
        self._trust_store = trust_store
        self._clock = clock
        self._cache: WeakKeyDictionary[ssl.SSLObject, tuple[int, PeerCertificate]] = WeakKeyDictionary()

    def get(self, request: web.BaseRequest) -> PeerCertificate | None:
        """Return the certificate of the request's connection; None if the client sent none."""
        transport = request.transport
        tls = transport.get_extra_info("ssl_object") if transport else None
        if tls is None:
            return None
        generation = self._trust_store.generation
        cached = self._cache.get(tls)
        if cached and cached[0] == generation and self._clock() < cached[1].expires_at:
            return cached[1]
        peer = self._verify(tls)
        if peer is not None:
            self._cache[tls] = generation, peer
        return peer

    def _verify(self, tls: ssl.SSLObject) -> PeerCertificate | None:
        der = tls.getpeercert(binary_form=True)
        if der is None:
            return None
        try:
            leaf, intermediates = x509.load_der_x509_certificate(der), _intermediates(tls)
        except ValueError as error:
            raise Unauthenticated("the client certificate cannot be parsed") from error
        now, trusted = self._clock(), self._trust_store.current
        return PeerCertificate(
            certificate=leaf,
            common_name=next(iter(_subject_names(leaf, NameOID.COMMON_NAME)), ""),
            expires_at=leaf.not_valid_after_utc,
            client_error=_verification_error(trusted.clients, leaf, intermediates, now),
            front_proxy_error="the front proxy and users share a CA and no allowed names are configured"
            if trusted.is_ambiguous
            else _verification_error(trusted.front_proxies, leaf, intermediates, now),
        )


class ClientCertificateAuthenticator:
    """Accepts certificates of the cluster's client CA: the common name is the user, each organization a group."""

    def __init__(self, peer_certificates: PeerCertificates) -> None:
        self._peer_certificates = peer_certificates

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Return the certificate's user; None without a certificate or a common name."""
        peer = self._peer_certificates.get(request)
        if peer is None:
            return None
        if peer.client_error is not None:
            raise Unauthenticated(f"client certificate not trusted: {peer.client_error}")
        if not peer.common_name:
            return None
        fingerprint = peer.certificate.fingerprint(hashes.SHA256()).hex()
        return Caller(
            name=peer.common_name,
            groups=_subject_names(peer.certificate, NameOID.ORGANIZATION_NAME),
            extra=(("authentication.kubernetes.io/credential-id", (f"X509SHA256={fingerprint}",)),),
        )


def _subject_names(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(name.value) for name in certificate.subject.get_attributes_for_oid(oid))


def _verification_error(
    bundle: CABundle, leaf: x509.Certificate, intermediates: tuple[x509.Certificate, ...], now: datetime
) -> str | None:
    try:
        bundle.verify(leaf, intermediates, now)
    except CertificateUntrusted as error:
        return str(error)
    return None


def _intermediates(tls: ssl.SSLObject) -> tuple[x509.Certificate, ...]:
    """Return the verified chain without the leaf.

    Before Python 3.13 ssl does not expose the chain: the result is empty, and intermediates must be in the CA bundle.
    """
    chain = getattr(tls, "get_verified_chain", None)
    return tuple(x509.load_der_x509_certificate(der) for der in chain()[1:]) if chain else ()
