"""The Secret with the self-managed certificates, written with optimistic concurrency.

All replicas may create or rotate certificates at the same time. The API server accepts one write; the other replicas
get a conflict and read the result of that write. No leader is needed.
"""

import logging
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapter.tls.authority import ManagedCertificates, validate
from adapter.tls.context import KeyPair
from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import AlreadyExists, Conflict, NotFound
from autoscaler.kube.paths import api_path

log = logging.getLogger(__name__)

_CHANGED_AT: Final = "steadyscale.dev/authority-changed"


@dataclass(frozen=True, slots=True)
class StoredCertificates:
    """The Secret and its decoded content; each is None if it does not exist or is unusable."""

    certificates: ManagedCertificates | None
    secret: Json | None


@dataclass(frozen=True, slots=True)
class CertificateSecret:
    """The Secret, by name."""

    client: KubeClient
    namespace: str
    name: str

    async def read(self) -> StoredCertificates:
        """Read the certificates; None if the Secret is missing, empty or invalid, and is to be written again."""
        try:
            secret = await self.client.get(self._path)
        except NotFound:
            return StoredCertificates(None, None)
        try:
            return StoredCertificates(decode(secret), secret)
        except ValueError as error:  # raising would stop every replica, since all read this Secret
            log.error(  # noqa: TRY400
                "certificate Secret is invalid and will be replaced", extra={"secret": self.name, "error": str(error)}
            )
            return StoredCertificates(None, secret)

    async def write(self, certificates: ManagedCertificates, previous: StoredCertificates) -> bool:
        """Write the certificates if the Secret is still as it was read; return False if another replica changed it."""
        try:
            if previous.secret is None:
                metadata = {"name": self.name, "namespace": self.namespace}
                secret: Json = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
                await self.client.create(self._collection, encode(certificates, secret))
            else:
                await self.client.replace(self._path, encode(certificates, previous.secret))
        except (AlreadyExists, Conflict, NotFound):
            return False
        return True

    @property
    def _path(self) -> str:
        return f"{self._collection}{api_path(self.name)}"

    @property
    def _collection(self) -> str:
        return api_path("api", "v1", "namespaces", self.namespace, "secrets")


def encode(certificates: ManagedCertificates, secret: Json) -> Json:
    """Return the Secret with the certificates as its data."""
    next_ca = certificates.next_ca or KeyPair("", "")
    texts = {
        "ca.crt": certificates.ca.certificate,
        "ca.key": certificates.ca.key,
        "tls.crt": certificates.serving.certificate,
        "tls.key": certificates.serving.key,
        "next-ca.crt": next_ca.certificate,
        "next-ca.key": next_ca.key,
        "old-ca.crt": certificates.old_ca,
    }
    data = {name: b64encode(text.encode()).decode() for name, text in texts.items() if text}
    annotations = {
        key: value for key, value in (secret["metadata"].get("annotations") or {}).items() if key != _CHANGED_AT
    }
    if certificates.changed_at is not None:
        annotations[_CHANGED_AT] = certificates.changed_at.isoformat()
    return {**secret, "data": data, "metadata": {**secret["metadata"], "annotations": annotations}}


def decode(secret: Json) -> ManagedCertificates | None:
    """Return the certificates of a Secret; None if some are missing. Raise ``ValueError`` if they are invalid."""
    data = {name: b64decode(value).decode() for name, value in (secret.get("data") or {}).items()}
    if not all(data.get(name) for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")):
        return None
    changed_at = (secret["metadata"].get("annotations") or {}).get(_CHANGED_AT)
    has_next = data.get("next-ca.crt") and data.get("next-ca.key")
    certificates = ManagedCertificates(
        ca=KeyPair(data["ca.crt"], data["ca.key"]),
        serving=KeyPair(data["tls.crt"], data["tls.key"]),
        next_ca=KeyPair(data["next-ca.crt"], data["next-ca.key"]) if has_next else None,
        old_ca=data.get("old-ca.crt", ""),
        changed_at=datetime.fromisoformat(changed_at) if changed_at else None,
    )
    validate(certificates)
    return certificates
