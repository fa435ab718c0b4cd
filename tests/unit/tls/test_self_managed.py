"""Certificates of our own making, among replicas that start and step at the same moment."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.fakecluster.cluster import Cluster
from adapter.tls.api_service import ApiService
from adapter.tls.authority import Lifetimes
from adapter.tls.context import Pair, ServingContext
from adapter.tls.secret import KeySecret, decode
from adapter.tls.self_managed import SelfManaged
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Unavailable

KEPT = "/api/v1/namespaces/ours/secrets/serving"
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
LIVES = Lifetimes(authority=timedelta(days=300), certificate=timedelta(days=30), overlap=timedelta(minutes=10))


class Calendar:
    """The time, as the test says."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Scene:
    api: Cluster
    client: KubeClient
    calendar: Calendar

    def replica(self) -> "Replica":
        managed = SelfManaged(
            KeySecret(self.client, "ours", "serving"),
            ApiService(self.client, "ours", "steadyscale"),
            ("steadyscale.ours.svc",),
            self.calendar,
            LIVES,
        )
        return Replica(managed, ServingContext())

    def seen(self, path: str) -> dict[str, Any]:
        found = self.api.get(path)
        assert found is not None
        return found

    @property
    def bundle(self) -> str:
        return b64decode(self.seen(APISERVICE)["spec"].get("caBundle", "")).decode()

    @property
    def kept_pair(self) -> Pair:
        keys = decode(self.seen(KEPT))
        assert keys is not None
        return keys.serving


@dataclass
class Replica:
    managed: SelfManaged
    context: ServingContext

    async def load(self) -> None:
        await self.managed.load(self.context)

    async def step(self) -> None:
        await self.managed.step(self.context)

    @property
    def serves(self) -> Pair | None:
        return self.context._pair


@pytest.fixture
async def cluster() -> AsyncIterator[Scene]:
    async with Cluster.serving() as api, api.client() as client:
        api.put(APISERVICE, {"spec": {"service": {"namespace": "ours", "name": "steadyscale"}}})
        yield Scene(api, client, Calendar())


async def test_the_first_start_makes_keeps_and_publishes(cluster: Scene) -> None:
    replica = cluster.replica()
    await replica.load()
    keys = decode(cluster.seen(KEPT))
    assert keys is not None
    assert replica.serves == keys.serving
    assert cluster.bundle == keys.bundle


async def test_ten_that_start_at_once_serve_the_same_certificate(cluster: Scene) -> None:
    replicas = [cluster.replica() for _ in range(10)]
    await asyncio.gather(*(replica.load() for replica in replicas))
    assert {replica.serves for replica in replicas} == {cluster.kept_pair}


async def test_ten_that_step_at_once_agree_at_the_next_look(cluster: Scene) -> None:
    replicas = [cluster.replica() for _ in range(10)]
    await asyncio.gather(*(replica.load() for replica in replicas))
    before = cluster.kept_pair
    cluster.calendar.now += timedelta(days=25)
    await asyncio.gather(*(replica.step() for replica in replicas))
    await asyncio.gather(*(replica.step() for replica in replicas))
    assert before != cluster.kept_pair
    assert {replica.serves for replica in replicas} == {cluster.kept_pair}


async def test_a_new_authority_is_published_before_it_signs(cluster: Scene) -> None:
    replica = cluster.replica()
    await replica.load()
    first, served = cluster.bundle, replica.serves
    cluster.calendar.now += timedelta(days=201)
    await replica.step()
    announced = cluster.bundle
    assert announced.startswith(first)
    assert len(announced) > len(first)
    assert replica.serves == served
    cluster.calendar.now += timedelta(minutes=10)
    await replica.step()
    assert replica.serves != served
    assert first in cluster.bundle  # still trusted, for who is behind
    cluster.calendar.now += timedelta(minutes=10)
    await replica.step()
    assert first not in cluster.bundle


async def test_while_it_cannot_be_published_no_authority_is_changed(cluster: Scene) -> None:
    replica = cluster.replica()
    await replica.load()
    cluster.api.delete(APISERVICE)
    cluster.calendar.now += timedelta(days=201)
    before = cluster.seen(KEPT)
    await replica.step()
    assert cluster.seen(KEPT) == before


async def test_someone_elses_registration_is_left_alone(cluster: Scene) -> None:
    theirs = {"spec": {"service": {"namespace": "keda", "name": "keda-metrics-apiserver"}, "caBundle": "dGhlaXJz"}}
    cluster.api.put(APISERVICE, theirs)
    await cluster.replica().load()
    assert cluster.bundle == "theirs"


async def test_a_secret_that_was_emptied_is_filled_again(cluster: Scene) -> None:
    cluster.api.put(KEPT, {"data": {}})
    replica = cluster.replica()
    await replica.load()
    assert replica.serves == cluster.kept_pair


def b64(text: bytes) -> str:
    return b64encode(text).decode()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"tls.crt": b64(b"not a certificate")}, id="certificate"),
        pytest.param({"tls.key": b64(b"not a key")}, id="key"),
        pytest.param({"ca.crt": b64(b"not an authority")}, id="authority"),
        pytest.param(
            {"ca.key": b64(b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")}, id="authority's key"
        ),
        pytest.param({"tls.crt": b64(b"\xff\xfe")}, id="not text"),
        pytest.param({"next-ca.crt": b64(b"what"), "next-ca.key": b64(b"ever")}, id="next authority"),
        pytest.param({"old-ca.crt": b64(b"whatever")}, id="old authority"),
    ],
)
async def test_a_secret_that_was_damaged_is_replaced_as_one_that_is_empty(
    cluster: Scene, damage: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    running, restarted = cluster.replica(), cluster.replica()
    await running.load()
    served = running.serves
    kept = cluster.seen(KEPT)
    cluster.api.put(KEPT, {**kept, "data": {**kept["data"], **damage}})
    await running.step()
    await restarted.load()
    assert running.serves == restarted.serves == cluster.kept_pair != served
    assert "what the Secret holds cannot be used" in caplog.text


@pytest.mark.parametrize("changed", ["yesterday", "2026-01-01T00:00:00"])
async def test_so_is_one_whose_time_of_change_is_none(cluster: Scene, changed: str) -> None:
    replica = cluster.replica()
    await replica.load()
    served, kept = replica.serves, cluster.seen(KEPT)
    kept["metadata"]["annotations"] = {"steadyscale.dev/authority-changed": changed}
    cluster.api.put(KEPT, kept)
    await replica.step()
    assert replica.serves == cluster.kept_pair != served


async def test_keys_that_do_not_belong_together_are_replaced(cluster: Scene) -> None:
    replica = cluster.replica()
    await replica.load()
    kept = cluster.seen(KEPT)
    cluster.api.put(KEPT, {**kept, "data": {**kept["data"], "tls.key": kept["data"]["ca.key"]}})
    await replica.step()
    assert replica.serves == cluster.kept_pair


async def test_without_the_api_server_there_is_an_error_and_no_certificate(cluster: Scene) -> None:
    cluster.api.weather.refusing = 503
    replica = cluster.replica()
    with pytest.raises(Unavailable):
        await replica.load()
    assert not replica.context.has_certificate


async def test_a_restart_goes_on_with_what_is_kept(cluster: Scene) -> None:
    first, second = cluster.replica(), cluster.replica()
    await first.load()
    await second.load()
    assert first.serves == second.serves
