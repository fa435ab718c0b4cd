"""Responses of the API server and their error types."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


WEBHOOK_FAILED = b'{"message": "Internal error occurred: failed calling webhook \\"w\\": context deadline exceeded"}'


@pytest.mark.parametrize(
    ("error", "is_unknown"),
    [
        (errors.Unavailable("request timed out"), True),
        (errors.MalformedResponse("not JSON"), True),
        (errors.ResponseTooLarge("too large"), True),
        (errors.error_for_response(408, b""), True),
        (errors.error_for_response(500, b'{"message": "etcdserver: request timed out"}'), True),
        (errors.error_for_response(502, b"<html>"), True),
        (errors.error_for_response(504, b""), True),
        (errors.error_for_response(500, WEBHOOK_FAILED), False),
        (errors.RequestNotSent("connection refused"), False),
        *((errors.error_for_response(code, b""), False) for code in (400, 401, 403, 404, 409, 410, 422, 429)),
    ],
    ids=str,
)
def test_outcome_of_a_write_is_unknown_unless_it_was_refused_or_not_sent(error: errors.KubeError, *, is_unknown: bool):
    assert errors.is_outcome_unknown(error) is is_unknown


@given(st.text(" \n\t", max_size=3), st.sampled_from([errors.KubeError, TimeoutError, ConnectionResetError]))
def test_description_of_an_error_is_never_empty(text: str, kind: type[Exception]):
    assert errors.describe(kind(text)) == kind.__name__
