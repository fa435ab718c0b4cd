"""How the leader is verified while the API server does not respond."""

import asyncio
from base64 import b64encode
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.server.leader_forwarding import LeaderForwarding, Leadership, NotForwarded
from adapter.server.peer_overviews import PeerOverviews
from adapter.server.request_context import RequestContext
from autoscaler.controller.identity import process_identity
from autoscaler.kube.errors import NotFound, TooManyRequests, Unavailable
from tests.control_plane.certificates import Authority

pytestmark = pytest.mark.looptime

CA = b64encode(Authority.new("serving").pem.encode()).decode()
SERVICE = {"spec": {"service": {"name": "steadyscale", "namespace": "steadyscale"}, "caBundle": CA}}
HOUR = 3600.0


class ApiServer:
    """Answers with an APIService, fails, or does not respond."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.delay = 0.0
        self.requests = 0

    async def get(self, _path: str) -> dict[str, Any]:
        self.requests += 1
        await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        return SERVICE


def forwarding(api_server: ApiServer, session: aiohttp.ClientSession | None = None) -> LeaderForwarding:
    async def credentials() -> dict[str, str]:
        await asyncio.sleep(0)
        return {}

    follower = cast("Any", SimpleNamespace(leader=process_identity("192.0.2.1:6443"), is_leader=False))
    return LeaderForwarding(Leadership("", follower), cast("Any", api_server), credentials, cast("Any", session))


@pytest.mark.parametrize(
    ("failure", "delay"),
    [(Unavailable("no connection"), 0.0), (TooManyRequests("429", code=429), 0.0), (None, HOUR)],
    ids=["fails", "is overloaded", "hangs"],
)
async def test_last_certificate_authority_is_used_while_the_api_server_does_not_respond(
    failure: Exception | None, delay: float
):
    api_server = ApiServer()
    follower = forwarding(api_server)
    before = await follower._tls()
    api_server.failure, api_server.delay = failure, delay
    await asyncio.sleep(HOUR)
    started = asyncio.get_running_loop().time()
    for _ in range(20):
        assert await follower._tls() == before
    assert asyncio.get_running_loop().time() < started + 3
    assert api_server.requests <= 3  # not one read per request
    api_server.failure, api_server.delay = None, 0.0
    await asyncio.sleep(60)
    assert (await follower._tls())[0] is not before[0]


async def test_last_certificate_authority_is_not_used_after_the_api_service_was_deleted():
    api_server = ApiServer()
    follower = forwarding(api_server)
    await follower._tls()
    api_server.failure = NotFound("404", code=404)
    await asyncio.sleep(HOUR)
    with pytest.raises(NotFound):
        await follower._tls()


@pytest.mark.parametrize("seconds", [5, 1, None])
async def test_read_of_the_api_service_is_within_the_time_limit_of_the_request(seconds: float | None):
    api_server = ApiServer()
    api_server.delay = HOUR
    context = RequestContext.create(make_mocked_request("GET", "/debug/overview"))
    started = asyncio.get_running_loop().time()
    answer = await forwarding(api_server).forward(context, seconds)
    assert answer == NotForwarded("192.0.2.1:6443: no response in time")
    assert asyncio.get_running_loop().time() <= started + min(seconds or 5, 5)


class Sharded:
    """A controller with two shards: this process controls the namespace shop, and another one bank."""

    leader = ""
    is_leader = True

    def controls(self, namespace: str) -> bool:
        return namespace == "shop"

    def holder(self, namespace: str) -> str:
        return process_identity("192.0.2.1:6443" if namespace == "bank" else "192.0.2.9:6443")

    def shard_holders(self) -> frozenset[str]:
        return frozenset({process_identity("192.0.2.1:6443"), process_identity()})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/debug/autoscalers/shop/web", ""),
        ("/debug/autoscalers/bank/web", "192.0.2.1:6443: no response in time"),
        ("/debug/metrics/bank", "192.0.2.1:6443: no response in time"),
        ("/debug/rules", ""),
    ],
)
async def test_request_about_a_namespace_is_forwarded_to_the_holder_of_its_shard(path: str, reason: str):
    api_server = ApiServer()
    api_server.delay = HOUR
    sharded = forwarding(api_server)
    sharded.leadership = Leadership("192.0.2.9:6443", cast("Any", Sharded()))
    context = RequestContext.create(make_mocked_request("GET", path))
    assert await sharded.forward(context) == NotForwarded(reason)


def test_peers_are_the_other_holders_with_an_address():
    assert Leadership("192.0.2.9:6443", cast("Any", Sharded())).peers() == ("192.0.2.1:6443",)
    assert Leadership("192.0.2.9:6443").peers() == ()


async def test_peer_without_response_is_named_in_the_overview():
    api_server = ApiServer()
    api_server.delay = HOUR
    sharded = forwarding(api_server)
    sharded.leadership = Leadership("192.0.2.9:6443", cast("Any", Sharded()))
    own = {"total": 0, "counts": {}, "autoscalers": [], "omitted": 0, "rulesFailing": [], "historyProblem": None}
    merged = await PeerOverviews(sharded).merged(own, cast("Any", {"text": "web"}))
    assert merged["missingReplicas"] == ["192.0.2.1:6443"]
    sharded.leadership = Leadership("192.0.2.9:6443")
    assert await PeerOverviews(sharded).merged(own, cast("Any", {})) is own
