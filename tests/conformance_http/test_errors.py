"""Errors: always a Status with a stable message, never a misleading value."""

import pytest

from tests.conformance_http.client import Target
from tests.conformance_http.test_discovery import assert_status


def test_unknown_metric_is_not_found_and_names_the_nearest_metric(own_server: Target):
    response = own_server.get(f"{own_server.metrics}/my-metrik")

    assert_status(response, 404, "NotFound")
    assert response.json["details"]["group"] == "external.metrics.k8s.io"
    assert response.json["details"]["kind"] == "my-metrik"
    assert "'my-metric'" in response.json["message"]


def test_metric_of_another_namespace_is_not_found(own_server: Target):
    assert_status(own_server.get(f"{own_server.metrics}/elsewhere"), 404, "NotFound")


@pytest.mark.parametrize(
    "path",
    [
        "{metric}/foo",
        "/apis/external.metrics.k8s.io/v1beta1/my-metric",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default",
        "/apis/external.metrics.k8s.io/v1beta1/watch/namespaces/default/my-metric",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/status",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces//my-metric",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/a%2Fb",
        "/apis/external.metrics.k8s.io/v2/namespaces/default/my-metric",
    ],
)
def test_path_that_is_not_a_metric_is_not_found(target: Target, path: str):
    assert_status(target.get(path.format(metric=target.path)), 404, "NotFound")


@pytest.mark.parametrize(
    ("metric", "cause"),
    [
        ("negative", "OutOfRange"),
        ("huge", "OutOfRange"),
        ("too-large", "OutOfRange"),
        ("not-a-number", "NotANumber"),
        ("infinite", "NotANumber"),
        ("old", "TooOld"),
        ("refused", "Refused"),
    ],
)
def test_invalid_value_is_an_error_with_its_failure_class(own_server: Target, metric: str, cause: str):
    response = own_server.get(f"{own_server.metrics}/{metric}")

    assert_status(response, 503, "ServiceUnavailable")
    assert [item["reason"] for item in response.json["details"]["causes"]] == [cause]
    assert metric in response.json["message"]
    assert "retryAfterSeconds" not in response.json["details"]


def test_selector_without_matches_is_an_error(own_server: Target):
    response = own_server.get(f"{own_server.path}?labelSelector=foo%3Dnope")

    assert_status(response, 503, "ServiceUnavailable")
    assert response.json["message"] == "metric 'my-metric': static: no series: no series matches foo=nope"


@pytest.mark.parametrize("metric", ["negative", "refused", "old", "my-metrik"])
def test_same_error_has_the_same_body(own_server: Target, metric: str):
    assert len({own_server.get(f"{own_server.metrics}/{metric}").body for _ in range(3)}) == 1


def test_timeout_parameter_limits_the_request(own_server: Target):
    response = own_server.get(f"{own_server.metrics}/slow?timeout=200ms")

    assert_status(response, 504, "Timeout")


def test_unexpected_error_reveals_no_details(own_server: Target):
    response = own_server.get(f"{own_server.metrics}/broken")

    assert_status(response, 500, "InternalError")
    assert b"an internal detail" not in response.body
    assert b"Traceback" not in response.body


@pytest.mark.parametrize("path", ["/apis", "/nothing", "/healthz", "{metric}", "{metric}?watch=1"])
def test_every_response_has_content_type_and_audit_id_and_no_library_version(target: Target, path: str):
    response = target.request(path.format(metric=target.path), ("Audit-Id", "0f1e-2d3c"))

    assert response.headers["Content-Type"]
    assert response.headers["Audit-Id"] == "0f1e-2d3c"
    assert "Python" not in response.headers.get("Server", "")
    assert "Retry-After" not in response.headers


def test_caller_with_300_groups_is_accepted(target: Target):
    groups = (("X-Remote-Group", f"group-with-a-rather-long-name-{number}") for number in range(300))

    assert target.request(target.path, *groups).status == 200


def test_selector_of_20_kilobytes_is_accepted(target: Target):
    values = ",".join(f"v{number:06}" for number in range(2500))
    response = target.get(f"{target.path}?labelSelector=foo+notin+({values})")

    assert len(values) > 19_000
    assert response.status == 200


def test_too_long_request_line_gets_a_status(target: Target):
    response = target.get(f"{target.path}?labelSelector={'a' * 66_000}")

    assert_status(response, 400, "BadRequest")
