"""The aggregated API for debugging: users of a namespace see nothing else, and credentials reach only the leader."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.auth.attributes import ResourceAttributes, attributes_of
from adapter.debug.trace import namespace_trace_view
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule import Rule
from adapter.rules.rule_registry import RuleRegistry
from adapter.server.debug_api_paths import ROOT, aggregated_path, debug_path
from adapter.server.leader_forwarding import FORWARDED, LeaderForwarding, Leadership, NotForwarded, serving_address
from adapter.server.request_context import RequestContext
from autoscaler.controller.identity import leader_address, process_identity
from autoscaler.values.selector import parse
from tests.control_plane.certificates import Authority
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw

NAME = "steadyscale.steadyscale.svc"
SEGMENTS = ["namespaces", "shop", "bank", "decisions", "histories", "metrics", "views", "overview", "rules", "page.js"]
SEGMENTS += ["status", "finalize", "..", "", "index.html", "apis", "debug"]


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(SEGMENTS), max_size=7), st.sampled_from(["GET", "POST", "HEAD"]), st.booleans())
def test_path_that_is_served_names_only_what_was_authorized(below: list[str], method: str, is_watch: bool):  # noqa: FBT001
    path = "/".join([ROOT, *below])
    query = {"watch": "true"} if is_watch else {"fieldSelector": "metadata.name=orders"}
    attributes = attributes_of(method, path, query)
    served = debug_path(attributes, path)
    if served is None:
        return
    assert isinstance(attributes, ResourceAttributes)
    assert (attributes.verb, attributes.subresource) in {("get", ""), ("list", "")}
    _, _, kind, *rest = served.split("/")
    if attributes.namespace:
        assert attributes.resource in {"decisions", "histories", "metrics"}
        assert rest == [attributes.namespace, *([attributes.name] if attributes.verb == "get" else [])]
    else:
        assert (kind in {"overview", "rules", "backends", "comparisons", "page"}) == (attributes.resource == "views")
        assert kind == "metrics" or attributes.resource == "views"


@pytest.mark.parametrize(
    "path",
    [
        *("autoscalers/shop/orders", "history/shop/orders", "metrics/shop/depth", "metrics/shop", "metrics"),
        *("overview", "rules", "backends", "comparisons", "page/page.js", "page/index.html"),
    ],
)
def test_endpoint_has_a_path_in_the_aggregated_api(path: str):
    aggregated = aggregated_path(f"/debug/{path}")
    assert debug_path(attributes_of("GET", aggregated, {}), aggregated) == f"/debug/{path}"


async def trace(rule: Rule, *rows: Any) -> dict[str, Any]:
    sources = Sources(Fetcher({"b": ScriptedBackend(results={"q": rows})}, lambda: BEGINNING))
    reader = MetricReader(RuleRegistry([rule]), sources, lambda: BEGINNING)
    read = await reader.read("shop", "m", parse("queue=a"))
    await sources.aclose()
    view = namespace_trace_view(read, reader)
    for part in (view["fetch"], view["history"]):
        for name in ("durationMilliseconds", "ageSeconds", "message"):
            part.pop(name, None)
    del view["error"], view["hpa"]  # what every reader of the metric gets
    return view


@pytest.mark.parametrize("own", [(), ("a",), ("a", "b")], ids=["none", "one", "two"])
async def test_trace_for_a_namespace_is_the_same_whatever_series_other_namespaces_have(own: tuple[str, ...]):
    rule = Rule("m", backend="b", query="q", namespaces=("shop", "bank"))
    mine = [raw(3, namespace="shop", queue=queue) for queue in own]
    others = [raw(number, namespace="bank", queue=f"payroll{number}") for number in range(200)]

    alone = await trace(rule, *mine)
    assert await trace(rule, *mine, *others) == alone
    assert (alone["query"]["text"], alone["rule"]["namespaces"]) == ("q", ["shop"])
    assert "bank" not in str(alone)


class Registry:
    """Answers with an APIService, as the API server does."""

    def __init__(self, ca: str) -> None:
        self._ca = ca

    async def get(self, _path: str) -> dict[str, Any]:
        bundle = b64encode(self._ca.encode()).decode()
        return {"spec": {"service": {"name": "steadyscale", "namespace": "steadyscale"}, "caBundle": bundle}}


@asynccontextmanager
async def listening(folder: Path, authority: Authority) -> AsyncIterator[tuple[str, list[web.BaseRequest]]]:
    """Run an HTTPS server; yield its address and the requests that it receives."""
    received: list[web.BaseRequest] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        received.append(request)
        return web.json_response({"path": request.path_qs})

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.server(NAME).save(folder, "leader"))
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield f"127.0.0.1:{runner.addresses[0][1]}", received
    finally:
        await runner.cleanup()


ORDERS = "/debug/autoscalers/shop/orders"


async def forward(
    address: str,
    trusted: Authority,
    *,
    own: str = "",
    headers: dict[str, str] | None = None,
    path: str = ORDERS,
    seconds: float | None = 5,
) -> Any:
    async def credentials() -> dict[str, str]:
        await asyncio.sleep(0)
        return {"Authorization": "Bearer secret"}

    request = make_mocked_request("GET", f"{path}?x=1", headers={"X-Remote-User": "admin", **(headers or {})})
    context = RequestContext.create(request)
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        follower = SimpleNamespace(holder=lambda _: process_identity(address), controls=lambda _: False)
        kube = cast("Any", Registry(trusted.pem))
        forwarding = LeaderForwarding(Leadership(own, cast("Any", follower)), kube, credentials, session)
        return await forwarding.forward(context, seconds)


async def test_request_is_forwarded_with_the_credentials_of_the_process_and_no_header_of_the_caller(tmp_path: Path):
    authority = Authority.new("serving")
    async with listening(tmp_path, authority) as (address, received):
        response = await forward(address, authority)
    assert response.status == 200
    assert received[0].path_qs == "/debug/autoscalers/shop/orders?x=1"
    assert received[0].headers["Authorization"] == "Bearer secret"
    assert "X-Remote-User" not in received[0].headers


async def test_credentials_are_not_sent_to_a_server_that_the_api_service_does_not_verify(tmp_path: Path):
    async with listening(tmp_path, Authority.new("another")) as (address, received):
        answer = await forward(address, Authority.new("serving"))
    assert isinstance(answer, NotForwarded)
    assert "certificate verify failed" in answer
    assert received == []


@pytest.mark.parametrize("case", ["forwarded before", "own address", "no address"])
async def test_request_is_not_forwarded_again_or_to_itself(tmp_path: Path, case: str):
    authority = Authority.new("serving")
    async with listening(tmp_path, authority) as (address, received):
        headers = {FORWARDED: "1"} if case == "forwarded before" else {}
        own = address if case == "own address" else ""
        answer = await forward("" if case == "no address" else address, authority, own=own, headers=headers)
    assert isinstance(answer, NotForwarded)
    assert received == []


@pytest.mark.parametrize(
    "path",
    [
        "/debug/autoscalers/../rules",
        "/debug/autoscalers/../../apis/external.metrics.k8s.io/v1beta1/namespaces/bank/payroll",
        "/debug/autoscalers/%2e%2e/rules",
        "/debug/autoscalers/shop%2F..%2F../rules",
        "/debug/autoscalers/./rules",
    ],
)
async def test_path_that_names_something_else_for_the_leader_than_was_authorized_is_not_forwarded(
    tmp_path: Path, path: str
):
    authority = Authority.new("serving")
    async with listening(tmp_path, authority) as (address, received):
        answer = await forward(address, authority, path=path)
    assert isinstance(answer, NotForwarded)
    assert received == []


@pytest.mark.parametrize("name", ["a%2525b", "a%3Fb", "a%23b", "a+b", "a%20b", "%C3%BC", "..."])
async def test_leader_receives_the_path_that_was_authorized(tmp_path: Path, name: str):
    authority, path = Authority.new("serving"), f"/debug/autoscalers/shop/{name}"
    async with listening(tmp_path, authority) as (address, received):
        response = await forward(address, authority, path=path)
    assert response.status == 200
    assert received[0].rel_url.path == make_mocked_request("GET", path).rel_url.path


@pytest.mark.parametrize("address", ["[", "host:99999", "user:password@host", "host/path", " "])
async def test_invalid_address_in_the_lease_is_a_reason(address: str):
    answer = await forward(address, Authority.new("serving"))
    assert isinstance(answer, NotForwarded)
    assert answer != ""


async def test_connection_that_is_not_answered_in_time_is_a_reason_without_a_limit_on_the_response(
    monkeypatch: pytest.MonkeyPatch,
):
    def time_out(*_: object, **__: object) -> Any:
        raise TimeoutError

    monkeypatch.setattr(aiohttp.ClientSession, "get", time_out)
    answer = await forward("192.0.2.1:6443", Authority.new("serving"), seconds=None)
    assert answer == NotForwarded("192.0.2.1:6443: no response in time")


@pytest.mark.parametrize(
    ("host", "address"),
    [("10.1.2.3", "10.1.2.3:6443"), ("fd00::1", "[fd00::1]:6443"), ("", "")],
    ids=["4", "6", "none"],
)
def test_identity_contains_the_address(monkeypatch: pytest.MonkeyPatch, host: str, address: str):
    monkeypatch.setenv("POD_IP", host)
    assert serving_address(6443) == address
    assert leader_address(process_identity(address)) == address
    assert leader_address("steadyscale-7d9f_1_0123abcd") == ""
