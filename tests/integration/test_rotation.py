"""Certificates and authorities come and go while a client polls ten times a second, and no request is lost."""

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

PACE: Final = 0.1
LONG_ENOUGH: Final = 75
"""Seconds: time for several certificates and at least one whole change of authority, as short as they live here."""


@pytest.fixture(scope="module")
def hasty(plane: ControlPlane, port: int) -> Iterator[Service]:
    """Our process, with certificates that live for seconds."""
    plane.kubectl("delete", "secret", "steadyscale-serving-cert", "--namespace=steadyscale", "--ignore-not-found")
    lives = {"caLifetime": "45s", "certificateLifetime": "15s", "overlap": "6s", "checkInterval": "500ms"}
    with service(plane, port, **lives) as started:
        yield started


@dataclass
class Log:
    """What one client saw."""

    answered: int = 0
    lost: list[str] = field(default_factory=list)
    certificates: set[bytes] = field(default_factory=set)
    bundles: set[str] = field(default_factory=set)


async def test_a_client_of_the_api_server_and_one_of_ours_lose_no_request(hasty: Service) -> None:
    through, straight = Log(), Log()
    await asyncio.gather(poll_through_the_api_server(hasty, through), poll_straight_at_the_port(hasty, straight))
    assert (through.lost, straight.lost) == ([], [])
    assert through.answered >= 0.8 * LONG_ENOUGH / PACE
    assert straight.answered >= 0.5 * LONG_ENOUGH / PACE
    assert len(straight.certificates) >= 4
    assert len(straight.bundles) >= 3  # one authority, the next beside it, the next alone


async def poll_through_the_api_server(hasty: Service, log: Log) -> None:
    plane = hasty.plane
    trusting = ssl.create_default_context(cafile=str(plane.folder / "ca.crt"))
    trusting.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
        await _poll(session, plane.server + METRIC, log)


async def poll_straight_at_the_port(hasty: Service, log: Log) -> None:
    """Shake hands anew each time, trusting the caBundle as it was read a moment ago, as an API server does."""
    plane = hasty.plane
    deadline = time.monotonic() + LONG_ENOUGH
    while time.monotonic() < deadline:
        bundle = (await asyncio.to_thread(plane.get, APISERVICE))["spec"]["caBundle"]
        log.bundles.add(bundle)
        trusting = ssl.create_default_context(cadata=b64decode(bundle).decode())
        trusting.load_cert_chain(plane.folder / "front-proxy.crt", plane.folder / "front-proxy.key")
        for _ in range(10):
            started = time.monotonic()
            await _shake_hands(hasty.port, trusting, log)
            await asyncio.sleep(max(0.0, PACE - (time.monotonic() - started)))


async def _shake_hands(port: int, trusting: ssl.SSLContext, log: Log) -> None:
    headers = ("Host: it", "Connection: close", "X-Remote-User: z", "X-Remote-Group: system:masters")
    asked = "\r\n".join((f"GET {METRIC} HTTP/1.1", *headers, "", ""))
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting, server_hostname="steadyscale.steadyscale.svc"
        )
        log.certificates.add(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.write(asked.encode())
        answer = await reader.read()
        writer.close()
    except OSError as error:
        log.lost.append(str(error))
    else:
        log.answered += 1
        if not answer.startswith(b"HTTP/1.1 200"):
            log.lost.append(answer[:200].decode())


async def _poll(session: aiohttp.ClientSession, url: str, log: Log) -> None:
    begin = time.monotonic()
    while (now := time.monotonic()) < begin + LONG_ENOUGH:
        async with session.get(url) as answer:
            body = await answer.text()
        log.answered += 1
        if answer.status != 200:
            log.lost.append(f"after {now - begin:.1f}s {answer.status}: {body[:200]}")
        await asyncio.sleep(max(0.0, PACE - (time.monotonic() - now)))


def test_three_that_start_at_once_agree_on_one_certificate(plane: ControlPlane, hasty: Service) -> None:
    hasty.program.stop()
    plane.kubectl("delete", "secret", "steadyscale-serving-cert", "--namespace=steadyscale")
    ports = [free_port() for _ in range(3)]
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        programs = [process(plane, port) for port in ports]
        for program in programs:
            stack.callback(program.stop)
        list(threads.map(lambda program: program.start(), programs))
        shown = {ssl.get_server_certificate(("127.0.0.1", port)) for port in ports}
    assert len(shown) == 1
    hasty.program.start()


def test_afterwards_it_is_still_available(hasty: Service) -> None:
    until(hasty.is_available, "the APIService is available")
