"""A check that fails says so, whoever asks, and says no more."""

import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.auth.attributes import attributes_of
from adapter.errors import PathNotFound
from adapter.server.health import Health
from adapter.server.request_context import RequestContext

SICK = Health(live={}, ready={"trust": lambda: False, "certificate": lambda: True})


def exchange(path: str) -> RequestContext:
    request = make_mocked_request("GET", path)
    return RequestContext(request, request.path, request.query, attributes_of("GET", request.path, {}), "id")


async def test_a_failing_check_is_named_even_to_who_did_not_ask():
    answer = await SICK.handler("readyz")(exchange("/readyz"))

    assert answer.status == 500
    assert (answer.text or "").splitlines() == [
        "[+]ping ok",
        "[-]trust failed: reason withheld",
        "[+]certificate ok",
        "readyz check failed",
    ]


async def test_a_failing_check_can_be_left_out():
    answer = await SICK.handler("readyz")(exchange("/readyz?exclude=trust"))

    assert (answer.status, answer.text) == (200, "ok")


async def test_to_be_unready_is_not_to_be_dead():
    assert (await SICK.handler("livez")(exchange("/livez"))).status == 200


async def test_healthz_is_both():
    assert (await SICK.handler("healthz")(exchange("/healthz"))).status == 500


async def test_one_check_alone_fails_alone():
    assert (await SICK.one(exchange("/readyz/trust"))).status == 500
    assert (await SICK.one(exchange("/readyz/certificate"))).status == 200


@pytest.mark.parametrize("path", ["/livez/trust", "/readyz/", "/readyz/trust/more"])
async def test_a_check_of_another_kind_is_not_there(path: str):
    with pytest.raises(PathNotFound):
        await SICK.one(exchange(path))
