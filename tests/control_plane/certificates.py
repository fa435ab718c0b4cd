"""Certificate authorities and certificates for tests."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

TODAY: Final = datetime.now(UTC)  # noqa: TID251 - certificates must be valid at the real time
DAY: Final = timedelta(days=1)
Key: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
        return self.key.private_bytes(pem, traditional, serialization.NoEncryption()).decode()

    def save(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write both as PEM; return their paths."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_text(self.certificate_pem)
        key.write_text(self.key_pem)
        key.chmod(0o600)
        return certificate, key


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority."""

    own: Credentials

    @classmethod
    def new(cls, name: str, key: Key | None = None) -> Self:
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = _name(name, ())
        builder = _authority(_builder(subject, subject, key, TODAY - DAY, TODAY + 365 * DAY))
        return cls(Credentials(builder.sign(key, hashes.SHA256()), key))

    def under(self, name: str) -> "Authority":
        """Create an intermediate authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, ()), self.own.certificate.subject, key, TODAY - DAY, TODAY + 365 * DAY)
        return Authority(Credentials(_authority(builder).sign(self.own.key, hashes.SHA256()), key))

    @property
    def pem(self) -> str:
        return self.own.certificate_pem

    def client(self, name: str, groups: Iterable[str] = (), *, until: datetime = TODAY + DAY) -> Credentials:
        """Issue a client certificate; in Kubernetes, CN is the user and each O a group."""
        return self._issue(_name(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, until=until)

    def server(self, *hosts: str) -> Credentials:
        """Issue a serving certificate for names and addresses."""
        return self._issue(_name(hosts[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, hosts=hosts, until=TODAY + DAY)

    def _issue(
        self, subject: x509.Name, use: x509.ObjectIdentifier, *, hosts: tuple[str, ...] = (), until: datetime
    ) -> Credentials:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.own.certificate.subject
        builder = _builder(subject, issuer, key, min(TODAY, until) - DAY, until)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.own.key.public_key()), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(_alternatives(hosts)), critical=False)
        return Credentials(builder.sign(self.own.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, since: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.add_extension(_signs_certificates(), critical=True)


def _name(name: str, groups: Iterable[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    common = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    return x509.Name([*organizations, *common])


def _alternatives(hosts: Iterable[str]) -> list[x509.GeneralName]:
    return [x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts]


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
