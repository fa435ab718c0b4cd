"""Whoever listens hears of every decision, of every autoscaler that goes, and of the end."""

import asyncio
from dataclasses import dataclass, field

import pytest

from autoscaler.settings import Operation
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.decision import Decision
from tests.controller.harness import AUTOSCALERS, Stage

pytestmark = pytest.mark.looptime


@dataclass
class Listener:
    """Writes down what it hears."""

    heard: list[str] = field(default_factory=list)

    def decided(self, key: str, autoscaler: Autoscaler, decision: Decision) -> None:
        self.heard.append(f"{key}: {autoscaler.spec.scale_target_ref.name} → {decision.replicas}")

    def gone(self, key: str) -> None:
        self.heard.append(f"{key} is gone")

    def dismissed(self) -> None:
        self.heard.append("dismissed")


async def test_an_audience_hears_what_is_decided_what_goes_and_the_end(stage: Stage):
    listener = Listener()
    stage.deployment()
    stage.numbers.set("queue", 30)
    stage.autoscaler()
    control = stage.start()
    control.audience = (listener,)
    await asyncio.sleep(5)
    stage.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(5)
    await stage.stop(control)

    assert listener.heard == ["shop/web: web → 6", "shop/web is gone", "dismissed"]


async def test_who_does_not_lead_knows_who_does(stage: Stage):
    first = stage.start(Operation(), identity="one")
    await asyncio.sleep(5)
    second = stage.start(Operation(), identity="two")
    await asyncio.sleep(5)

    assert (first.leader, second.leader, second.is_leading) == ("one", "one", False)
    assert stage.start().leader == ""
