"""The local proxy of the debugging page: only the user's browser, only /debug, and cookies that stay local."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from posixpath import normpath
from urllib.parse import unquote

import pytest
from aiohttp import ClientSession, CookieJar, web
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from adapter.debug.page_access import is_debug_path
from adapter.debug.page_proxy import PageTarget, page_proxy

ESCAPES = [
    "/debug/../apis/external.metrics.k8s.io",
    "/debug/%2e%2e/metrics",
    "/debug/.%2E/metrics",
    "/debug/..%2fmetrics",
    "/debug/page/..%5c..%5cmetrics",
    "/debug/%252e%252e/metrics",
    "/debug/..;/metrics",
    "/debug//metrics",
    "/debug/./../metrics",
    "/debug/%00/x",
    "/debug",
    "/debugx/page",
    "/metrics",
    "//evil.example/debug/page",
]


@dataclass
class Upstream:
    """A service that records the requests it gets."""

    url: str = ""
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.raw_path, dict(request.headers)))
        return web.Response(text="page", headers={"Set-Cookie": "upstream=1", "Connection": "x-hop", "X-Hop": "1"})


@dataclass
class Proxied:
    """A running proxy, its address and its service."""

    address: str
    upstream: Upstream
    session: ClientSession

    def url(self, path: str) -> URL:
        return URL(f"{URL(self.address).origin()}{path}", encoded=True)

    async def status(self, path: str, **headers: str) -> int:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.get(self.url(path), headers=names, allow_redirects=False) as response:
            return response.status


@asynccontextmanager
async def proxied() -> AsyncIterator[Proxied]:
    async def credentials() -> dict[str, str]:
        return {"Authorization": "Bearer of-the-operator"}

    upstream = Upstream()
    runner = web.ServerRunner(web.Server(upstream.handle, max_line_size=65536))  # as in the service
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    target = PageTarget(upstream.url, credentials, ssl.create_default_context())
    try:
        async with page_proxy(target) as address, ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            yield Proxied(address, upstream, session)
    finally:
        await runner.cleanup()


async def test_spec_of_a_replay_is_forwarded_in_the_request_line():
    async with proxied() as it:
        async with it.session.get(it.address) as response:
            assert response.status == 200
        path = f"/debug/autoscalers/shop/orders?whatIf={'x' * 40_000}"
        assert await it.status(path) == 200
        assert it.upstream.requests[-1][0] == path


async def test_page_needs_the_secret_of_the_address():
    async with proxied() as it:
        for path in ("/debug/page", "/", "/open/", "/open/None", "/open/wrong", "/debug/overview"):
            assert await it.status(path) == 403
        assert it.upstream.requests == []
        async with it.session.get(it.address) as response:
            assert (response.status, response.url.path) == (200, "/debug/page")


async def test_secret_can_be_used_once():
    async with proxied() as it, ClientSession() as other_user:
        async with it.session.get(it.address) as response:
            assert response.status == 200
        async with other_user.get(it.address) as response:
            assert response.status == 403


async def test_cookie_is_unavailable_to_scripts_and_other_sites_and_stays_local():
    async with proxied() as it:
        async with it.session.get(it.address, allow_redirects=False) as response:
            cookie = response.headers["Set-Cookie"]
        assert await it.status("/debug/page") == 200
        ((_, headers),) = it.upstream.requests

    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Cookie" not in headers
    assert headers["Authorization"] == "Bearer of-the-operator"


@pytest.mark.parametrize("path", ESCAPES)
async def test_paths_outside_of_debug_are_not_forwarded(path: str):
    async with proxied() as it:
        async with it.session.get(it.address):
            it.upstream.requests.clear()
        assert await it.status(path) in {403, 404}
        assert it.upstream.requests == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
async def test_requests_of_other_sites_are_rejected(headers: dict[str, str]):
    async with proxied() as it:
        async with it.session.get(it.address):
            it.upstream.requests.clear()
        assert await it.status("/debug/page", **headers) == 403
        assert await it.status("/debug/page", Sec_Fetch_Site="same-origin") == 200
        assert len(it.upstream.requests) == 1


async def test_only_listed_headers_pass_in_both_directions():
    async with proxied() as it:
        async with it.session.get(it.address):
            it.upstream.requests.clear()
        async with it.session.get(it.url("/debug/overview?a=%2Fb"), headers={"X-Remote-User": "root"}) as response:
            assert not {"Set-Cookie", "X-Hop"} & set(response.headers)
        ((path, headers),) = it.upstream.requests

    assert path == "/debug/overview?a=%2Fb"
    assert "X-Remote-User" not in headers


SEGMENTS = st.lists(
    st.sampled_from(
        ["debug", "..", ".", "", "%2e", "%2E", "%2f", "%5c", "%25", "2e", "2f", "a", ";", "\\", "%00", "x.js"]
    ),
    min_size=1,
    max_size=3,
).map("".join)


@given(st.lists(SEGMENTS, max_size=6).map(lambda segments: "/debug/" + "/".join(segments)))
@settings(deadline=None, max_examples=500)
def test_accepted_path_is_below_debug_however_it_is_normalized(path: str):
    if is_debug_path(path):
        for text in (path, unquote(path), unquote(unquote(path)), unquote(path).replace("\\", "/")):
            assert normpath(text).startswith("/debug/")
