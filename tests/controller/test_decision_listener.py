"""Decision listeners are notified of decisions, deletions and the loss of leadership."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from autoscaler.settings import ControllerOptions
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.controller.harness import AUTOSCALERS, Harness

pytestmark = pytest.mark.looptime


@dataclass
class Listener:
    """Records all notifications."""

    notifications: list[str] = field(default_factory=list)

    def on_decision(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        self.notifications.append(f"{key}: {autoscaler.spec.scale_target_ref.name} → {decision.replicas}")

    def on_deleted(self, key: str) -> None:
        self.notifications.append(f"{key} deleted")

    def on_leadership_acquired(self, keys: Collection[str], _shards: HeldShards) -> None:
        self.notifications.append(f"leader of {', '.join(keys)}")

    def on_leadership_lost(self) -> None:
        self.notifications.append("leadership lost")


async def test_listener_is_notified_of_decision_deletion_and_loss_of_leadership(harness: Harness):
    listener = Listener()
    harness.deployment()
    harness.external_metrics.set("queue", 30)
    harness.autoscaler()
    process = harness.start(listeners=(listener,))
    await asyncio.sleep(5)
    harness.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(5)
    await harness.stop(process)

    assert listener.notifications == ["leader of shop/web", "shop/web: web → 6", "shop/web deleted", "leadership lost"]


async def test_follower_knows_the_leader(harness: Harness):
    first = harness.start(ControllerOptions(), identity="one")
    await asyncio.sleep(5)
    second = harness.start(ControllerOptions(), identity="two")
    await asyncio.sleep(5)

    assert (first.leader, second.leader, second.is_leader) == ("one", "one", False)
    assert harness.start().leader == ""
