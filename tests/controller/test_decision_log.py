"""The decision log across terms of the same process as leader."""

import asyncio

import pytest
from msgspec.structs import replace

from adapter.debug.decision_log import DecisionLog
from tests.controller.harness import AUTOSCALERS, WITHOUT_LEADER_ELECTION, Harness

pytestmark = pytest.mark.looptime

ELECTED = replace(WITHOUT_LEADER_ELECTION, leader_elect=True)


async def lose_the_lease(harness: Harness) -> None:
    """Let renewals fail until the process gives up leadership, then let it acquire the Lease again."""
    harness.cluster.faults.fail_next(503, times=10_000, within="/leases/")
    await asyncio.sleep(13)
    harness.cluster.faults.clear()


async def test_timelines_and_states_survive_the_loss_of_the_lease(harness: Harness):
    log = DecisionLog()
    harness.external_metrics.set("queue", 30)
    harness.deployment(replicas=6)
    harness.autoscaler(mode="Paused")
    process = harness.start(ELECTED, listeners=(log,))
    await asyncio.sleep(60)
    before = log.get("shop/web")
    assert before is not None
    started, since = before.timeline.columns()["time"][0], before.since

    await lose_the_lease(harness)
    assert not process.is_leader
    kept = log.get("shop/web")
    assert kept is not None
    outdated_since = log.outdated_since
    assert outdated_since == kept.decision.at

    await asyncio.sleep(40)
    after, outdated_since = log.get("shop/web"), log.outdated_since
    assert outdated_since is None
    assert after is not None
    assert after.decision.at > before.decision.at
    assert after.timeline.columns()["time"][0] == started
    assert after.since == since


async def test_autoscaler_deleted_while_not_leading_is_dropped_in_the_next_term(harness: Harness):
    log = DecisionLog()
    harness.external_metrics.set("queue", 30)
    for name in ("web", "other"):
        harness.deployment(name, replicas=6)
        harness.autoscaler(name)
    harness.start(ELECTED, listeners=(log,))
    await asyncio.sleep(60)
    await lose_the_lease(harness)
    harness.cluster.delete(f"{AUTOSCALERS}/other")
    await asyncio.sleep(40)
    assert [key for key, _ in log] == ["shop/web"]
