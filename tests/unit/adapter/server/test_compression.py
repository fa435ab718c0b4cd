"""Compressed responses of the debugging endpoints, and deltas of the overview, over HTTP."""

import gzip
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar, web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapter.debug.page_proxy import PageTarget, page_proxy
from adapter.server.compression import accepts_gzip, compressing
from adapter.server.request_context import RequestContext
from tests.browser.sample_decisions import add_samples, reconcile_again
from tests.browser.served_page import ServedPage, serve_page
from tests.builders import external_reading, unavailable_reading

OVERVIEW = "/debug/overview"
GZIP = {"Accept-Encoding": "gzip"}
IDENTITY = {"Accept-Encoding": "identity"}


@pytest.fixture
async def page() -> AsyncIterator[ServedPage]:
    async with serve_page() as served:
        add_samples(served.log)
        yield served


@pytest.fixture
async def session(page: ServedPage) -> AsyncIterator[ClientSession]:
    async with ClientSession(page.url, auto_decompress=False) as opened:
        yield opened


async def get(session: ClientSession, path: str, headers: Mapping[str, str]) -> tuple[Mapping[str, str], bytes]:
    async with session.get(path, headers=headers) as response:
        assert response.status == 200
        return response.headers, await response.read()


@pytest.mark.parametrize(
    "path",
    [
        OVERVIEW,
        "/debug/page",
        "/debug/page/chart.js",
        "/debug/page/page.css",
        "/debug/rules",
        "/debug/autoscalers/shop/orders",
        "/debug/history/shop/orders",
    ],
)
async def test_responses_are_compressed_for_callers_that_accept_it(session: ClientSession, path: str):
    headers, plain = await get(session, path, IDENTITY)
    assert "Content-Encoding" not in headers
    assert headers["Vary"] == "Accept-Encoding"
    headers, compressed = await get(session, path, GZIP)
    assert (headers["Content-Encoding"], headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert len(compressed) < len(plain) / 2
    if not path.startswith(("/debug/history", "/debug/rules")):  # these contain the time
        assert gzip.decompress(compressed) == plain


async def test_response_that_the_leader_compressed_is_not_compressed_again():
    compressed = gzip.compress(b"x" * 5000)

    async def forward(_: RequestContext) -> web.Response:
        return web.Response(body=compressed, headers={"Content-Encoding": "gzip"})

    context = RequestContext.create(make_mocked_request("GET", OVERVIEW, headers=GZIP))
    response = await compressing(forward)(context)
    assert isinstance(response, web.Response)
    assert response.body == compressed


async def test_small_responses_are_not_compressed(session: ClientSession):
    headers, _ = await get(session, "/debug/page/icon.svg", GZIP)
    assert "Content-Encoding" not in headers


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip, deflate, br, zstd", "gzip"),
        ("br;q=1.0, GZIP;q=0.8", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0, *", None),
        ("gzip; q=0.000", None),
        ("identity", None),
        ("", None),
        ("gzip;q=nonsense", None),
        ("xgzip", None),
    ],
)
def test_gzip_is_negotiated(header: str, accepted: str | None):
    assert accepts_gzip(header) is (accepted is not None)


@given(st.text(alphabet="gzip*;q=0.1, xé", max_size=40))
def test_any_accept_encoding_is_parsed(header: str):
    assert accepts_gzip(header) in (True, False)


async def test_local_proxy_forwards_compressed_responses(page: ServedPage):
    async def credentials() -> Mapping[str, str]:
        return {}

    target = PageTarget(page.url, credentials, ssl.create_default_context())
    async with page_proxy(target) as address, ClientSession(auto_decompress=False, cookie_jar=_jar()) as browser:
        async with browser.get(address) as response:
            assert response.status == 200
        url = address.partition("/open/")[0] + OVERVIEW
        headers, compressed = await get(browser, url, GZIP)
        assert headers["Content-Encoding"] == "gzip"
        headers, plain = await get(browser, url, IDENTITY)
        assert "Content-Encoding" not in headers
        assert gzip.decompress(compressed) == plain


def _jar() -> CookieJar:
    return CookieJar(unsafe=True)  # keeps cookies of IP addresses


# --- deltas ----------------------------------------------------------------------------------------------------------


async def delta(session: ClientSession, etag: str, query: str = "delta") -> tuple[Any, str]:
    async with session.get(f"{OVERVIEW}?{query}", headers={"If-None-Match": etag, **IDENTITY}) as response:
        assert response.status == 200
        return json.loads(await response.read()), response.headers["ETag"]


async def test_delta_has_only_the_changed_rows_and_the_new_points(session: ClientSession, page: ServedPage):
    query = "delta&selected=shop/orders"
    full, etag = await delta(session, "", query)
    assert len(full["autoscalers"]) == 13
    reconcile_again(page.log, "shop/orders", unavailable_reading(), now=page.now())
    reconcile_again(page.log, "shop/checkout", external_reading(90), now=page.now())  # same row
    changes, _ = await delta(session, etag, query)
    assert changes["base"] == etag
    assert [row["name"] for row in changes["autoscalers"]["changed"]] == ["orders"]
    assert changes["autoscalers"]["removed"] == []
    assert len(changes["timeline"]["added"]["time"]) == 1
    assert changes["timeline"]["keep"] == len(full["selected"]["timeline"]["time"])
    assert len(json.dumps(changes)) < len(json.dumps(full)) / 3


async def test_reconcile_without_a_change_of_the_row_causes_no_response(session: ClientSession, page: ServedPage):
    _, etag = await delta(session, "")
    reconcile_again(page.log, "shop/checkout", external_reading(90), now=page.now())
    async with session.get(f"{OVERVIEW}?delta", headers={"If-None-Match": etag}) as response:
        assert response.status == 304


async def test_unknown_etag_gets_the_full_overview(session: ClientSession):
    full, _ = await delta(session, '"of another process"')
    assert "base" not in full
    assert len(full["autoscalers"]) == 13


async def test_deleted_autoscaler_is_removed_by_a_delta(session: ClientSession, page: ServedPage):
    _, etag = await delta(session, "")
    page.log.on_deleted("shop/cart")
    changes, _ = await delta(session, etag)
    assert changes["autoscalers"] == {"changed": [], "removed": ["shop/cart"]}
    assert changes["fields"]["total"] == 12


async def test_only_the_last_responses_are_stored(session: ClientSession, page: ServedPage):
    _, first = await delta(session, "")
    for number in range(33):
        page.leader = f"steadyscale-{number}"
        await delta(session, "")
    page.log.on_deleted("shop/cart")
    full, _ = await delta(session, first)
    assert "base" not in full
