"""Verification of a peer's certificate against one CA bundle.

The TLS handshake accepts certificates of the client CAs and of the front proxy's CAs, and does not report which of them
signed a certificate. A user's certificate must not pass as the front proxy's, which may impersonate any user. So the
chain is verified again here, against one bundle at a time.
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

_CLIENT_USAGES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})
_CA_POLICY: Final = ExtensionPolicy.permit_all().require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)


class CertificateUntrusted(Exception):
    """The certificate is not a client certificate signed by a CA of the bundle; the message is the reason."""


@dataclass(frozen=True)
class CABundle:
    """Certificate authorities that are trusted for one purpose."""

    pem: str
    """The concatenated certificates; empty if there are none."""

    @cached_property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """The parsed certificates; raises ``ValueError`` if the PEM is invalid."""
        return tuple(x509.load_pem_x509_certificates(self.pem.encode())) if self.pem.strip() else ()

    def verify(self, leaf: x509.Certificate, intermediates: Iterable[x509.Certificate], now: datetime) -> None:
        """Return if ``leaf`` is a valid client certificate of this bundle; raise ``CertificateUntrusted`` if not."""
        if not self.certificates:
            raise CertificateUntrusted("the CA bundle is empty")
        verifier = (
            PolicyBuilder()
            .store(Store(list(self.certificates)))
            .time(now.astimezone(UTC))
            # The default policy requires a subjectAltName, which Kubernetes' client certificates do not have.
            .extension_policies(ca_policy=_CA_POLICY, ee_policy=ExtensionPolicy.permit_all())
            .build_client_verifier()
        )
        try:
            verifier.verify(leaf, list(intermediates))
            is_client_certificate = _allows_client_auth(leaf)
        except (VerificationError, ValueError) as error:
            raise CertificateUntrusted(str(error)) from error
        if not is_client_certificate:
            raise CertificateUntrusted("the extended key usage does not include client authentication")

    def overlaps(self, other: "CABundle") -> bool:
        """Return whether a CA is in both bundles."""
        return bool(_der_certificates(self) & _der_certificates(other))


EMPTY_BUNDLE: Final = CABundle("")


def _allows_client_auth(leaf: x509.Certificate) -> bool:
    try:
        usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True  # unrestricted, as in the TLS handshake
    return any(usage in _CLIENT_USAGES for usage in usages)


def _der_certificates(bundle: CABundle) -> frozenset[bytes]:
    return frozenset(certificate.public_bytes(serialization.Encoding.DER) for certificate in bundle.certificates)
