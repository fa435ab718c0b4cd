"""Connections of attackers without credentials: memory within the manifest's limit, and others are still served."""

import asyncio
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml

from adapter.config.model import Limits
from tests.security.attacker import STAGES, attacked
from tests.security.served_process import ServedProcess, served_process

pytestmark = pytest.mark.slow
DEPLOYMENT: Final = Path("manifests/base/deployment.yaml")
METRIC: Final = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/whole"
SERVICE_MEMORY: Final = 64.0
"""MiB that the rest of the service needs besides what the process of the test has loaded."""


def memory_limit() -> float:
    """Return the memory limit of the container in MiB."""
    deployment = yaml.safe_load(DEPLOYMENT.read_text())
    limit = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    return float(limit.removesuffix("Mi"))


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    with served_process(tmp_path_factory.mktemp("served")) as running:
        yield running


class ApiServer:
    """A front proxy with connections that it keeps open, as the API server has them."""

    def __init__(self, process: ServedProcess) -> None:
        self._url = f"https://127.0.0.1:{process.port}"
        self._tls = ssl.create_default_context(cafile=process.ca)
        self._tls.load_cert_chain(process.folder / "fp.crt", process.folder / "fp.key")

    def session(self) -> aiohttp.ClientSession:
        headers = {"X-Remote-User": "alice"}
        return aiohttp.ClientSession(self._url, connector=aiohttp.TCPConnector(ssl=self._tls), headers=headers)

    async def read(self, session: aiohttp.ClientSession) -> float:
        """Probe and read; return the longer of both times."""
        times = []
        for path in ("/livez", METRIC):
            started = time.monotonic()
            async with session.get(path) as response:
                assert response.status == 200, await response.text()
            times.append(time.monotonic() - started)
        return max(times)


@pytest.mark.parametrize("stage", STAGES)
async def test_many_connections_stay_within_the_memory_limit_and_others_are_served(process: ServedProcess, stage: str):
    api_server = ApiServer(process)
    times: list[float] = []
    async with api_server.session() as kept:
        await api_server.read(kept)
        with attacked(process.port, process.ca, stage):
            for _ in range(3):
                async with api_server.session() as new:
                    times += [await api_server.read(new), await api_server.read(kept)]
                await asyncio.sleep(0.1)

    assert process.memory("VmHWM") < memory_limit() - SERVICE_MEMORY
    assert max(times) < Limits().request_timeout.total_seconds()


async def test_authenticated_connection_is_served_although_the_attacker_has_the_same_address(process: ServedProcess):
    api_server = ApiServer(process)
    async with api_server.session() as kept:
        await api_server.read(kept)
        with attacked(process.port, process.ca, "an idle TLS connection", "127.0.0.1"):
            times = [await api_server.read(kept) for _ in range(20)]

    assert max(times) < Limits().request_timeout.total_seconds()


def test_connections_of_both_kinds_at_the_same_time_stay_within_the_memory_limit(process: ServedProcess):
    port, ca = process.port, process.ca
    with attacked(port, ca, "many headers"), attacked(port, ca, "many headers of an authenticated caller"):
        time.sleep(2)

    assert process.memory("VmHWM") < memory_limit() - SERVICE_MEMORY
