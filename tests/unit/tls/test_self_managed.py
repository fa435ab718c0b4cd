"""Self-managed certificates of replicas that start and rotate concurrently."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapter.config.model import SelfManagedTls, ServingTls
from adapter.tls.context import KeyPair, ServingContext
from adapter.tls.secret import decode
from adapter.tls.self_managed import SelfManagedCertificate
from adapter.tls.source import certificate_source
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Unavailable
from tests.fakes.cluster import Cluster

CERTIFICATES = "/api/v1/namespaces/system/secrets/steadyscale-serving-cert"
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
SETTINGS = SelfManagedTls("system", ca_lifetime=timedelta(days=300), certificate_lifetime=timedelta(days=30))


class FakeClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Environment:
    """A fake API server with an APIService, and a clock."""

    api: Cluster
    client: KubeClient
    clock: FakeClock

    def replica(self) -> "Replica":
        return Replica(SelfManagedCertificate(self.client, SETTINGS, self.clock), ServingContext())

    def get(self, path: str) -> dict[str, Any]:
        stored = self.api.get(path)
        assert stored is not None
        return stored

    @property
    def bundle(self) -> str:
        return b64decode(self.get(APISERVICE)["spec"].get("caBundle", "")).decode()

    @property
    def stored_key_pair(self) -> KeyPair:
        certificates = decode(self.get(CERTIFICATES))
        assert certificates is not None
        return certificates.serving


@dataclass
class Replica:
    certificate: SelfManagedCertificate
    context: ServingContext

    async def load(self) -> None:
        await self.certificate.load(self.context)

    async def step(self) -> None:
        await self.certificate.step(self.context)

    @property
    def served_key_pair(self) -> KeyPair | None:
        return self.context._key_pair


@pytest.fixture
async def cluster() -> AsyncIterator[Environment]:
    async with Cluster.serving() as api, api.client() as client:
        api.put(APISERVICE, {"spec": {"service": {"namespace": "system", "name": "steadyscale"}}})
        yield Environment(api, client, FakeClock())


async def test_first_start_creates_stores_and_publishes_certificates(cluster: Environment) -> None:
    replica = cluster.replica()
    await replica.load()
    certificates = decode(cluster.get(CERTIFICATES))
    assert certificates is not None
    assert replica.served_key_pair == certificates.serving
    assert cluster.bundle == certificates.bundle


async def test_default_source_is_a_self_managed_certificate_in_the_namespace_of_the_service(
    cluster: Environment,
) -> None:
    source = certificate_source(ServingTls(), "system", cluster.client, cluster.clock)
    await source.load(ServingContext())
    assert decode(cluster.get(CERTIFICATES)) is not None


async def test_replicas_that_start_concurrently_serve_the_same_certificate(cluster: Environment) -> None:
    replicas = [cluster.replica() for _ in range(10)]
    await asyncio.gather(*(replica.load() for replica in replicas))
    assert {replica.served_key_pair for replica in replicas} == {cluster.stored_key_pair}


async def test_replicas_that_rotate_concurrently_serve_the_same_certificate_after_the_next_step(
    cluster: Environment,
) -> None:
    replicas = [cluster.replica() for _ in range(10)]
    await asyncio.gather(*(replica.load() for replica in replicas))
    before = cluster.stored_key_pair
    cluster.clock.now += timedelta(days=25)
    await asyncio.gather(*(replica.step() for replica in replicas))
    await asyncio.gather(*(replica.step() for replica in replicas))
    assert before != cluster.stored_key_pair
    assert {replica.served_key_pair for replica in replicas} == {cluster.stored_key_pair}


async def test_new_ca_is_published_before_it_signs(cluster: Environment) -> None:
    replica = cluster.replica()
    await replica.load()
    first, served = cluster.bundle, replica.served_key_pair
    cluster.clock.now += timedelta(days=201)
    await replica.step()
    published = cluster.bundle
    assert published.startswith(first)
    assert len(published) > len(first)
    assert replica.served_key_pair == served
    cluster.clock.now += timedelta(minutes=10)
    await replica.step()
    assert replica.served_key_pair != served
    assert first in cluster.bundle  # still trusted, for replicas with the old certificate
    cluster.clock.now += timedelta(minutes=10)
    await replica.step()
    assert first not in cluster.bundle


async def test_ca_is_not_rotated_while_the_bundle_cannot_be_published(cluster: Environment) -> None:
    replica = cluster.replica()
    await replica.load()
    cluster.api.delete(APISERVICE)
    cluster.clock.now += timedelta(days=201)
    before = cluster.get(CERTIFICATES)
    await replica.step()
    assert cluster.get(CERTIFICATES) == before


async def test_api_service_of_another_service_is_not_changed(cluster: Environment) -> None:
    other = {"spec": {"service": {"namespace": "keda", "name": "keda-metrics-apiserver"}, "caBundle": "b3RoZXI="}}
    cluster.api.put(APISERVICE, other)
    await cluster.replica().load()
    assert cluster.bundle == "other"


async def test_empty_secret_is_filled(cluster: Environment) -> None:
    cluster.api.put(CERTIFICATES, {"data": {}})
    replica = cluster.replica()
    await replica.load()
    assert replica.served_key_pair == cluster.stored_key_pair


def b64(text: bytes) -> str:
    return b64encode(text).decode()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"tls.crt": b64(b"not a certificate")}, id="certificate"),
        pytest.param({"tls.key": b64(b"not a key")}, id="key"),
        pytest.param({"ca.crt": b64(b"not a CA")}, id="CA certificate"),
        pytest.param({"ca.key": b64(b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")}, id="CA key"),
        pytest.param({"tls.crt": b64(b"\xff\xfe")}, id="not text"),
        pytest.param({"next-ca.crt": b64(b"what"), "next-ca.key": b64(b"ever")}, id="next CA"),
        pytest.param({"old-ca.crt": b64(b"whatever")}, id="old CA"),
    ],
)
async def test_invalid_secret_is_replaced(
    cluster: Environment, damage: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    running, restarted = cluster.replica(), cluster.replica()
    await running.load()
    served = running.served_key_pair
    secret = cluster.get(CERTIFICATES)
    cluster.api.put(CERTIFICATES, {**secret, "data": {**secret["data"], **damage}})
    await running.step()
    await restarted.load()
    assert running.served_key_pair == restarted.served_key_pair == cluster.stored_key_pair == served
    assert "certificate Secret is invalid" in caplog.text


@pytest.mark.parametrize("changed", ["yesterday", "2026-01-01T00:00:00"])
async def test_secret_with_an_invalid_change_time_is_replaced(cluster: Environment, changed: str) -> None:
    replica = cluster.replica()
    await replica.load()
    served, secret = replica.served_key_pair, cluster.get(CERTIFICATES)
    secret["metadata"]["annotations"] = {"steadyscale.dev/authority-changed": changed}
    cluster.api.put(CERTIFICATES, secret)
    await replica.step()
    assert replica.served_key_pair == cluster.stored_key_pair == served


async def test_secret_with_a_key_of_another_certificate_is_replaced(cluster: Environment) -> None:
    replica = cluster.replica()
    await replica.load()
    secret = cluster.get(CERTIFICATES)
    cluster.api.put(CERTIFICATES, {**secret, "data": {**secret["data"], "tls.key": secret["data"]["ca.key"]}})
    await replica.step()
    assert replica.served_key_pair == cluster.stored_key_pair


async def test_deleted_secret_is_stored_again_with_the_served_certificate(cluster: Environment) -> None:
    first, second = cluster.replica(), cluster.replica()
    await first.load()
    await second.load()
    served, bundle = first.served_key_pair, cluster.bundle
    cluster.api.delete(CERTIFICATES)
    await asyncio.gather(first.step(), second.step())
    assert (cluster.stored_key_pair, first.served_key_pair, second.served_key_pair) == (served, served, served)
    assert cluster.bundle == bundle


async def test_load_fails_without_the_api_server(cluster: Environment) -> None:
    cluster.api.faults.fail_all_with = 503
    replica = cluster.replica()
    with pytest.raises(Unavailable):
        await replica.load()
    assert not replica.context.has_certificate


async def test_restarted_replica_serves_the_stored_certificate(cluster: Environment) -> None:
    first, second = cluster.replica(), cluster.replica()
    await first.load()
    await second.load()
    assert first.served_key_pair == second.served_key_pair


async def test_bundle_is_written_into_both_api_services(cluster: Environment) -> None:
    debug = APISERVICE.replace("v1beta1.external.metrics.k8s.io", "v1alpha1.debug.steadyscale.dev")
    cluster.api.put(debug, {"spec": {"service": {"namespace": "system", "name": "steadyscale"}}})
    await cluster.replica().load()
    assert cluster.get(debug)["spec"]["caBundle"] == cluster.get(APISERVICE)["spec"]["caBundle"]
