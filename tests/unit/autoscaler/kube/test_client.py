"""The HTTP client of the API server: timeouts, credentials and errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection, connect
from autoscaler.kube.errors import BadRequest, Unauthorized, Unavailable
from tests.fakes.plain import plain_connection


@asynccontextmanager
async def serve(handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[KubeConnection]:
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield plain_connection(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_server_that_never_responds_raises_unavailable_after_the_timeout() -> None:
    async def never(_request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with serve(never) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unavailable, match="request timed out"):
            await client.request("GET", "/api", timeout=timedelta(milliseconds=50))


async def test_refused_connection_raises_unavailable() -> None:
    async with KubeClient.open(plain_connection(1)) as client:
        with pytest.raises(Unavailable):
            await client.get("/api")


@pytest.mark.parametrize("text", ["not json", "[]", ""])
async def test_response_that_is_not_a_json_object_raises_unavailable(text: str) -> None:
    async def respond(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=text)

    async with serve(respond) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unavailable):
            await client.get("/api")


async def test_redirect_is_not_followed() -> None:
    async def redirect(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async with serve(redirect) as connection, KubeClient.open(connection) as client:
        with pytest.raises(BadRequest):
            await client.get("/api")


async def test_request_is_retried_once_with_a_rotated_token_after_401() -> None:
    tokens = iter(["old", "new"])

    async def credentials() -> Mapping[str, str]:
        return {"Authorization": f"Bearer {next(tokens)}"}

    async def require_new_token(request: web.BaseRequest) -> web.StreamResponse:
        is_new = request.headers["Authorization"] == "Bearer new"
        return web.json_response({}, status=200 if is_new else 401)

    async with (
        serve(require_new_token) as connection,
        KubeClient.open(replace(connection, credentials=credentials)) as client,
    ):
        assert await client.get("/api") == {}


async def test_request_with_an_invalid_token_is_sent_twice() -> None:
    attempts = 0

    async def reject(_request: web.BaseRequest) -> web.StreamResponse:
        nonlocal attempts
        attempts += 1
        return web.json_response({}, status=401)

    async with serve(reject) as connection, KubeClient.open(connection) as client:
        with pytest.raises(Unauthorized):
            await client.get("/api")
    assert attempts == 2


async def test_patch_sends_field_manager_and_merge_patch_content_type() -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"by": request.query.get("fieldManager"), "as": request.headers["Content-Type"]})

    async with serve(echo) as connection, KubeClient.open(connection) as client:
        assert await client.patch("/it", {}) == {"by": "steadyscale", "as": "application/merge-patch+json"}


async def test_missing_kubeconfig_raises_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot load the Kubernetes client configuration"):
        await connect(tmp_path / "missing")
