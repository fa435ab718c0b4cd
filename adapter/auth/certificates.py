"""Which authority stands behind a peer's certificate.

The TLS handshake verifies against all authorities together: those of ordinary users and those of the API server's front
proxy. That a certificate was let in says nothing about which of the two signed it, and to mistake one for the other is
to let any user speak for anyone. So the chain is verified here once more, against one set of authorities alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError

_CLIENT_USES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})

_AUTHORITY: Final = ExtensionPolicy.permit_all().require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)


class NotOurs(Exception):
    """The certificate is not one that these authorities vouch for as a client's; the text says why."""


@dataclass(frozen=True)
class Authorities:
    """A set of certificate authorities that are trusted for one purpose."""

    pem: str
    """All of them, one after the other; empty if there are none."""

    @cached_property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """Read the PEM; ValueError if it is not that."""
        return tuple(x509.load_pem_x509_certificates(self.pem.encode())) if self.pem.strip() else ()

    def verify(self, leaf: x509.Certificate, between: Iterable[x509.Certificate], now: datetime) -> None:
        """Return if these authorities vouch for `leaf` as a client now; raise NotOurs if not."""
        if not self.certificates:
            raise NotOurs("no authority is known")
        verifier = (
            PolicyBuilder()
            .store(Store(list(self.certificates)))
            .time(now.astimezone(UTC))
            # The ready-made policy is a browser's: it wants a subjectAltName, which Kubernetes' clients do not have.
            .extension_policies(ca_policy=_AUTHORITY, ee_policy=ExtensionPolicy.permit_all())
            .build_client_verifier()
        )
        try:
            verifier.verify(leaf, list(between))
            is_for_clients = _is_for_clients(leaf)
        except (VerificationError, ValueError) as error:
            raise NotOurs(str(error)) from error
        if not is_for_clients:
            raise NotOurs("the certificate is not for clients")

    def shares_with(self, other: "Authorities") -> bool:
        """Say whether some authority is in both sets."""
        return bool(_fingerprints(self) & _fingerprints(other))


NOBODY: Final = Authorities("")
"""No authority at all: it vouches for no certificate."""


def _is_for_clients(leaf: x509.Certificate) -> bool:
    try:
        uses = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True  # no restriction at all; the handshake reads it the same way
    return any(use in _CLIENT_USES for use in uses)


def _fingerprints(authorities: Authorities) -> frozenset[bytes]:
    return frozenset(one.public_bytes(serialization.Encoding.DER) for one in authorities.certificates)
