"""Ordinary users who show a certificate: the common name is the user, every organization a group."""

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from adapter.auth.caller import Caller
from adapter.auth.peer_certificate import Peers, names
from adapter.errors import Unauthenticated


class ClientCertificates:
    """Believes certificates that an authority of the cluster's users signed."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def authenticate(self, request: web.BaseRequest) -> Caller | None:
        """Name the certificate's user; None if there is no certificate, or no name in it."""
        peer = self._peers.of(request)
        if peer is None:
            return None
        if peer.not_a_user is not None:
            raise Unauthenticated(f"not a user's certificate: {peer.not_a_user}")
        if not peer.common_name:
            return None
        fingerprint = peer.certificate.fingerprint(hashes.SHA256()).hex()
        return Caller(
            name=peer.common_name,
            groups=names(peer.certificate, NameOID.ORGANIZATION_NAME),
            extra=(("authentication.kubernetes.io/credential-id", (f"X509SHA256={fingerprint}",)),),
        )
