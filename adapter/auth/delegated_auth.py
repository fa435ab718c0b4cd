"""The cluster's guard at our door, put together: who is calling, may they, and whom to believe.

`run` follows the cluster's trust for as long as the server lives; until it has read it once nobody is known by
certificate or header, and `trusted.is_known` says so to `/readyz`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from adapter.auth.authentication import Authentication
from adapter.auth.authorizer import ALLOWED_FOR, DENIED_FOR, Access
from adapter.auth.client_certificates import ClientCertificates
from adapter.auth.front_proxy import FrontProxy
from adapter.auth.peer_certificate import Peers
from adapter.auth.tokens import KNOWN_FOR, Tokens
from adapter.auth.trust_store import Trusted, follow_trust
from adapter.telemetry import Telemetry
from autoscaler.kube.client import KubeClient
from autoscaler.kube.reviews import review_access, review_token


@dataclass(frozen=True, slots=True)
class Memories:
    """How long reviews are believed."""

    token: timedelta = KNOWN_FOR
    allowed: timedelta = ALLOWED_FOR
    denied: timedelta = DENIED_FOR


@dataclass(frozen=True, slots=True)
class Guard:
    """All that the server needs to know of authentication and authorization."""

    authenticator: Authentication
    authorizer: Access
    trusted: Trusted
    client: KubeClient

    async def run(self) -> None:
        """Follow the cluster's trust, for ever."""
        await follow_trust(self.client, self.trusted)


def guard(
    client: KubeClient,
    clock: Callable[[], datetime],
    memories: Memories | None = None,
    telemetry: Telemetry | None = None,
) -> Guard:
    """Put the guard together: Kubernetes' ways of saying who one is, in Kubernetes' order."""
    telemetry = telemetry or Telemetry()
    kept = memories or Memories()
    trusted = Trusted()
    peers = Peers(trusted, clock)
    tokens = Tokens(
        telemetry.counting("token", partial(review_token, client)), known_for=kept.token, unknown_for=kept.token / 2
    )
    ways = (FrontProxy(trusted, peers), ClientCertificates(peers), tokens)
    access = Access(
        telemetry.counting("access", partial(review_access, client)), allowed_for=kept.allowed, denied_for=kept.denied
    )
    return Guard(Authentication(ways), access, trusted, client)
