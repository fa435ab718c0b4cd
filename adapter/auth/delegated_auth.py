"""Delegated authentication and authorization, put together from their parts.

``run`` follows the ConfigMap with the trusted CAs for the life of the server. Until it was read, callers cannot
authenticate by certificate or front proxy; ``trust_store.is_loaded`` reports that to ``/readyz``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Self

from adapter.auth.authentication import UnionAuthenticator
from adapter.auth.authorizer import AUTHORIZED_TTL, UNAUTHORIZED_TTL, SubjectAccessAuthorizer
from adapter.auth.client_certificates import ClientCertificateAuthenticator
from adapter.auth.front_proxy import FrontProxyAuthenticator
from adapter.auth.peer_certificate import PeerCertificates
from adapter.auth.tokens import VALID_TOKEN_TTL, TokenAuthenticator
from adapter.auth.trust_store import OnTrustChange, TrustStore, follow_trust
from adapter.telemetry import Telemetry
from autoscaler.kube.client import KubeClient
from autoscaler.kube.reviews import review_access, review_token


@dataclass(frozen=True, slots=True)
class AuthCacheTTLs:
    """How long review results are cached."""

    token: timedelta = VALID_TOKEN_TTL
    authorized: timedelta = AUTHORIZED_TTL
    unauthorized: timedelta = UNAUTHORIZED_TTL


@dataclass(frozen=True, slots=True)
class DelegatedAuth:
    """The authenticator and the authorizer of the server."""

    authenticator: UnionAuthenticator
    authorizer: SubjectAccessAuthorizer
    trust_store: TrustStore
    client: KubeClient

    @classmethod
    def create(
        cls,
        client: KubeClient,
        clock: Callable[[], datetime],
        *,
        telemetry: Telemetry,
        on_trust_change: OnTrustChange,
        ttls: AuthCacheTTLs | None = None,
    ) -> Self:
        """Put the authenticators together, in Kubernetes' order."""
        ttls = ttls or AuthCacheTTLs()
        trust_store = TrustStore(on_trust_change)
        peer_certificates = PeerCertificates(trust_store, clock)
        tokens = TokenAuthenticator(
            telemetry.count_reviews("token", partial(review_token, client)),
            valid_ttl=ttls.token,
            invalid_ttl=ttls.token / 2,
        )
        authenticators = (
            FrontProxyAuthenticator(trust_store, peer_certificates),
            ClientCertificateAuthenticator(peer_certificates),
            tokens,
        )
        authorizer = SubjectAccessAuthorizer(
            telemetry.count_reviews("access", partial(review_access, client)),
            authorized_ttl=ttls.authorized,
            unauthorized_ttl=ttls.unauthorized,
        )
        return cls(UnionAuthenticator(authenticators), authorizer, trust_store, client)

    async def run(self) -> None:
        """Follow the ConfigMap with the trusted CAs until cancelled."""
        await follow_trust(self.client, self.trust_store)
