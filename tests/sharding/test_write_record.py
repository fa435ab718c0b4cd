"""The record of writes, by which the integration test and the benchmark of shards judge, finds what is wrong."""

import json
from datetime import UTC, datetime

import pytest

from autoscaler.sharding.assignment import shard_of
from tests.integration.write_record import SHARD, Write, WriteRecord, violations

SHARDS = 4
NAMESPACE = "team"
LEASE = f"{SHARD}{shard_of(NAMESPACE, SHARDS)}"


def lease(writer: str, holder: str) -> tuple[str, str, str, dict[str, object]]:
    return writer, "leases", LEASE, {"holderIdentity": holder}


def scale(writer: str, replicas: int) -> tuple[str, str, str, dict[str, object]]:
    return writer, "widgets/scale", "web", {"replicas": replicas}


def status(writer: str) -> tuple[str, str, str, dict[str, object]]:
    return writer, "podautoscalers/status", "web", {}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([lease("a", "A"), scale("a", 3), status("a")], 0, id="by the holder"),
        pytest.param([lease("a", "A"), lease("a", ""), lease("b", "B"), scale("b", 3)], 0, id="after a hand-over"),
        pytest.param([lease("a", "A"), lease("a", ""), status("a")], 1, id="after the release"),
        pytest.param([lease("b", "B"), lease("a", "A"), scale("a", 3), status("b")], 1, id="by the last holder"),
        pytest.param([lease("a", "A"), scale("a", 3), scale("a", 4), scale("a", 3)], 0, id="a scale back"),
        pytest.param([lease("a", "A"), lease("a", "B")], 1, id="a lease of another process"),
    ],
)
def test_violations_are_found(steps, expected):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    writes = [
        Write(revision, name, when, writer, resource, NAMESPACE, name, spec)
        for revision, (writer, resource, name, spec) in enumerate(steps)
    ]
    assert len(violations(writes, SHARDS)) == expected


@pytest.mark.parametrize(("resource", "expected"), [("widgets/scale", 1), ("podautoscalers/status", 0)])
def test_write_that_changes_nothing_is_found_in_the_audit_log(tmp_path, resource, expected):
    held = event("leases", LEASE, 1, {"holderIdentity": "A"})
    written = event(*resource.split("/"), "web", 2, {"replicas": 3})
    failed = event(*resource.split("/"), "web", 3, {"replicas": 3}, code=504)
    (tmp_path / "audit.log").write_text("".join(f"{json.dumps(one)}\n" for one in (held, written, failed)))
    record = WriteRecord(tmp_path)
    assert (len(record.read()), violations(record.read(), SHARDS)) == (2, [])
    with (tmp_path / "audit.log").open("a") as log:
        log.write(f"{json.dumps(written)}\n{{incomplete")
    assert (len(record.read()), len(violations(record.read(), SHARDS))) == (3, expected)


def event(*path: str | int | dict[str, object], code: int = 200) -> dict[str, object]:
    """Return an audit event of a resource, an optional subresource, a name, a revision and a spec."""
    *kinds, name, revision, spec = path
    metadata = {"name": name, "uid": name, "resourceVersion": str(revision)}
    return {
        "responseStatus": {"code": code},
        "objectRef": dict(zip(("resource", "subresource"), kinds, strict=False)) | {"namespace": NAMESPACE},
        "responseObject": {"metadata": metadata, "spec": spec},
        "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
        "user": {"extra": {"authentication.kubernetes.io/credential-id": ["JTI=a"]}},
    }
