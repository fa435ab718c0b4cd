"""The health endpoints in the format of Kubernetes' own servers, and /metrics."""

import pytest

from tests.conformance_http.client import Target


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_healthy_server_responds_ok(target: Target, path: str):
    response = target.get(path)

    assert (response.status, response.media, response.body) == (200, "text/plain", b"ok")


def test_verbose_lists_each_check(target: Target):
    lines = target.get("/readyz?verbose").body.decode().splitlines()

    assert "[+]ping ok" in lines
    assert lines[-1] == "readyz check passed"


def test_check_can_be_excluded_and_an_unknown_one_gives_a_warning(target: Target):
    response = target.get("/readyz?verbose&exclude=ping&exclude=bogus")

    assert response.status == 200
    assert "[+]ping excluded: ok" in response.body.decode().splitlines()
    assert "bogus" in response.body.decode()


def test_single_check(target: Target):
    assert target.get("/readyz/ping").body == b"ok"
    assert target.get("/livez/ping?verbose").body.decode().splitlines() == ["[+]ping ok", "livez check passed"]


@pytest.mark.parametrize("path", ["/readyz/nope", "/livez/ping/x", "/healthz/"[:-1] + "x"])
def test_unknown_check_is_not_found(target: Target, path: str):
    assert target.get(path).status == 404


def test_metrics_endpoint_has_request_and_authentication_counters(own_server: Target):
    own_server.get(own_server.path)
    response = own_server.get("/metrics")

    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'steadyscale_requests_total{code="200",endpoint="metric"}' in response.body
    assert b'steadyscale_authentications_total{result="success"}' in response.body
