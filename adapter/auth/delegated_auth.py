"""Delegated authentication and authorization, put together from their parts."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from adapter.auth.authentication import UnionAuthenticator
from adapter.auth.authorizer import SubjectAccessAuthorizer
from adapter.auth.front_proxy import FrontProxyAuthenticator
from adapter.auth.peer_certificate import ClientCertificateAuthenticator, PeerCertificates
from adapter.auth.tokens import TokenAuthenticator
from adapter.auth.trust_store import OnTrustChange, TrustStore, follow_trust
from adapter.config.model import Auth
from adapter.telemetry import Telemetry
from autoscaler.kube.client import KubeClient
from autoscaler.kube.reviews import review_access, review_token


class DelegatedAuth:
    """The authenticator and the authorizer of the server.

    Until ``run`` has read the ConfigMap with the trusted CAs, callers cannot authenticate by certificate or front
    proxy; ``trust_store.is_loaded`` reports that to ``/readyz``.
    """

    def __init__(
        self,
        client: KubeClient,
        settings: Auth,
        clock: Callable[[], datetime],
        telemetry: Telemetry,
        on_trust_change: OnTrustChange,
    ) -> None:
        self._client = client
        self.trust_store = TrustStore(on_trust_change)
        peer_certificates = PeerCertificates(self.trust_store, clock)
        authenticators = (  # in Kubernetes' order
            FrontProxyAuthenticator(self.trust_store, peer_certificates),
            ClientCertificateAuthenticator(peer_certificates),
            TokenAuthenticator(telemetry.count_reviews("token", partial(review_token, client)), settings),
        )
        self.authenticator = UnionAuthenticator(authenticators)
        self.authorizer = SubjectAccessAuthorizer(
            telemetry.count_reviews("access", partial(review_access, client)), settings
        )

    async def run(self) -> None:
        """Follow the ConfigMap with the trusted CAs until cancelled."""
        await follow_trust(self._client, self.trust_store)
