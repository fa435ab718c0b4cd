"""Our keys in a Secret: read, and written only if nobody wrote in between.

Any number of replicas may start, and step, at the same moment. The API server lets one of them create or replace the
Secret; the others are told so and read what that one wrote. No leader is needed.
"""

import logging
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapter.tls.authority import Keys, check
from adapter.tls.context import Pair
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import AlreadyExists, Conflict, NotFound

log = logging.getLogger(__name__)

_CHANGED: Final = "steadyscale.dev/authority-changed"


@dataclass(frozen=True, slots=True)
class Kept:
    """What the Secret holds; `found` is the Secret itself, None if there is none."""

    keys: Keys | None
    found: Json | None


@dataclass(frozen=True, slots=True)
class KeySecret:
    """The Secret, by name."""

    client: KubeClient
    namespace: str
    name: str

    async def read(self) -> Kept:
        """Read the keys; none if the Secret is absent, empty, or not one we wrote: then it is to be written anew."""
        try:
            found = await self.client.get(f"{self._collection}/{self.name}")
        except NotFound:
            return Kept(None, None)
        try:
            return Kept(decode(found), found)
        except ValueError as error:  # every replica reads it: to fall over it would be the end of all of them
            log.error("what the Secret holds cannot be used", extra={"secret": self.name, "error": str(error)})  # noqa: TRY400
            return Kept(None, found)

    async def write(self, keys: Keys, over: Kept) -> bool:
        """Write over exactly what was read; False if somebody else wrote first."""
        try:
            if over.found is None:
                await self.client.create(self._collection, encode(keys, self._empty()))
            else:
                await self.client.replace(f"{self._collection}/{self.name}", encode(keys, over.found))
        except (AlreadyExists, Conflict, NotFound):
            return False
        return True

    @property
    def _collection(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def _empty(self) -> Json:
        metadata = {"name": self.name, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}


def encode(keys: Keys, secret: Json) -> Json:
    """Put the keys into a Secret, over what it held."""
    coming = keys.next_authority or Pair("", "")
    texts = {
        "ca.crt": keys.authority.certificate,
        "ca.key": keys.authority.key,
        "tls.crt": keys.serving.certificate,
        "tls.key": keys.serving.key,
        "next-ca.crt": coming.certificate,
        "next-ca.key": coming.key,
        "old-ca.crt": keys.old_authority,
    }
    data = {name: b64encode(text.encode()).decode() for name, text in texts.items() if text}
    annotations = {
        key: value for key, value in (secret["metadata"].get("annotations") or {}).items() if key != _CHANGED
    }
    if keys.changed is not None:
        annotations[_CHANGED] = keys.changed.isoformat()
    return {**secret, "data": data, "metadata": {**secret["metadata"], "annotations": annotations}}


def decode(secret: Json) -> Keys | None:
    """Take the keys out of a Secret; None if they are not all there, ValueError if they cannot be used."""
    data = {name: b64decode(value).decode() for name, value in (secret.get("data") or {}).items()}
    if not all(data.get(name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")):
        return None
    changed = (secret["metadata"].get("annotations") or {}).get(_CHANGED)
    has_next = data.get("next-ca.crt") and data.get("next-ca.key")
    keys = Keys(
        authority=Pair(data["ca.crt"], data["ca.key"]),
        serving=Pair(data["tls.crt"], data["tls.key"]),
        next_authority=Pair(data["next-ca.crt"], data["next-ca.key"]) if has_next else None,
        old_authority=data.get("old-ca.crt", ""),
        changed=datetime.fromisoformat(changed) if changed else None,
    )
    check(keys)
    return keys
