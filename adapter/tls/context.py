"""TLS settings of the listener, replaceable while it listens.

An ``SSLContext`` cannot remove a CA, and a listener cannot change its context. So the listener's context only receives
the ClientHello; its SNI callback then switches the connection to the current context. Open connections keep theirs.

Client certificates are requested but optional. The handshake verifies them against all CAs of the cluster and fails for
certificates of other CAs; ``adapter.auth`` determines which of the CAs signed a certificate.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its intermediates, and its private key, as PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "KeyPair(…)"  # the private key must not appear in logs


class KeyPairInvalid(ValueError):
    """The certificate or the key cannot be read, or the key does not belong to the certificate."""


class ServingContext:
    """The TLS settings of one listener."""

    def __init__(self) -> None:
        self._key_pair: KeyPair | None = None
        self._client_cas = ""
        self.listener = _context("")
        """The context to pass to the listener."""

        self._current = self.listener
        self.listener.sni_callback = self._switch_context

    @property
    def has_certificate(self) -> bool:
        """Whether there is a serving certificate; without one every handshake fails."""
        return self._key_pair is not None

    def use_key_pair(self, key_pair: KeyPair) -> None:
        """Serve new connections with this certificate; raise ``KeyPairInvalid``, without a change, if it is invalid."""
        if key_pair != self._key_pair:
            self._replace(key_pair, self._client_cas)

    def use_client_cas(self, pem: str) -> None:
        """Accept client certificates of these CAs, and of no others, on new connections."""
        if pem != self._client_cas:
            self._replace(self._key_pair, pem)

    def _replace(self, key_pair: KeyPair | None, client_cas: str) -> None:
        context = _context(client_cas)
        if key_pair is not None:
            _load(context, key_pair)
        self._current, self._key_pair, self._client_cas = context, key_pair, client_cas

    def _switch_context(self, connection: ssl.SSLObject, _server_name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _context(client_cas: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would keep a client certificate accepted after its CA was removed.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    # Kubernetes accepts intermediate CAs as trust anchors.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if client_cas.strip():
        context.load_verify_locations(cadata=client_cas)
    return context


def _load(context: ssl.SSLContext, key_pair: KeyPair) -> None:
    """Load a key pair through temporary files, because ``load_cert_chain`` reads only files."""
    with TemporaryDirectory(prefix="serving-") as folder:  # created with mode 0700
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(key_pair.certificate, encoding="utf-8")
        key.write_text(key_pair.key, encoding="utf-8")
        try:
            context.load_cert_chain(certificate, key, password="")  # an encrypted key must fail, not prompt
        except (ssl.SSLError, OSError) as error:
            raise KeyPairInvalid(f"serving certificate or key is invalid: {error}") from error
