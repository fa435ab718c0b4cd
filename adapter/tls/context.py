"""TLS at the listener, replaceable while it listens.

Python's context cannot forget an authority, and a listener cannot be given another context. So the listener's own
context only takes the first message of a handshake, and hands the connection to whatever context is current at that
moment. Connections that are open keep what they have.

A client's certificate is asked for and not required, and is verified during the handshake against all authorities that
the cluster names; a stranger's ends the handshake. Which authority it was is a question for `adapter.auth`.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate (with what is between it and its authority) and its key, as PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Pair(…)"  # a key has no business in a log


class PairInvalid(ValueError):
    """The certificate or the key cannot be read, or they do not belong together."""


class ServingContext:
    """The TLS of one listener."""

    def __init__(self) -> None:
        self._pair: Pair | None = None
        self._authorities = ""
        self.listener = _context("")
        """What the listener is given, once."""
        self._current = self.listener
        self.listener.sni_callback = self._hand_over

    @property
    def has_certificate(self) -> bool:
        """Say whether there is anything to serve with; until then no handshake can succeed."""
        return self._pair is not None

    def serve_with(self, pair: Pair) -> None:
        """Use this certificate for new connections; PairInvalid leaves everything as it was."""
        if pair != self._pair:
            self._replace(pair, self._authorities)

    def ask_for(self, authorities: str) -> None:
        """Accept client certificates of these authorities, and of no others, on new connections."""
        if authorities != self._authorities:
            self._replace(self._pair, authorities)

    def _replace(self, pair: Pair | None, authorities: str) -> None:
        context = _context(authorities)
        if pair is not None:
            _load(context, pair)
        self._current, self._pair, self._authorities = context, pair, authorities

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _context(authorities: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would outlive the authority that vouched for it.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    # An authority in the bundle need not be a root: Kubernetes does not ask that either.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if authorities.strip():
        context.load_verify_locations(cadata=authorities)
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a pair that is in memory; Python reads them from files only, so they are in one for a moment."""
    with TemporaryDirectory(prefix="serving-") as folder:  # readable by this user alone
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(pair.certificate)
        key.write_text(pair.key)
        try:
            context.load_cert_chain(certificate, key, password="")
        except (ssl.SSLError, OSError) as error:
            raise PairInvalid(f"the serving certificate cannot be used: {error}") from error
