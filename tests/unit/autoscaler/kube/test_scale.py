"""Reading and writing scales during failures, and the number of requests."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from autoscaler.kube.discovery import Discovery
from autoscaler.kube.scale import NotApplied, NotRescaled, OutcomeUnknown, Rescaled, ScaleClient
from autoscaler.kube.scale_paths import scale_target
from autoscaler.kube.targets import TargetInformers
from autoscaler.types.history import UnknownRescale
from autoscaler.types.observation import ScaleTarget, TargetReadStage, UnavailableTarget
from tests.contract.objects import (
    DEPLOYMENTS,
    WIDGETS,
    autoscaler_of,
    deployment,
    eventually,
    widget,
    widget_definition,
)
from tests.fakes.cluster import Cluster

WEB = autoscaler_of("Deployment", "web")
CUSTOM = autoscaler_of("Widget", "web", "example.dev/v1")
SCALE = f"{DEPLOYMENTS}/web/scale"


@asynccontextmanager
async def running_scale_client(
    may_write: Callable[[], bool] = lambda: True,
) -> AsyncIterator[tuple[Cluster, ScaleClient]]:
    async with Cluster.serving() as cluster, cluster.client() as client, TargetInformers.open(client) as targets:
        cluster.workloads.pause()
        cluster.create(DEPLOYMENTS, deployment("web", 3))
        yield cluster, ScaleClient(client, Discovery(client), targets, may_write)


def requests(cluster: Cluster) -> list[tuple[str, str]]:
    return [(request.verb, request.path) for request in cluster.requests]


async def test_watched_target_is_read_without_requests() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.requests.clear()
        for _ in range(100):
            assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")
        assert [request for request in cluster.requests if request.verb != "watch"] == []


async def test_change_by_another_client_is_observed() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.patch(SCALE, {"spec": {"replicas": 7}})

        async def is_observed() -> bool:
            return await scales.read(WEB) == ScaleTarget(7, 0, "app=web")

        await eventually(is_observed)


async def test_kind_without_permission_to_list_is_fetched() -> None:
    async with running_scale_client() as (cluster, scales):
        cluster.faults.forbid("list", "deployments")
        assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")
        assert requests(cluster)[-1] == ("get", SCALE)
        assert await scales.write(WEB, 4) == Rescaled(4)
        assert await scales.read(WEB) == ScaleTarget(4, 0, "app=web")


async def test_custom_resource_without_permission_to_read_its_definition_is_fetched() -> None:
    async with running_scale_client() as (cluster, scales):
        cluster.install_crd(widget_definition())
        cluster.create(WIDGETS, widget("web", size=2))
        cluster.faults.forbid("get", "customresourcedefinitions")
        assert await scales.read(CUSTOM) == ScaleTarget(2, 0, "")
        assert requests(cluster)[-1] == ("get", f"{WIDGETS}/web/scale")


async def test_kind_installed_later_is_discovered_after_the_retry_interval() -> None:
    async with running_scale_client() as (cluster, scales):
        no_match = UnavailableTarget('no matches for kind "Widget" in group "example.dev"', TargetReadStage.MAPPING)
        assert await scales.read(CUSTOM) == no_match
        cluster.install_crd(widget_definition())
        cluster.create(WIDGETS, widget("web", size=2))
        assert await scales.read(CUSTOM) == no_match  # within the retry interval
        scales._discovery._groups.clear()
        assert await scales.read(CUSTOM) == ScaleTarget(2, 0, "")


async def test_kind_without_scale_subresource_has_the_message_of_the_server() -> None:
    async with running_scale_client() as (_, scales):
        expected = UnavailableTarget("the server could not find the requested resource")
        assert await scales.read(autoscaler_of("ConfigMap", "web", "v1")) == expected


async def test_malformed_api_version_is_an_error_of_the_reference() -> None:
    async with running_scale_client() as (_, scales):
        expected = UnavailableTarget("unexpected GroupVersion string: a/b/c", TargetReadStage.REFERENCE)
        assert await scales.read(autoscaler_of("Deployment", "web", "a/b/c")) == expected


async def test_write_is_retried_after_four_conflicts_but_not_after_five() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.faults.fail_next(409, times=4, verb="update")
        assert await scales.write(WEB, 5) == Rescaled(5, attempts=5)
        cluster.requests.clear()
        cluster.faults.fail_next(409, times=5, verb="update")
        assert await scales.write(WEB, 6) == NotRescaled("injected fault")
        assert [request.verb for request in cluster.requests if request.verb != "watch"].count("update") == 5
        assert await scales.read(WEB) == ScaleTarget(5, 0, "app=web")


async def test_conflict_is_not_retried_after_leadership_is_lost() -> None:
    leadership = iter([True, False])
    async with running_scale_client(lambda: next(leadership)) as (cluster, scales):
        await scales.read(WEB)
        cluster.requests.clear()
        cluster.faults.fail_next(409, verb="update")
        assert await scales.write(WEB, 5) == NotRescaled("this process is no longer the leader")
        assert [request.verb for request in cluster.requests].count("update") == 1


@pytest.mark.parametrize("code", [403, 404, 422, 429, 500, 503, 504])
async def test_write_is_not_retried_after_other_errors(code: int) -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.requests.clear()
        cluster.faults.fail_next(code, verb="update")
        result = await scales.write(WEB, 5)
        assert isinstance(result, OutcomeUnknown if code >= 500 else NotRescaled)
        assert result.message == "injected fault"
        assert [request.verb for request in cluster.requests if request.verb != "watch"] == ["update"]


async def test_outage_is_returned_as_a_result() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        await cluster.stop()
        assert isinstance(await scales.write(WEB, 5), NotRescaled)
        assert await scales.read(WEB) == ScaleTarget(3, 0, "app=web")


async def test_scale_is_fetched_after_the_permission_to_watch_was_revoked() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.faults.forbid("list", "deployments")
        cluster.faults.forbid("watch", "deployments")
        cluster.close_watches()
        cluster.patch(SCALE, {"spec": {"replicas": 9}})

        async def is_fetched() -> bool:
            return await scales.read(WEB) == ScaleTarget(9, 0, "app=web")

        await eventually(is_fetched)
        assert ("get", SCALE) in requests(cluster)


@pytest.mark.parametrize(
    ("selector", "scale"),
    [
        pytest.param("b=2,a==1", ScaleTarget(1, 0, "a=1,b=2"), id="sorted and normalized"),
        pytest.param("a!=1", ScaleTarget(1, 0, "a notin (1)"), id="not equal"),
        pytest.param("", ScaleTarget(1, 0, ""), id="empty"),
        pytest.param("a>1", UnavailableTarget('"gt" isn\'t supported in label selectors'), id="greater than"),
    ],
)
def test_selector_is_normalized(selector: str, scale: ScaleTarget | UnavailableTarget) -> None:
    assert scale_target(1, 0, selector) == scale


def test_invalid_selector_is_quoted_in_the_message() -> None:
    scale = scale_target(1, 0, "a in")
    assert isinstance(scale, UnavailableTarget)
    assert scale.message.startswith('couldn\'t parse the selector string "a in": ')


def unknown_rescale(replicas: int, resource_version: str) -> UnknownRescale:
    return UnknownRescale(3, replicas, datetime(2026, 3, 1, tzinfo=UTC), resource_version)


@pytest.mark.parametrize("is_watched", [True, False])
async def test_outcome_of_a_write_follows_from_replicas_and_version_of_the_target(*, is_watched: bool) -> None:
    async with running_scale_client() as (cluster, scales):
        if not is_watched:
            cluster.faults.forbid("list", "deployments")
        await scales.read(WEB)
        cluster.faults.fail_next(504, verb="update")
        result = await scales.write(WEB, 5)
        assert isinstance(result, OutcomeUnknown)
        rescale = unknown_rescale(5, result.resource_version)
        assert await scales.outcome(WEB, [rescale], in_flight=True) is None
        assert await scales.outcome(WEB, [rescale], in_flight=False) == NotApplied()

        cluster.patch(SCALE, {"spec": {"replicas": 5}})
        other = unknown_rescale(7, result.resource_version)
        assert await scales.outcome(WEB, [rescale, other], in_flight=True) is rescale
        assert await scales.read(WEB) == ScaleTarget(5, 0, "app=web")

        cluster.patch(SCALE, {"spec": {"replicas": 6}})
        assert await scales.outcome(WEB, [other], in_flight=True) == NotApplied()
        assert await scales.outcome(WEB, [unknown_rescale(7, "")], in_flight=True) is None


async def test_outcome_stays_unknown_while_the_scale_cannot_be_read() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.faults.fail_next(503, times=2, verb="get")
        assert await scales.outcome(WEB, [unknown_rescale(5, "")], in_flight=False) is None
        cluster.delete(f"{DEPLOYMENTS}/web")
        assert await scales.outcome(WEB, [unknown_rescale(5, "")], in_flight=False) is None


async def test_conflict_is_not_retried_while_an_earlier_outcome_is_unknown() -> None:
    async with running_scale_client() as (cluster, scales):
        await scales.read(WEB)
        cluster.faults.fail_next(409, verb="update")
        assert isinstance(await scales.write(WEB, 5, retry_conflicts=False), OutcomeUnknown)
