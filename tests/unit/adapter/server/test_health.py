import pytest
from aiohttp.test_utils import make_mocked_request

from adapter.errors import PathNotFound
from adapter.server.health import Health
from adapter.server.request_context import RequestContext

UNHEALTHY = Health({"trust": lambda: False, "certificate": lambda: True})


def context(path: str) -> RequestContext:
    return RequestContext.create(make_mocked_request("GET", path))


async def test_failed_checks_are_listed_without_verbose():
    response = await UNHEALTHY.all_checks(context("/readyz"))

    assert response.status == 500
    assert (response.text or "").splitlines() == [
        "[+]ping ok",
        "[-]trust failed: reason withheld",
        "[+]certificate ok",
        "readyz check failed",
    ]


async def test_failing_check_can_be_excluded():
    response = await UNHEALTHY.all_checks(context("/readyz?exclude=trust"))

    assert (response.status, response.text) == (200, "ok")


async def test_livez_passes_when_a_readiness_check_fails():
    assert (await UNHEALTHY.all_checks(context("/livez"))).status == 200


async def test_healthz_includes_readiness_checks():
    assert (await UNHEALTHY.all_checks(context("/healthz"))).status == 500


async def test_single_check_fails_independently_of_others():
    assert (await UNHEALTHY.single_check(context("/readyz/trust"))).status == 500
    assert (await UNHEALTHY.single_check(context("/readyz/certificate"))).status == 200


@pytest.mark.parametrize("path", ["/livez/trust", "/readyz/", "/readyz/trust/more"])
async def test_unknown_check_is_not_found(path: str):
    with pytest.raises(PathNotFound):
        await UNHEALTHY.single_check(context(path))
