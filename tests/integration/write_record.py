"""The record of all writes of the service account, from the audit log of the API server.

The resource versions in the responses are revisions of etcd. They order the writes of all processes exactly, whatever
the load of the machine is: the holder of a shard at a write is the one in the last write of its Lease before it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from autoscaler.sharding.assignment import shard_of

SHARD: Final = "steadyscale-shard-"
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "RequestResponse",
            "users": ["system:serviceaccount:steadyscale:steadyscale"],
            "verbs": ["create", "update", "patch"],
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "steadyscale.dev", "resources": ["podautoscalers/status"]},
                {"group": "example.com", "resources": ["widgets/scale"]},
            ],
        },
        {"level": "None"},
    ],
}


@dataclass
class Write:
    """One write that the API server has stored."""

    revision: int
    uid: str
    received: datetime
    writer: str
    """The token of the process."""

    resource: str
    namespace: str
    name: str
    spec: Any
    """The spec of a Lease or scale."""

    is_repeated: bool = False
    """Whether the write has changed nothing; then the revision is that of the write before."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_status(self) -> bool:
        return self.resource == "podautoscalers/status"

    @property
    def is_scale(self) -> bool:
        return self.resource == "widgets/scale"

    @property
    def is_shard_lease(self) -> bool:
        return self.resource == "leases" and self.name.startswith(SHARD)

    @property
    def shard(self) -> int:
        """The shard of a Lease."""
        return int(self.name.removeprefix(SHARD))

    @property
    def holder(self) -> str:
        """The holder in a Lease; empty if it is released."""
        return str(self.spec.get("holderIdentity") or "")

    @property
    def size(self) -> int:
        """The replicas in a scale."""
        return int(self.spec["replicas"])


def audit_flags(folder: Path) -> tuple[str, ...]:
    """Return the flags of an API server that records the writes."""
    policy = folder / "audit-policy.yaml"
    policy.write_text(json.dumps(_POLICY))
    return f"--audit-policy-file={policy}", f"--audit-log-path={_log(folder)}"


class WriteRecord:
    """The writes so far; each read continues where the last one ended."""

    def __init__(self, folder: Path) -> None:
        self._log = _log(folder)
        self._offset = 0
        self._writes: list[Write] = []
        self._versions: set[tuple[str, int]] = set()

    def read(self) -> list[Write]:
        """Return all writes so far in the order in which they were stored."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            complete = log.read().rpartition(b"\n")[0]
        self._offset += len(complete) + 1 if complete else 0
        for line in complete.splitlines():
            write = _decode(json.loads(line))
            if write is not None:
                # A write that changes nothing has the version of the one before.
                write.is_repeated = (write.uid, write.revision) in self._versions
                self._versions.add((write.uid, write.revision))
                self._writes.append(write)
        return sorted(self._writes, key=lambda write: write.revision)


def violations(writes: Iterable[Write], shards: int) -> list[str]:
    """Return the writes of objects by processes that did not hold the shard, and the scales written twice."""
    found, holders, identities = [], dict[int, str](), dict[str, str]()
    for write in writes:
        if write.is_shard_lease:
            holders[write.shard] = write.holder
            if write.holder and identities.setdefault(write.writer, write.holder) != write.holder:
                found.append(f"{identities[write.writer]} wrote a Lease as {write.holder}")
        elif write.resource != "leases":
            shard, writer = shard_of(write.namespace, shards), identities.get(write.writer)
            if write.is_repeated and write.is_scale:
                found.append(f"{writer} wrote the scale of {write.key} again: {write.size}")
            elif not write.is_repeated and holders.get(shard) != writer:
                found.append(f"{writer} wrote {write.resource} {write.key}, shard {shard} of {holders.get(shard)}")
    return found


def _log(folder: Path) -> Path:
    return folder / "audit.log"


def _decode(event: Any) -> Write | None:
    """Return the write of an audit event; None if it failed."""
    if event["responseStatus"].get("code", 500) >= 300:
        return None
    reference, content = event["objectRef"], event["responseObject"]
    return Write(
        int(content["metadata"]["resourceVersion"]),
        content["metadata"]["uid"],
        datetime.fromisoformat(event["requestReceivedTimestamp"]),
        str(event["user"]["extra"][_CREDENTIAL]),
        "/".join(filter(None, (reference["resource"], reference.get("subresource")))),
        reference["namespace"],
        content["metadata"]["name"],
        content["spec"] if reference["resource"] != "podautoscalers" else {},
    )
