"""Callers that keep as many slow requests in progress as they can: other callers are still served."""

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest

from adapter.config.model import Limits
from tests.unit.adapter.served import METRIC, Served, served

REQUESTS: Final = 16


async def status_of(it: Served, namespace: str, caller: str) -> int:
    path = METRIC.replace("/default/", f"/{namespace}/")
    async with it.session.get(path, headers={"X-Remote-User": caller}) as response:
        return response.status


async def in_flight_or_refused(it: Served, attacks: Sequence[asyncio.Task[int]]) -> None:
    """Wait until every attack either holds a slot or was refused."""
    while it.metric("steadyscale_requests_in_flight") + sum(map(asyncio.Task.done, attacks)) < len(attacks):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def victims_status(it: Served, attackers: Sequence[tuple[str, str]]) -> int:
    """Return the status that another caller gets while slow requests of the attackers are in progress."""
    attacks = [asyncio.create_task(status_of(it, *attacker)) for attacker in attackers]
    await in_flight_or_refused(it, attacks)
    in_flight = it.metric("steadyscale_requests_in_flight")
    victim = asyncio.create_task(status_of(it, "shop", "hpa"))
    while not victim.done() and it.metric("steadyscale_requests_in_flight") == in_flight:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    it.backend.may_respond.set()
    await asyncio.gather(*attacks)
    return await victim


@pytest.mark.parametrize(
    "attackers",
    [
        [("evil", "mallory")] * REQUESTS,
        [("evil", f"mallory-{number}") for number in range(REQUESTS)],
        [(f"evil-{number % 3}", "mallory") for number in range(3 * REQUESTS)],
    ],
    ids=["one caller", "many callers", "three namespaces"],
)
async def test_slow_reads_of_a_tenant_leave_requests_for_other_namespaces(attackers: list[tuple[str, str]]):
    async with served(Limits(max_concurrent_requests=REQUESTS)) as it:
        assert await victims_status(it, attackers) == 200


class SlowReviews:
    """An authorizer whose reviews of one caller never end."""

    async def authorize(self, caller: object, attributes: object, source: str) -> None:  # noqa: ARG002
        if getattr(caller, "name", "") == "mallory":
            await asyncio.Event().wait()


async def test_requests_that_are_not_authorized_do_not_use_up_the_share_of_a_namespace():
    async with served(Limits(max_concurrent_requests=REQUESTS)) as it:
        it.server._authorizer = SlowReviews()
        it.backend.may_respond.set()
        attacks = [asyncio.create_task(status_of(it, "shop", "mallory")) for _ in range(REQUESTS)]
        await in_flight_or_refused(it, attacks)

        assert await status_of(it, "shop", "hpa") == 200
        for attack in attacks:
            attack.cancel()
