"""The record of a real run, from the audit log of the API server.

Every process has a token of its own; the API server logs its id with each request. Processes are thereby distinguished,
also before and after a restart.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from tests.faults.random_run.record import (
    Json,
    LeaseWrite,
    ScaleWrite,
    SpecWrite,
    StatusWrite,
    TargetWrite,
    Write,
)

_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_ADMIN: Final = "admin"
_RESOURCES: Final = [
    {"group": "apps", "resources": ["deployments", "deployments/scale"]},
    {"group": "steadyscale.dev", "resources": ["podautoscalers", "podautoscalers/status"]},
    {"group": "coordination.k8s.io", "resources": ["leases"]},
]
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete"], "resources": _RESOURCES},
        {"level": "None"},
    ],
}


def audit_flags(folder: Path) -> tuple[str, ...]:
    """Write the audit policy and return the flags of the API server; the log is complete when a response is sent."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(_POLICY))
    log = f"--audit-log-path={folder / 'audit.log'}"
    return f"--audit-policy-file={policy}", log, "--audit-log-mode=blocking-strict"


def token_id(token: str) -> str:
    """Return the id of a token as it is in the audit log."""
    payload = token.split(".")[1]
    return f"JTI={json.loads(urlsafe_b64decode(payload + '=' * (-len(payload) % 4)))['jti']}"


def read_writes(log: Path, processes: Mapping[str, str], lease: str) -> list[Write]:
    """Return all accepted writes in their order; ``processes`` are the names by the ids of their tokens."""
    entries = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    accepted = [entry for entry in entries if entry["responseStatus"].get("code", 0) < 300]
    accepted.sort(key=lambda entry: str(entry["stageTimestamp"]))
    return [write for entry in accepted for write in _writes_of(entry, processes, lease)]


def _writes_of(entry: Json, processes: Mapping[str, str], lease: str) -> Iterator[Write]:
    reference, user = entry["objectRef"], entry["user"]
    writer = processes.get(next(iter(user.get("extra", {}).get(_CREDENTIAL, ())), ""), "")
    at = datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
    content, name = entry.get("responseObject") or {}, reference.get("name", "")
    name = name or content.get("metadata", {}).get("name", "")
    spec = None if entry["verb"] == "delete" else content.get("spec") or {}
    match reference["resource"], reference.get("subresource", ""):
        case "leases", _ if writer and name == lease:
            yield LeaseWrite(at, writer, not (spec or {}).get("holderIdentity"))
        case "deployments", "scale" if writer:
            yield ScaleWrite(at, writer, name, (spec or {}).get("replicas", 0))
        case "podautoscalers", "status" if writer:
            yield StatusWrite(at, writer, name)
        case "podautoscalers", "" if user["username"] == _ADMIN:
            yield SpecWrite(at, name, content.get("metadata", {}).get("uid", ""), spec)
        case "deployments", "" if user["username"] == _ADMIN:
            yield TargetWrite(at, name, None if spec is None else spec["replicas"])
