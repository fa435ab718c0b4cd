"""Our own certificate authority, as plain functions of the time: what to make, and when to make it anew.

An authority is announced before it signs anything, and remains trusted after it stopped signing::

    announced ──overlap──▶ signing ──────────▶ retired ──overlap──▶ forgotten
        next-ca.crt            ca.crt              old-ca.crt

so that whoever verifies us has always known the signer of what we show for at least `overlap`, and replicas that are a
little behind are still believed. `advance` makes one such step at a time; it reads no clock and writes nothing.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.tls.context import Pair

_SKEW: Final = timedelta(hours=1)
"""Whoever's clock is behind ours by less than this still takes a new certificate for valid."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long each thing lives."""

    authority: timedelta = timedelta(days=3650)
    certificate: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(minutes=10)
    """How long an authority is known before it signs, and still known after: long enough for every API server to have
    heard of the APIService's caBundle, and for every replica to have read the Secret."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Everything there is to keep. All PEM; empty means there is none."""

    authority: Pair
    """The one that signs."""

    serving: Pair
    """What it signed: the certificate we serve with."""

    next_authority: Pair | None = None
    """Announced; will sign from `overlap` after it was made."""

    old_authority: str = ""
    """Signs no more; trusted until the same time has passed again."""

    changed: datetime | None = None
    """When the last of the steps above was taken."""

    @property
    def bundle(self) -> str:
        """All authorities to be trusted: of what we serve, have just served, or shall serve."""
        coming = self.next_authority.certificate if self.next_authority else ""
        return self.authority.certificate + coming + self.old_authority


def check(keys: Keys) -> None:
    """Return if these are keys as we make them; ValueError if one is not, or does not belong to its certificate."""
    for pair in filter(None, (keys.authority, keys.serving, keys.next_authority)):
        certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        try:
            key = serialization.load_pem_private_key(pair.key.encode(), password=None)
        except (TypeError, UnsupportedAlgorithm) as error:  # it wants a password, or is none that this library knows
            raise ValueError(str(error)) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("a key is of a kind that we never make")  # noqa: TRY004 - what it was read from is wrong
        if key.public_key() != certificate.public_key():
            raise ValueError("a key does not belong to its certificate")
    if keys.old_authority:
        x509.load_pem_x509_certificate(keys.old_authority.encode())
    if keys.changed is not None and keys.changed.tzinfo is None:
        raise ValueError("when an authority changed is not a time with its zone")


def first_keys(names: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Keys:
    """Make an authority and its first certificate."""
    authority = _new_authority(lifetimes, now)
    return Keys(authority=authority, serving=_issue(authority, names, lifetimes, now))


def advance(keys: Keys, names: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Keys:
    """Take the step that is due; the same keys if none is."""
    waited = keys.changed is None or now - keys.changed >= lifetimes.overlap
    if keys.next_authority is not None and waited:
        serving = _issue(keys.next_authority, names, lifetimes, now)
        return Keys(keys.next_authority, serving, old_authority=keys.authority.certificate, changed=now)
    if keys.old_authority and waited:
        keys = replace(keys, old_authority="", changed=now)
    if keys.next_authority is None and not keys.old_authority and _is_due(keys.authority, now):
        return replace(keys, next_authority=_new_authority(lifetimes, now), changed=now)
    if _is_due(keys.serving, now) or not _is_for(keys.serving, names):
        return replace(keys, serving=_issue(keys.authority, names, lifetimes, now))
    return keys


def _is_due(pair: Pair, now: datetime) -> bool:
    """Say whether two thirds of a certificate's life are over."""
    certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
    begin, end = certificate.not_valid_before_utc + _SKEW, certificate.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def _is_for(pair: Pair, names: tuple[str, ...]) -> bool:
    certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
    held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) <= set(held.get_values_for_type(x509.DNSName))


def _new_authority(lifetimes: Lifetimes, now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities of one name would be mistaken for each other by whoever trusts both.
    name = _name(f"steadyscale-{now:%Y%m%d%H%M%S}-{x509.random_serial_number() % 16**6:06x}")
    builder = (
        _builder(name, key, now, now + lifetimes.authority)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def _issue(authority: Pair, names: tuple[str, ...], lifetimes: Lifetimes, now: datetime) -> Pair:
    signer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer_key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    if not isinstance(signer_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is of a kind that we never make")
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + lifetimes.certificate, signer.not_valid_after_utc)
    builder = (
        _builder(_name(names[0]), key, now, until)
        .issuer_name(signer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key()), critical=False)
    )
    return _pair(builder.sign(signer_key, hashes.SHA256()), key)


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since - _SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(pem).decode(), private.decode())
