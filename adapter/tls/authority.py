"""The self-managed CA and its rotation, as pure functions of the certificates and the time.

A CA is published before it signs, and stays trusted after it was replaced::

    published ──ca_overlap──▶ signing ──────────▶ replaced ──ca_overlap──▶ removed
        next-ca.crt               ca.crt              old-ca.crt

So clients have trusted the CA of each serving certificate for at least ``ca_overlap``, and replicas that read the
Secret later are still trusted. ``rotate`` takes one step at a time.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.config.model import SelfManagedTls
from adapter.tls.context import KeyPair

_CLOCK_SKEW: Final = timedelta(hours=1)
"""Certificates are valid this long before their creation, for clients whose clock is behind."""


@dataclass(frozen=True, slots=True)
class ManagedCertificates:
    """The content of the certificate Secret."""

    ca: KeyPair
    """The CA that signs."""

    serving: KeyPair
    """The serving certificate, signed by ``ca``."""

    next_ca: KeyPair | None = None
    """The next CA, published and not signing yet."""

    old_ca: str = ""
    """The certificate of the previous CA, as PEM, while it is still trusted; else empty."""

    changed_at: datetime | None = None
    """When the last step of the CA rotation was taken."""

    @property
    def bundle(self) -> str:
        """The CA bundle that clients must trust."""
        next_ca = self.next_ca.certificate if self.next_ca else ""
        return self.ca.certificate + next_ca + self.old_ca


def validate(certificates: ManagedCertificates) -> None:
    """Raise ``ValueError`` if a certificate or key is invalid, or a key is not its certificate's."""
    for pair in filter(None, (certificates.ca, certificates.serving, certificates.next_ca)):
        certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        try:
            key = serialization.load_pem_private_key(pair.key.encode(), password=None)
        except (TypeError, UnsupportedAlgorithm) as error:  # encrypted, or an unsupported kind of key
            raise ValueError(str(error)) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("a private key is not an elliptic curve key")  # noqa: TRY004 - invalid data, not a bug
        if key.public_key() != certificate.public_key():
            raise ValueError("a private key does not match its certificate")
    if certificates.old_ca:
        x509.load_pem_x509_certificate(certificates.old_ca.encode())
    if certificates.changed_at is not None and certificates.changed_at.tzinfo is None:
        raise ValueError("the time of the last CA change has no time zone")


def dns_names(settings: SelfManagedTls) -> tuple[str, ...]:
    """Return the DNS names of the Service; the API server verifies the first."""
    name = f"{settings.service}.{settings.namespace}"
    return (f"{name}.svc", name, settings.service, f"{name}.svc.{settings.cluster_domain}", "localhost")


def create_certificates(settings: SelfManagedTls, now: datetime) -> ManagedCertificates:
    """Create a CA and its first serving certificate."""
    ca = _create_ca(settings, now)
    return ManagedCertificates(ca=ca, serving=_issue(ca, settings, now))


def rotate(current: ManagedCertificates, settings: SelfManagedTls, now: datetime) -> ManagedCertificates:
    """Return the certificates after the step that is due; the same ones if none is."""
    overlap_is_over = current.changed_at is None or now - current.changed_at >= settings.ca_overlap
    if current.next_ca is not None and overlap_is_over:
        serving = _issue(current.next_ca, settings, now)
        return ManagedCertificates(current.next_ca, serving, old_ca=current.ca.certificate, changed_at=now)
    if current.old_ca and overlap_is_over:
        current = replace(current, old_ca="", changed_at=now)
    if current.next_ca is None and not current.old_ca and _is_renewal_due(current.ca, now):
        return replace(current, next_ca=_create_ca(settings, now), changed_at=now)
    if _is_renewal_due(current.serving, now) or not _has_dns_names(current.serving, dns_names(settings)):
        return replace(current, serving=_issue(current.ca, settings, now))
    return current


def _is_renewal_due(pair: KeyPair, now: datetime) -> bool:
    """Return whether two thirds of the certificate's lifetime have passed."""
    certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
    begin, end = certificate.not_valid_before_utc + _CLOCK_SKEW, certificate.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def _has_dns_names(pair: KeyPair, names: tuple[str, ...]) -> bool:
    certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
    alternative_names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) <= set(alternative_names.get_values_for_type(x509.DNSName))


def _create_ca(settings: SelfManagedTls, now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    # A unique name: clients that trust two CAs of one name could choose the wrong one.
    name = _name(f"steadyscale-{now:%Y%m%d%H%M%S}-{x509.random_serial_number() % 16**6:06x}")
    builder = (
        _builder(name, key, now, now + settings.ca_lifetime)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_ca=True), critical=True)
    )
    return _key_pair(builder.sign(key, hashes.SHA256()), key)


def _issue(ca: KeyPair, settings: SelfManagedTls, now: datetime) -> KeyPair:
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode())
    issuer_key = serialization.load_pem_private_key(ca.key.encode(), password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the CA's private key is not an elliptic curve key")
    key, names = ec.generate_private_key(ec.SECP256R1()), dns_names(settings)
    not_after = min(now + settings.certificate_lifetime, issuer.not_valid_after_utc)
    builder = (
        _builder(_name(names[0]), key, now, not_after)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    return _key_pair(builder.sign(issuer_key, hashes.SHA256()), key)


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before - _CLOCK_SKEW)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(certificate.public_bytes(pem).decode(), private.decode())
