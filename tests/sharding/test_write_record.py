"""The record of writes, by which the integration test and the benchmark of shards judge, finds what is wrong."""

from datetime import UTC, datetime
from itertools import count

import pytest

from autoscaler.sharding.assignment import shard_of
from tests.integration.write_record import SHARD, Write, violations

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
        pytest.param([lease("a", "A"), scale("a", 3), lease("b", "B"), scale("b", 3)], 1, id="a scale twice"),
        pytest.param([lease("a", "A"), scale("a", 3), scale("a", 4), scale("a", 3)], 0, id="a scale back"),
        pytest.param([lease("a", "A"), lease("a", "B")], 1, id="a lease of another process"),
    ],
)
def test_violations_are_found(steps, expected):
    revisions, when = count(1), datetime(2026, 1, 1, tzinfo=UTC)
    writes = [
        Write(next(revisions), name, when, writer, resource, NAMESPACE, name, spec)
        for writer, resource, name, spec in steps
    ]
    assert len(violations(writes, SHARDS)) == expected
