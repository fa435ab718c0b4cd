"""The trusted CAs and front proxy headers, read from the ConfigMap kube-system/extension-apiserver-authentication.

The API servers write it; during a CA rotation it holds the old and the new CA. The last valid value is kept when the
ConfigMap or a key is deleted or cannot be parsed. Until the ConfigMap was read, no certificate is trusted.
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from adapter.auth.certificates import EMPTY_BUNDLE, CABundle
from autoscaler.kube.client import KubeClient
from autoscaler.kube.watch import ListWatch, ObjectList, WatchEvent, WatchEventType, WatchItem, list_and_watch

log = logging.getLogger(__name__)

CONFIGMAP: Final = ListWatch(
    "/api/v1/namespaces/kube-system/configmaps",
    # The role extension-apiserver-authentication-reader permits only this name, not a list of the namespace.
    field_selector="metadata.name=extension-apiserver-authentication",
)


@dataclass(frozen=True)
class TrustedAuthorities:
    """The content of the ConfigMap."""

    clients: CABundle = EMPTY_BUNDLE
    """CAs of users' client certificates."""

    front_proxies: CABundle = EMPTY_BUNDLE
    """CAs of the front proxy's client certificates."""

    allowed_names: frozenset[str] = frozenset()
    """Allowed common names of front proxies; empty allows any."""

    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @property
    def pem(self) -> str:
        """All CAs, for the TLS handshake."""
        return "\n".join(filter(None, (self.clients.pem, self.front_proxies.pem)))

    @property
    def is_ambiguous(self) -> bool:
        """Whether a user's certificate would pass as the front proxy's: a shared CA without allowed names."""
        return not self.allowed_names and self.front_proxies.overlaps(self.clients)


OnTrustChange: TypeAlias = Callable[[TrustedAuthorities], None]


class TrustStore:
    """The current trusted CAs; calls ``on_change`` after each change."""

    def __init__(self, on_change: OnTrustChange) -> None:
        self.current = TrustedAuthorities()
        self.generation = 0
        """The number of changes; 0 until the ConfigMap was read."""

        self._on_change = on_change

    @property
    def is_loaded(self) -> bool:
        """Whether the ConfigMap was read; until then the server is not ready."""
        return self.generation > 0

    def replace(self, trusted: TrustedAuthorities) -> None:
        if self.is_loaded and trusted == self.current:
            return
        self.current = trusted
        self.generation += 1
        if trusted.is_ambiguous:
            log.error(
                "front proxy authentication disabled: client-ca-file and requestheader-client-ca-file share a CA "
                "and requestheader-allowed-names is empty"
            )
        self._on_change(trusted)


def decode(data: Mapping[str, str], previous: TrustedAuthorities) -> TrustedAuthorities:
    """Parse the ConfigMap's data; a missing key keeps its previous value. Raise ``ValueError`` if it is invalid."""
    trusted = TrustedAuthorities(
        clients=_bundle(data, "client-ca-file", previous.clients),
        front_proxies=_bundle(data, "requestheader-client-ca-file", previous.front_proxies),
        allowed_names=frozenset(_names(data, "requestheader-allowed-names", tuple(previous.allowed_names))),
        user_headers=_names(data, "requestheader-username-headers", previous.user_headers),
        # Written only by API servers with --requestheader-uid-headers; without it no UID header is trusted.
        uid_headers=_names(data, "requestheader-uid-headers", ()),
        group_headers=_names(data, "requestheader-group-headers", previous.group_headers),
        extra_prefixes=_names(data, "requestheader-extra-headers-prefix", previous.extra_prefixes),
    )
    _ = (trusted.clients.certificates, trusted.front_proxies.certificates)  # parse now, to detect invalid PEM here
    return trusted


async def follow_trust(client: KubeClient, trust_store: TrustStore) -> None:
    """Update the trust store from the ConfigMap until cancelled."""
    async with aclosing(list_and_watch(client, CONFIGMAP)) as items:
        async for item in items:
            for configmap in _configmaps(item):
                _update(configmap, trust_store)


def _update(configmap: Mapping[str, Any], trust_store: TrustStore) -> None:
    try:
        trust_store.replace(decode(configmap.get("data") or {}, trust_store.current))
    except ValueError as error:
        log.error(  # noqa: TRY400
            "ConfigMap extension-apiserver-authentication is invalid; using its last valid content",
            extra={"error": str(error)},
        )


def _configmaps(item: WatchItem) -> tuple[Mapping[str, Any], ...]:
    match item:
        case ObjectList(objects):
            if not objects:
                log.error("ConfigMap extension-apiserver-authentication not found; using its last valid content")
            return objects
        case WatchEvent(WatchEventType.DELETED, _):
            log.error("ConfigMap extension-apiserver-authentication was deleted; using its last valid content")
            return ()
        case WatchEvent(_, changed):
            return (changed,)


def _bundle(data: Mapping[str, str], key: str, previous: CABundle) -> CABundle:
    return CABundle(data[key]) if data.get(key) else previous


def _names(data: Mapping[str, str], key: str, previous: tuple[str, ...]) -> tuple[str, ...]:
    if key not in data:
        return previous
    names = json.loads(data[key]) if data[key] else []
    if not isinstance(names, list | None) or not all(isinstance(name, str) for name in names or ()):
        raise ValueError(f"{key} is not a JSON list of strings")
    return tuple(names or ())
