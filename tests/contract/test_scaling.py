"""Discovery, and reading and writing the scale of targets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery, NoMatch
from autoscaler.kube.errors import Conflict, Unavailable
from autoscaler.kube.pods import PodLister
from autoscaler.kube.scale import NotRescaled, Rescaled, ScaleClient
from autoscaler.kube.scale_paths import decode_scale
from autoscaler.kube.targets import TargetInformers, TargetKey
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.observation import ScaleTarget, TargetReadStage, UnavailableTarget
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
async def scaling(client: KubeClient) -> AsyncIterator[tuple[ScaleClient, TargetInformers]]:
    async with TargetInformers.open(client) as targets:
        yield ScaleClient(client, Discovery(client), targets), targets


def widget_scaler(name: str) -> Autoscaler:
    return autoscaler_of("Widget", name, "example.dev/v1")


async def test_discovery_finds_scale_subresources(api: Api) -> None:
    await define(api.client, widget_definition())
    await define(api.client, widget_definition(plural="stones", kind="Stone", scalable=False))
    discovery = Discovery(api.client)
    found = [
        await discovery.resource("apps", "Deployment"),
        await discovery.resource("example.dev", "Widget"),
        await discovery.resource("example.dev", "Stone"),
        await discovery.resource("", "Pod"),
    ]
    assert [(resource.plural, resource.version, resource.scale) for resource in found] == [
        ("deployments", "v1", "autoscaling/v1"),
        ("widgets", "v1", "autoscaling/v1"),
        ("stones", "v1", None),
        ("pods", "v1", None),
    ]


async def test_discovery_has_short_names_and_categories(api: Api) -> None:
    await define(api.client, widget_definition())
    names = {}
    for root in ("/api/v1", "/apis/apps/v1", "/apis/autoscaling/v2", "/apis/example.dev/v1"):
        for entry in (await api.client.get(root))["resources"]:
            names[entry["name"]] = (entry.get("shortNames"), entry.get("categories"))
    resources = (
        "widgets",
        "widgets/scale",
        "deployments",
        "statefulsets",
        "horizontalpodautoscalers",
        "pods",
        "secrets",
    )
    assert [names[name] for name in resources] == [
        (["wi"], ["all"]),
        (None, None),
        (["deploy"], ["all"]),
        (["sts"], ["all"]),
        (["hpa"], ["all"]),
        (["po"], ["all"]),
        (None, None),
    ]


@pytest.mark.parametrize(("group", "kind"), [("apps", "Deployed"), ("nobody.example", "Thing")])
async def test_kind_that_is_not_served_raises_no_match(api: Api, group: str, kind: str) -> None:
    with pytest.raises(NoMatch, match=f'no matches for kind "{kind}" in group "{group}"'):
        await Discovery(api.client).resource(group, kind)


async def test_scale_of_zero_omits_replicas(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 0))
    scale = await api.client.get(f"{DEPLOYMENTS}/{name}/scale")
    assert "replicas" not in scale["spec"]
    assert decode_scale(scale).scale == ScaleTarget(0, 0, f"app={name}")


async def test_watched_scale_equals_the_subresource(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 2))
    await api.client.create(WIDGETS, widget(name, size=3))
    await api.client.patch(f"{WIDGETS}/{name}/status", {"status": {"size": 1, "selector": "b=2,a==1"}})
    async with scaling(api.client) as (scales, _):
        for collection, scaler in ((DEPLOYMENTS, autoscaler_of("Deployment", name)), (WIDGETS, widget_scaler(name))):

            async def are_equal(path: str = f"{collection}/{name}/scale", watched: Autoscaler = scaler) -> bool:
                return await scales.read(watched) == decode_scale(await api.client.get(path)).scale

            await eventually(are_equal)
        observed = await scales.read(widget_scaler(name))
        assert isinstance(observed, ScaleTarget)
        assert (observed.replicas, observed.selector) == (3, "a=1,b=2")


async def test_custom_resource_without_replicas_has_the_message_of_the_subresource(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(WIDGETS, widget(name))
    with pytest.raises(Unavailable) as caught:
        await api.client.get(f"{WIDGETS}/{name}/scale")
    async with scaling(api.client) as (scales, _):
        assert await scales.read(widget_scaler(name)) == UnavailableTarget(str(caught.value.server_message))


async def test_missing_target_has_the_message_of_the_server(api: Api) -> None:
    name = new_name()
    async with scaling(api.client) as (scales, _):
        missing = await scales.read(autoscaler_of("Deployment", name))
        assert missing == UnavailableTarget(f'deployments.apps "{name}" not found')
        unknown = await scales.read(autoscaler_of("Nothing", name, "nobody.example/v1"))
        assert unknown == UnavailableTarget(
            'no matches for kind "Nothing" in group "nobody.example"', TargetReadStage.MAPPING
        )


async def test_written_scale_is_visible_at_once_and_takes_effect(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 1))
    scaler = autoscaler_of("Deployment", name)
    async with scaling(api.client) as (scales, targets), PodLister.open(api.client) as pods:
        await scales.read(scaler)
        notified: list[TargetKey] = []
        targets.add_listener(notified.append)
        assert isinstance(await scales.write(scaler, 3), Rescaled)
        observed = await scales.read(scaler)
        assert isinstance(observed, ScaleTarget)
        assert observed.replicas == 3

        async def has_pods() -> bool:
            observed = await scales.read(scaler)
            listed = await pods.list("default", parse(f"app={name}"))
            return isinstance(observed, ScaleTarget) and observed.status_replicas == 3 == len(listed)

        await eventually(has_pods)
        assert TargetKey("apps", "Deployment", "default", name) in notified


async def test_write_is_retried_after_a_conflict(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(WIDGETS, widget(name, size=1))
    async with scaling(api.client) as (scales, targets):
        await scales.read(widget_scaler(name))
        informer = await targets.informer(await Discovery(api.client).resource("example.dev", "Widget"))
        assert informer is not None
        observed = informer.get(f"default/{name}")
        assert observed is not None
        await api.client.patch(f"{WIDGETS}/{name}", {"spec": {"colour": "red"}})
        resource = await Discovery(api.client).resource("example.dev", "Widget")
        written = await scales._write(resource, widget_scaler(name), observed, 4, retry_conflicts=True)
        assert written == Rescaled(4, attempts=2)
    assert (await api.client.get(f"{WIDGETS}/{name}"))["spec"] == {"size": 4, "colour": "red"}


async def test_scale_of_an_older_version_raises_conflict(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 1))
    path = f"{DEPLOYMENTS}/{name}/scale"
    scale = await api.client.get(path)
    await api.client.patch(path, {"spec": {"replicas": 2}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.replace(path, {**scale, "spec": {"replicas": 3}})


async def test_missing_target_cannot_be_written(api: Api) -> None:
    name = new_name()
    async with scaling(api.client) as (scales, _):
        written = await scales.write(autoscaler_of("Deployment", name), 1)
        assert written == NotRescaled(f'deployments.apps "{name}" not found')
