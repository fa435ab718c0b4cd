"""Targets and their scale: what the subresource shows, what a watch shows of it, and how it is written."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery, NoMatch
from autoscaler.kube.errors import Conflict, Unavailable
from autoscaler.kube.pods import Pods
from autoscaler.kube.scale import NotRescaled, Rescaled, ScaleClient
from autoscaler.kube.scale_paths import decode_scale
from autoscaler.kube.targets import TargetKey, Targets
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import Hop, ScaleTarget, TargetUnreadable
from autoscaler.values.selector import parse
from tests.contract.api import Api
from tests.contract.objects import (
    DEPLOYMENTS,
    WIDGETS,
    autoscaler_of,
    define,
    deployment,
    eventually,
    new_name,
    widget,
    widget_definition,
)


@asynccontextmanager
async def scaling(client: KubeClient) -> AsyncIterator[tuple[ScaleClient, Targets]]:
    async with Targets.open(client) as targets:
        yield ScaleClient(client, Discovery(client), targets), targets


def widget_scaler(name: str) -> Autoscaler:
    return autoscaler_of("Widget", name, "example.dev/v1")


async def test_discovery_knows_what_can_be_scaled_and_what_not(api: Api) -> None:
    await define(api.client, widget_definition())
    await define(api.client, widget_definition(plural="stones", kind="Stone", scalable=False))
    discovery = Discovery(api.client)
    found = [
        await discovery.resource("apps", "Deployment"),
        await discovery.resource("example.dev", "Widget"),
        await discovery.resource("example.dev", "Stone"),
        await discovery.resource("", "Pod"),
    ]
    assert [(one.plural, one.version, one.scale) for one in found] == [
        ("deployments", "v1", "autoscaling/v1"),
        ("widgets", "v1", "autoscaling/v1"),
        ("stones", "v1", None),
        ("pods", "v1", None),
    ]


async def test_discovery_tells_what_people_call_a_kind(api: Api) -> None:
    await define(api.client, widget_definition())
    called = {}
    for root in ("/api/v1", "/apis/apps/v1", "/apis/autoscaling/v2", "/apis/example.dev/v1"):
        for one in (await api.client.get(root))["resources"]:
            called[one["name"]] = (one.get("shortNames"), one.get("categories"))
    wanted = ("widgets", "widgets/scale", "deployments", "statefulsets", "horizontalpodautoscalers", "pods", "secrets")
    assert [called[name] for name in wanted] == [
        (["wi"], ["all"]),
        (None, None),
        (["deploy"], ["all"]),
        (["sts"], ["all"]),
        (["hpa"], ["all"]),
        (["po"], ["all"]),
        (None, None),
    ]


@pytest.mark.parametrize(("group", "kind"), [("apps", "Deployed"), ("nobody.example", "Thing")])
async def test_a_kind_that_nobody_serves_matches_nothing(api: Api, group: str, kind: str) -> None:
    with pytest.raises(NoMatch, match=f'no matches for kind "{kind}" in group "{group}"'):
        await Discovery(api.client).resource(group, kind)


async def test_a_scale_of_zero_is_left_out_and_means_zero(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 0))
    scale = await api.client.get(f"{DEPLOYMENTS}/{name}/scale")
    assert "replicas" not in scale["spec"]
    assert decode_scale(scale).scale == ScaleTarget(0, 0, f"app={name}")


async def test_a_watched_target_shows_what_its_scale_shows(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 2))
    await api.client.create(WIDGETS, widget(name, size=3))
    await api.client.patch(f"{WIDGETS}/{name}/status", {"status": {"size": 1, "selector": "b=2,a==1"}})
    async with scaling(api.client) as (scales, _):
        for collection, scaler in ((DEPLOYMENTS, autoscaler_of("Deployment", name)), (WIDGETS, widget_scaler(name))):

            async def agree(path: str = f"{collection}/{name}/scale", one: Autoscaler = scaler) -> bool:
                return await scales.read(one) == decode_scale(await api.client.get(path)).scale

            await eventually(agree)
        seen = await scales.read(widget_scaler(name))
        assert isinstance(seen, ScaleTarget)
        assert (seen.replicas, seen.selector) == (3, "a=1,b=2")


async def test_a_custom_object_without_a_size_is_unreadable_both_ways(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(WIDGETS, widget(name))
    with pytest.raises(Unavailable) as caught:
        await api.client.get(f"{WIDGETS}/{name}/scale")
    async with scaling(api.client) as (scales, _):
        assert await scales.read(widget_scaler(name)) == TargetUnreadable(str(caught.value.said))


async def test_a_target_that_is_not_there_is_named_as_the_server_names_it(api: Api) -> None:
    name = new_name()
    async with scaling(api.client) as (scales, _):
        gone = await scales.read(autoscaler_of("Deployment", name))
        assert gone == TargetUnreadable(f'deployments.apps "{name}" not found')
        lost = await scales.read(autoscaler_of("Nothing", name, "nobody.example/v1"))
        assert lost == TargetUnreadable('no matches for kind "Nothing" in group "nobody.example"', Hop.MAPPING)


async def test_what_was_written_is_seen_at_once_and_comes_true(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 1))
    scaler = autoscaler_of("Deployment", name)
    async with scaling(api.client) as (scales, targets), Pods.open(api.client) as pods:
        await scales.read(scaler)
        heard: list[TargetKey] = []
        targets.tell(heard.append)
        assert isinstance(await scales.write(scaler, 3), Rescaled)
        seen = await scales.read(scaler)
        assert isinstance(seen, ScaleTarget)
        assert seen.replicas == 3

        async def has_pods() -> bool:
            seen = await scales.read(scaler)
            there = await pods.of("default", parse(f"app={name}"))
            return isinstance(seen, ScaleTarget) and seen.status_replicas == 3 == len(there)

        await eventually(has_pods)
        assert TargetKey("apps", "Deployment", "default", name) in heard


async def test_a_write_over_a_conflict_wins_in_the_end(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(WIDGETS, widget(name, size=1))
    async with scaling(api.client) as (scales, targets):
        await scales.read(widget_scaler(name))
        store = await targets.store(await Discovery(api.client).resource("example.dev", "Widget"))
        assert store is not None
        seen = store.get(f"default/{name}")
        assert seen is not None
        await api.client.patch(f"{WIDGETS}/{name}", {"spec": {"colour": "red"}})
        resource = await Discovery(api.client).resource("example.dev", "Widget")
        written = await scales._write(resource, widget_scaler(name), seen, 4)
        assert written == Rescaled(4, writes=2)
    assert (await api.client.get(f"{WIDGETS}/{name}"))["spec"] == {"size": 4, "colour": "red"}


async def test_a_scale_of_an_older_version_is_a_conflict(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 1))
    path = f"{DEPLOYMENTS}/{name}/scale"
    scale = await api.client.get(path)
    await api.client.patch(path, {"spec": {"replicas": 2}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.replace(path, {**scale, "spec": {"replicas": 3}})


async def test_a_target_that_went_cannot_be_written(api: Api) -> None:
    name = new_name()
    async with scaling(api.client) as (scales, _):
        written = await scales.write(autoscaler_of("Deployment", name), 1)
        assert written == NotRescaled(f'deployments.apps "{name}" not found')
