"""An answer that is none, and the error it stands for."""

from datetime import timedelta

import pytest

from autoscaler.kube import errors


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Expired),
        (415, errors.BadRequest),
        (422, errors.BadRequest),
        (429, errors.TooManyRequests),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
    ],
)
def test_a_code_stands_for_one_error(code: int, kind: type[errors.KubeError]):
    assert type(errors.refusal(code, b"{}")) is kind


def test_of_two_conflicts_one_means_that_it_exists_already():
    assert type(errors.refusal(409, b'{"reason": "AlreadyExists"}')) is errors.AlreadyExists


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"message": "no such thing"}', "404: no such thing", id="a Status"),
        pytest.param(b"404 page not found\n", "404: 404 page not found", id="plain text"),
        pytest.param(b"[]", "404: []", id="JSON of another shape"),
        pytest.param(b"", "404: no explanation was given", id="nothing"),
    ],
)
def test_the_message_is_the_servers_own(body: bytes, message: str):
    assert str(errors.refusal(404, body)) == message


def test_a_long_page_is_cut():
    assert len(str(errors.refusal(502, b"<html>" * 1000))) == errors.LONGEST_MESSAGE


@pytest.mark.parametrize(("header", "wait"), [("2", timedelta(seconds=2)), (None, None), ("Mon, 16 Nov", None)])
def test_it_says_how_long_to_wait_if_the_server_did(header: str | None, wait: timedelta | None):
    assert errors.refusal(429, b"{}", header).retry_after == wait
