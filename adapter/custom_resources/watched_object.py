"""The parts of an ``ExternalMetric`` object that are kept in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from adapter.custom_resources.external_metric import MAX_SPEC_BYTES
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid, Problem
from autoscaler.kube.client import Json


class Age(NamedTuple):
    """Orders objects by age, oldest first, in the same way in all replicas."""

    creation_timestamp: str
    name: str


@dataclass(slots=True, eq=False)
class ExternalMetricObject:
    """One object. Its spec is stored as JSON, which needs less memory than a document."""

    key: str
    namespace: str
    name: str
    generation: int
    creation_timestamp: str
    spec: bytes
    """Empty if it has ``problems`` or was released."""

    spec_size: int
    """Bytes; 0 if it has ``problems``."""

    spec_hash: bytes
    problems: tuple[Problem, ...]
    """Why the spec cannot be stored: it is too large, too deep, or cannot be represented as JSON."""

    status: Json

    @property
    def age(self) -> Age:
        return Age(self.creation_timestamp, self.name)

    @property
    def is_released(self) -> bool:
        return not self.spec and bool(self.spec_size)

    def release_spec(self) -> None:
        """Drop the spec of an object that is not in force, so that such objects use little memory."""
        self.spec = b""


def read_object(content: Json) -> ExternalMetricObject:
    """Convert an object of the API server, whatever its spec and status contain."""
    metadata: Mapping[str, object] = content["metadata"]
    name, namespace = str(metadata["name"]), str(metadata.get("namespace", ""))
    generation, status = metadata.get("generation"), content.get("status")
    spec, problems = _encoded_spec(content.get("spec") or {})
    return ExternalMetricObject(
        key=f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        generation=generation if isinstance(generation, int) else 0,
        creation_timestamp=str(metadata.get("creationTimestamp", "")),
        spec=spec,
        spec_size=len(spec),
        spec_hash=blake2b(spec, digest_size=16).digest(),
        problems=problems,
        status=status if isinstance(status, dict) else {},
    )


def _encoded_spec(spec: object) -> tuple[bytes, tuple[Problem, ...]]:
    try:
        encoded = documents.encode(spec, "spec")
    except ConfigInvalid as error:
        return b"", error.problems
    if len(encoded) > MAX_SPEC_BYTES:
        return b"", (Problem("spec", f"must have at most {MAX_SPEC_BYTES} bytes as JSON, has {len(encoded)}"),)
    return encoded, ()
