"""Connections of attackers without credentials: memory within the manifest's limit, and others are still served."""

import asyncio
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

import aiohttp
import pytest
import yaml

from tests.security.attacker import STAGES, attacked
from tests.security.served_process import ServedProcess, served_process

pytestmark = pytest.mark.slow
Stages: TypeAlias = tuple[str, ...]
ATTACKS: Final[dict[str, tuple[Stages, ...]]] = {
    "before TLS": (("bare TCP", "half a ClientHello", "an endless TLS record"),),
    "slow requests": (("an idle TLS connection", "half a header", "a slow body"),),
    "closed connections": (("too large headers", "an upgrade", "pipelined requests"),),
    "large headers": (("large headers",),),
    "unread responses": (("unread responses",),),
    "both halves of the connections": (("many headers",), ("many headers of an authenticated caller",)),
}
"""The stages of each attacker. Stages that need much memory are not mixed with others."""

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

    async def read(self, session: aiohttp.ClientSession) -> None:
        """Probe and read; print how long that takes."""
        for path in ("/livez", METRIC):
            started = time.monotonic()
            async with session.get(path) as response:
                assert response.status == 200, await response.text()
            print(f"{path}: {time.monotonic() - started:.3f} s")  # noqa: T201


async def settled_memory(process: ServedProcess) -> float:
    """Wait until the memory of the process no longer grows; return its maximum in MiB."""
    before, now = -1.0, process.memory("VmHWM")
    while now > before + 1:
        await asyncio.sleep(0.3)
        before, now = now, process.memory("VmHWM")
    return now


def test_every_stage_is_part_of_an_attack():
    assert sorted(stage for attackers in ATTACKS.values() for stages in attackers for stage in stages) == sorted(STAGES)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_many_connections_stay_within_the_memory_limit_and_others_are_served(process: ServedProcess, attack: str):
    api_server = ApiServer(process)
    async with api_server.session() as kept:
        await api_server.read(kept)
        with ExitStack() as stack:
            for stages in ATTACKS[attack]:
                stack.enter_context(attacked(process.port, process.ca, stages))
            async with api_server.session() as new:
                await api_server.read(new)
            memory = await settled_memory(process)
            await api_server.read(kept)

    assert memory < memory_limit() - SERVICE_MEMORY


@pytest.mark.parametrize("stage", ["an idle TLS connection", "many headers of an authenticated caller"])
async def test_front_proxy_is_served_although_the_attacker_has_the_same_address(process: ServedProcess, stage: str):
    api_server = ApiServer(process)
    async with api_server.session() as kept:
        await api_server.read(kept)
        with attacked(process.port, process.ca, [stage], "127.0.0.1"):
            for _ in range(10):
                await api_server.read(kept)
