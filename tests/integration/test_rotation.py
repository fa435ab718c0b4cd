"""No request is lost while serving certificates and certificate authorities rotate, with ten requests per second."""

import asyncio
import ssl
import time
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import pytest

from tests.control_plane.cluster import ControlPlane, free_port
from tests.integration.service import APISERVICE, METRIC, Service, process, service, until

pytestmark = pytest.mark.apiserver

INTERVAL: Final = 0.1
TIMEOUT: Final = 75


@pytest.fixture(scope="module")
def rotating(plane: ControlPlane, port: int) -> Iterator[Service]:
    """Run a process whose certificates are valid for seconds."""
    plane.kubectl("delete", "secret", "steadyscale-serving-cert", "--namespace=steadyscale", "--ignore-not-found")
    lifetimes = {"caLifetime": "24s", "certificateLifetime": "9s", "caOverlap": "4s", "checkInterval": "500ms"}
    with service(plane, port, self_managed=lifetimes) as started:
        yield started


@dataclass
class Observed:
    """The responses and certificates that one client received."""

    responses: int = 0
    failures: list[str] = field(default_factory=list)
    certificates: set[bytes] = field(default_factory=set)
    bundles: set[str] = field(default_factory=set)

    def has_rotated(self) -> bool:
        """Return whether several certificates and a whole CA rotation were seen: the old CA, both, the new CA."""
        return len(self.certificates) >= 4 and len(self.bundles) >= 3


async def test_no_request_is_lost_during_rotation(rotating: Service) -> None:
    proxied, direct, rotated = Observed(), Observed(), asyncio.Event()
    started = time.monotonic()
    async with asyncio.timeout(TIMEOUT):
        await asyncio.gather(
            poll_through_the_api_server(rotating, proxied, rotated), poll_directly(rotating, direct, rotated)
        )
    seconds = time.monotonic() - started
    assert (proxied.failures, direct.failures) == ([], [])
    assert proxied.responses >= 0.8 * seconds / INTERVAL
    assert direct.responses >= 0.5 * seconds / INTERVAL


async def poll_through_the_api_server(rotating: Service, observed: Observed, rotated: asyncio.Event) -> None:
    plane = rotating.plane
    tls = ssl.create_default_context(cafile=str(plane.folder / "ca.crt"))
    tls.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    begin = time.monotonic()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        while not rotated.is_set():
            started = time.monotonic()
            async with session.get(plane.server + METRIC) as response:
                body = await response.text()
            observed.responses += 1
            if response.status != 200:
                observed.failures.append(f"after {started - begin:.1f}s {response.status}: {body[:200]}")
            await asyncio.sleep(max(0.0, INTERVAL - (time.monotonic() - started)))


async def poll_directly(rotating: Service, observed: Observed, rotated: asyncio.Event) -> None:
    """Open a connection for each request, with the caBundle of up to a second before, like an API server."""
    plane = rotating.plane
    while not observed.has_rotated():
        bundle = (await asyncio.to_thread(plane.get, APISERVICE))["spec"]["caBundle"]
        observed.bundles.add(bundle)
        tls = ssl.create_default_context(cadata=b64decode(bundle).decode())
        tls.load_cert_chain(plane.folder / "front-proxy.crt", plane.folder / "front-proxy.key")
        for _ in range(10):
            started = time.monotonic()
            await _request(rotating.port, tls, observed)
            await asyncio.sleep(max(0.0, INTERVAL - (time.monotonic() - started)))
    rotated.set()


async def _request(port: int, tls: ssl.SSLContext, observed: Observed) -> None:
    headers = ("Host: steadyscale", "Connection: close", "X-Remote-User: z", "X-Remote-Group: system:masters")
    request = "\r\n".join((f"GET {METRIC} HTTP/1.1", *headers, "", ""))
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="steadyscale.steadyscale.svc"
        )
        observed.certificates.add(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.write(request.encode())
        response = await reader.read()
        writer.close()
    except OSError as error:
        observed.failures.append(str(error))
    else:
        observed.responses += 1
        if not response.startswith(b"HTTP/1.1 200"):
            observed.failures.append(response[:200].decode())


def test_processes_that_start_concurrently_use_the_same_certificate(plane: ControlPlane, rotating: Service) -> None:
    rotating.program.stop()
    plane.kubectl("delete", "secret", "steadyscale-serving-cert", "--namespace=steadyscale")
    ports = [free_port() for _ in range(3)]
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        programs = [process(plane, port) for port in ports]
        for program in programs:
            stack.callback(program.stop)
        list(threads.map(lambda program: program.start(), programs))
        certificates = {ssl.get_server_certificate(("127.0.0.1", port)) for port in ports}
    assert len(certificates) == 1
    rotating.program.start()


def test_api_service_is_available_after_the_rotation(rotating: Service) -> None:
    until(rotating.is_available, "the APIService is available")
