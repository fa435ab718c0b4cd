"""Whom the cluster tells us to believe: the configmap extension-apiserver-authentication of kube-system, followed.

The API servers write their certificate authorities and header names into it; during a rotation it holds old and new. We
read what is there and keep the last good value through everything that may happen to it: a deletion, a vanished key,
JSON that does not parse. Until it was read once nobody is believed.
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.auth.certificates import NOBODY, Authorities
from autoscaler.kube.client import KubeClient
from autoscaler.kube.watch import Change, Happened, Listing, News, Watched, follow

log = logging.getLogger(__name__)

CONFIGMAP: Final = Watched(
    "/api/v1/namespaces/kube-system/configmaps",
    # The role that Kubernetes ships for this allows this name only; to list the whole namespace is forbidden.
    field_selector="metadata.name=extension-apiserver-authentication",
)


@dataclass(frozen=True)
class Trust:
    """What the configmap says."""

    clients: Authorities = NOBODY
    """Vouch for ordinary users' certificates."""

    front_proxies: Authorities = NOBODY
    """Vouch for the API servers, when they pass on somebody's request."""

    allowed_names: frozenset[str] = frozenset()
    """The front proxies' common names; empty means any that their authorities vouch for."""

    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @property
    def authorities(self) -> str:
        """Every authority whose certificates the handshake should let through, as PEM."""
        return "\n".join(filter(None, (self.clients.pem, self.front_proxies.pem)))

    @property
    def is_ambiguous(self) -> bool:
        """Say whether any user could pass for a front proxy: one authority for both, and no names tell them apart."""
        return not self.allowed_names and self.front_proxies.shares_with(self.clients)


@dataclass
class Trusted:
    """The trust that holds now, and who wants to know when it changes."""

    current: Trust = field(default_factory=Trust)
    generation: int = 0
    """Counts the changes; 0 until the configmap was read for the first time."""

    _listeners: list[Callable[[Trust], None]] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Say whether the configmap was read at all; until then the server is not ready."""
        return self.generation > 0

    def tell(self, listener: Callable[[Trust], None]) -> None:
        """Call `listener` on every change from now on."""
        self._listeners.append(listener)

    def replace(self, trust: Trust) -> None:
        """Believe this from now on."""
        if self.is_known and trust == self.current:
            return
        self.current = trust
        self.generation += 1
        if trust.is_ambiguous:
            log.error(
                "front proxies and users have the same authority and no names tell them apart: headers are ignored"
            )
        for listener in self._listeners:
            listener(trust)


def decode(data: Mapping[str, str], before: Trust) -> Trust:
    """Read the configmap's data; a key that is gone keeps its value from `before`. ValueError if it cannot be read."""
    trust = Trust(
        clients=_authorities(data, "client-ca-file", before.clients),
        front_proxies=_authorities(data, "requestheader-client-ca-file", before.front_proxies),
        allowed_names=frozenset(_names(data, "requestheader-allowed-names", tuple(before.allowed_names))),
        user_headers=_names(data, "requestheader-username-headers", before.user_headers),
        # This one alone may be absent in earnest: then a uid header is nobody's word.
        uid_headers=_names(data, "requestheader-uid-headers", ()),
        group_headers=_names(data, "requestheader-group-headers", before.group_headers),
        extra_prefixes=_names(data, "requestheader-extra-headers-prefix", before.extra_prefixes),
    )
    _ = (trust.clients.certificates, trust.front_proxies.certificates)  # read now, so that bad PEM is noticed now
    return trust


async def follow_trust(client: KubeClient, trusted: Trusted) -> None:
    """Keep `trusted` in step with the cluster, for ever."""
    async with aclosing(follow(client, CONFIGMAP)) as all_news:
        async for news in all_news:
            for configmap in _present(news):
                _take(configmap, trusted)


def _take(configmap: Mapping[str, Any], trusted: Trusted) -> None:
    try:
        trusted.replace(decode(configmap.get("data") or {}, trusted.current))
    except ValueError as error:
        log.error("the cluster's trust cannot be read; the last good one stays", extra={"error": str(error)})  # noqa: TRY400


def _present(news: News) -> tuple[Mapping[str, Any], ...]:
    match news:
        case Listing(objects):
            if not objects:
                log.error("the configmap extension-apiserver-authentication is missing; what was read before stays")
            return objects
        case Change(Happened.DELETED, _):
            log.error("the configmap extension-apiserver-authentication was deleted; what was read before stays")
            return ()
        case Change(_, changed):
            return (changed,)


def _authorities(data: Mapping[str, str], key: str, before: Authorities) -> Authorities:
    return Authorities(data[key]) if data.get(key) else before


def _names(data: Mapping[str, str], key: str, before: tuple[str, ...]) -> tuple[str, ...]:
    if key not in data:
        return before
    names = json.loads(data[key]) if data[key] else []
    if not isinstance(names, list | None) or not all(isinstance(name, str) for name in names or ()):
        raise ValueError(f"{key} is not a list of names")
    return tuple(names or ())
