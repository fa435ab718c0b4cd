"""Responses of the API server and their error types."""

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
def test_status_code_determines_the_error_type(code: int, kind: type[errors.KubeError]):
    assert type(errors.error_for_response(code, b"{}")) is kind


def test_conflict_with_reason_already_exists_raises_already_exists():
    assert type(errors.error_for_response(409, b'{"reason": "AlreadyExists"}')) is errors.AlreadyExists


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"message": "no such thing"}', "404: no such thing", id="Status"),
        pytest.param(b"404 page not found\n", "404: 404 page not found", id="plain text"),
        pytest.param(b"[]", "404: []", id="JSON without message"),
        pytest.param(b"", "404: no message", id="empty body"),
    ],
)
def test_message_is_taken_from_the_response(body: bytes, message: str):
    assert str(errors.error_for_response(404, body)) == message


def test_long_message_is_truncated():
    assert len(str(errors.error_for_response(502, b"<html>" * 1000))) == errors.MAX_MESSAGE_LENGTH


@pytest.mark.parametrize(("header", "wait"), [("2", timedelta(seconds=2)), (None, None), ("Mon, 16 Nov", None)])
def test_retry_after_is_taken_from_the_header(header: str | None, wait: timedelta | None):
    assert errors.error_for_response(429, b"{}", header).retry_after == wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5),
        ("007", 7),
        ("3600", 30),
        ("9" * 30, 30),
        ("\N{SUPERSCRIPT TWO}", None),
        ("Tue, 01 Jan", None),
        (None, None),
    ],
)
def test_retry_after_is_limited(header, seconds):
    delay = errors.error_for_response(429, b"", header).retry_after
    assert delay == (None if seconds is None else timedelta(seconds=seconds))


def test_nested_status_is_not_decoded():
    assert errors.error_for_response(500, b"[" * 100_000).code == 500
