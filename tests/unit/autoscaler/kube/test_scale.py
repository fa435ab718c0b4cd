"""Targets on bad days: nothing to watch, nothing to read, others who write; and how many requests that costs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapter.fakecluster.cluster import Cluster
from autoscaler.kube.discovery import Discovery
from autoscaler.kube.scale import NotRescaled, Rescaled, ScaleClient
from autoscaler.kube.scale_paths import scale_target
from autoscaler.kube.targets import Targets
from autoscaler.types.observation import Hop, ScaleTarget, TargetUnreadable
from tests.contract.objects import (
    DEPLOYMENTS,
    WIDGETS,
    autoscaler_of,
    deployment,
    eventually,
    widget,
    widget_definition,
)

WEB = autoscaler_of("Deployment", "web")
CUSTOM = autoscaler_of("Widget", "web", "example.dev/v1")
SCALE = f"{DEPLOYMENTS}/web/scale"


@asynccontextmanager
async def stage() -> AsyncIterator[tuple[Cluster, ScaleClient]]:
    async with Cluster.serving() as cluster, cluster.client() as client, Targets.open(client) as targets:
        cluster.workloads.switch_off()
        cluster.create(DEPLOYMENTS, deployment("web", 3))
        yield cluster, ScaleClient(client, Discovery(client), targets)


def requests(cluster: Cluster) -> list[tuple[str, str]]:
    return [(one.verb, one.path) for one in cluster.asked]


async def test_once_watched_a_target_costs_no_request() -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        cluster.asked.clear()
        for _ in range(100):
            assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")
        assert [one for one in cluster.asked if one.verb != "watch"] == []


async def test_what_somebody_else_changes_is_seen() -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        cluster.edit(SCALE, {"spec": {"replicas": 7}})

        async def sees() -> bool:
            return await scales.read(WEB) == ScaleTarget(7, 0, "app=web")

        await eventually(sees)


async def test_what_may_not_be_watched_is_fetched() -> None:
    async with stage() as (cluster, scales):
        cluster.weather.forbid("list", "deployments")
        assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")
        assert requests(cluster)[-1] == ("get", SCALE)
        assert await scales.write(WEB, 4) == Rescaled(4)
        assert await scales.read(WEB) == ScaleTarget(4, 0, "app=web")


async def test_a_custom_target_whose_definition_may_not_be_read_is_fetched() -> None:
    async with stage() as (cluster, scales):
        cluster.define(widget_definition())
        cluster.create(WIDGETS, widget("web", size=2))
        cluster.weather.forbid("get", "customresourcedefinitions")
        assert await scales.read(CUSTOM) == ScaleTarget(2, 0, "")
        assert requests(cluster)[-1] == ("get", f"{WIDGETS}/web/scale")


async def test_a_kind_that_appears_later_is_found_after_a_while() -> None:
    async with stage() as (cluster, scales):
        lost = TargetUnreadable('no matches for kind "Widget" in group "example.dev"', Hop.MAPPING)
        assert await scales.read(CUSTOM) == lost
        cluster.define(widget_definition())
        cluster.create(WIDGETS, widget("web", size=2))
        assert await scales.read(CUSTOM) == lost  # not asked again so soon
        scales._discovery._groups.clear()
        assert await scales.read(CUSTOM) == ScaleTarget(2, 0, "")


async def test_a_kind_that_cannot_be_scaled_is_refused_in_the_servers_words() -> None:
    async with stage() as (_, scales):
        refused = TargetUnreadable("the server could not find the requested resource")
        assert await scales.read(autoscaler_of("ConfigMap", "web", "v1")) == refused


async def test_a_reference_that_makes_no_sense_is_the_users_fault() -> None:
    async with stage() as (_, scales):
        wrong = TargetUnreadable("unexpected GroupVersion string: a/b/c", Hop.REFERENCE)
        assert await scales.read(autoscaler_of("Deployment", "web", "a/b/c")) == wrong


async def test_four_conflicts_are_overcome_and_five_are_not() -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        cluster.refuse_next(409, times=4, verb="update")
        assert await scales.write(WEB, 5) == Rescaled(5, writes=5)
        cluster.asked.clear()
        cluster.refuse_next(409, times=5, verb="update")
        assert await scales.write(WEB, 6) == NotRescaled("refused on request")
        assert [one.verb for one in cluster.asked if one.verb != "watch"].count("update") == 5
        assert await scales.read(WEB) == ScaleTarget(5, 0, "app=web")


@pytest.mark.parametrize("code", [403, 404, 422, 429, 500, 503])
async def test_any_other_refusal_is_the_end(code: int) -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        cluster.asked.clear()
        cluster.refuse_next(code, verb="update")
        assert await scales.write(WEB, 5) == NotRescaled("refused on request")
        assert [one.verb for one in cluster.asked if one.verb != "watch"] == ["update"]


async def test_an_outage_is_no_exception() -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        await cluster.go_down()
        assert isinstance(await scales.write(WEB, 5), NotRescaled)
        assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")


async def test_a_permission_that_is_taken_away_turns_watching_into_fetching() -> None:
    async with stage() as (cluster, scales):
        await scales.read(WEB)
        cluster.weather.forbid("list", "deployments")
        cluster.weather.forbid("watch", "deployments")
        cluster.hang_up()
        cluster.edit(SCALE, {"spec": {"replicas": 9}})

        async def fetches() -> bool:
            return await scales.read(WEB) == ScaleTarget(9, 0, "app=web")

        await eventually(fetches)
        assert ("get", SCALE) in requests(cluster)


@pytest.mark.parametrize(
    ("selector", "scale"),
    [
        pytest.param("b=2,a==1", ScaleTarget(1, 0, "a=1,b=2"), id="sorted and plain"),
        pytest.param("a!=1", ScaleTarget(1, 0, "a notin (1)"), id="not equal"),
        pytest.param("", ScaleTarget(1, 0, ""), id="none"),
        pytest.param("a>1", TargetUnreadable('"gt" isn\'t supported in label selectors'), id="greater"),
    ],
)
def test_a_selector_is_read_and_printed_again(selector: str, scale: ScaleTarget | TargetUnreadable) -> None:
    assert scale_target(1, 0, selector) == scale


def test_a_selector_that_does_not_parse_is_quoted() -> None:
    scale = scale_target(1, 0, "a in")
    assert isinstance(scale, TargetUnreadable)
    assert scale.message.startswith('couldn\'t parse the selector string "a in": ')
