"""The session with the API server: deadlines, credentials, and nothing but our own errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import Connection, connect
from autoscaler.kube.errors import BadRequest, Unauthorized, Unavailable
from tests.fakes.plain import plain_connection


@asynccontextmanager
async def answering(handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[Connection]:
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield plain_connection(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_a_server_that_never_answers_is_unavailable_in_time() -> None:
    async def never(_request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with answering(never) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unavailable, match="no answer in time"):
            await client.request("GET", "/api", deadline=timedelta(milliseconds=50))


async def test_nobody_at_the_address_is_unavailable() -> None:
    async with KubeClient.open(plain_connection(1)) as client:
        with pytest.raises(Unavailable):
            await client.get("/api")


@pytest.mark.parametrize("text", ["not json", "[]", ""])
async def test_an_answer_that_is_no_object_is_unavailable(text: str) -> None:
    async def odd(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=text)

    async with answering(odd) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unavailable):
            await client.get("/api")


async def test_a_redirect_is_not_followed_with_our_credentials() -> None:
    async def elsewhere(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async with answering(elsewhere) as connection, KubeClient.open(connection) as client:
        with pytest.raises(BadRequest):
            await client.get("/api")


async def test_a_token_that_was_replaced_meanwhile_is_tried_once_more() -> None:
    tokens = iter(["old", "new"])

    async def credentials() -> Mapping[str, str]:
        return {"Authorization": f"Bearer {next(tokens)}"}

    async def only_the_new(request: web.BaseRequest) -> web.StreamResponse:
        known = request.headers["Authorization"] == "Bearer new"
        return web.json_response({}, status=200 if known else 401)

    async with (
        answering(only_the_new) as connection,
        KubeClient.open(replace(connection, credentials=credentials)) as client,
    ):
        assert await client.get("/api") == {}


async def test_a_token_that_is_not_known_is_tried_twice_and_not_for_ever() -> None:
    asked = 0

    async def nobody(_request: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.json_response({}, status=401)

    async with answering(nobody) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unauthorized):
            await client.get("/api")
    assert asked == 2


async def test_a_write_says_who_wrote() -> None:
    async def who(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"by": request.query.get("fieldManager"), "as": request.headers["Content-Type"]})

    async with answering(who) as connection, KubeClient.open(connection) as client:
        assert await client.patch("/it", {}) == {"by": "steadyscale", "as": "application/merge-patch+json"}


async def test_without_a_cluster_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no cluster to connect to"):
        await connect(tmp_path / "missing")
