"""Health paths, in the words of Kubernetes' own servers."""

import pytest

from tests.conformance_http.client import Target


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_all_is_well_in_two_letters(target: Target, path: str):
    answer = target.get(path)

    assert (answer.status, answer.media, answer.body) == (200, "text/plain", b"ok")


def test_verbose_names_each_check(target: Target):
    lines = target.get("/readyz?verbose").body.decode().splitlines()

    assert "[+]ping ok" in lines
    assert lines[-1] == "readyz check passed"


def test_a_check_can_be_left_out_and_an_unknown_one_is_warned_of(target: Target):
    answer = target.get("/readyz?verbose&exclude=ping&exclude=bogus")

    assert answer.status == 200
    assert "[+]ping excluded: ok" in answer.body.decode().splitlines()
    assert "bogus" in answer.body.decode()


def test_one_check_alone(target: Target):
    assert target.get("/readyz/ping").body == b"ok"
    assert target.get("/livez/ping?verbose").body.decode().splitlines() == ["[+]ping ok", "livez check passed"]


@pytest.mark.parametrize("path", ["/readyz/nope", "/livez/ping/x", "/healthz/"[:-1] + "x"])
def test_a_check_that_is_not_there(target: Target, path: str):
    assert target.get(path).status == 404


def test_our_own_figures_are_there_to_scrape(rehearsing: Target):
    rehearsing.get(rehearsing.path)
    answer = rehearsing.get("/metrics")

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'steadyscale_requests_total{code="200",endpoint="metric"}' in answer.body
    assert b'steadyscale_authentications_total{result="passed"}' in answer.body
