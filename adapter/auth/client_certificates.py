"""Authentication by client certificate: the common name is the user, each organization a group."""

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from adapter.auth.caller import Caller
from adapter.auth.peer_certificate import PeerCertificates, subject_names
from adapter.errors import Unauthenticated


class ClientCertificateAuthenticator:
    """Accepts certificates signed by the cluster's client CA."""

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
            groups=subject_names(peer.certificate, NameOID.ORGANIZATION_NAME),
            extra=(("authentication.kubernetes.io/credential-id", (f"X509SHA256={fingerprint}",)),),
        )
