"""What cannot be answered: always a Status, always the same words, never a number that would mislead."""

import pytest

from tests.conformance_http.client import Target
from tests.conformance_http.test_discovery import assert_status


def test_an_unknown_metric_is_not_found_and_says_what_was_asked_for(rehearsing: Target):
    answer = rehearsing.get(f"{rehearsing.metrics}/my-metrik")

    assert_status(answer, 404, "NotFound")
    assert answer.json["details"]["group"] == "external.metrics.k8s.io"
    assert answer.json["details"]["kind"] == "my-metrik"
    assert "'my-metric'" in answer.json["message"]


def test_a_metric_of_another_namespace_is_not_found(rehearsing: Target):
    assert_status(rehearsing.get(f"{rehearsing.metrics}/elsewhere"), 404, "NotFound")


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
def test_paths_that_are_not_a_metric_are_not_found(target: Target, path: str):
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
def test_a_number_that_would_mislead_is_an_error_with_its_class(rehearsing: Target, metric: str, cause: str):
    answer = rehearsing.get(f"{rehearsing.metrics}/{metric}")

    assert_status(answer, 503, "ServiceUnavailable")
    assert [each["reason"] for each in answer.json["details"]["causes"]] == [cause]
    assert metric in answer.json["message"]
    assert "retryAfterSeconds" not in answer.json["details"]


def test_nothing_that_matches_is_an_error_with_its_class(rehearsing: Target):
    answer = rehearsing.get(f"{rehearsing.path}?labelSelector=foo%3Dnope")

    assert_status(answer, 503, "ServiceUnavailable")
    assert answer.json["message"] == "metric 'my-metric': static: no series: nothing matches foo=nope"


@pytest.mark.parametrize("metric", ["negative", "refused", "old", "my-metrik"])
def test_the_same_cause_has_the_same_words(rehearsing: Target, metric: str):
    assert len({rehearsing.get(f"{rehearsing.metrics}/{metric}").body for _ in range(3)}) == 1


def test_a_deadline_of_the_callers_is_kept(rehearsing: Target):
    answer = rehearsing.get(f"{rehearsing.metrics}/slow?timeout=200ms")

    assert_status(answer, 504, "Timeout")


def test_a_bug_of_ours_says_nothing_about_itself(rehearsing: Target):
    answer = rehearsing.get(f"{rehearsing.metrics}/broken")

    assert_status(answer, 500, "InternalError")
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize("path", ["/apis", "/nothing", "/healthz", "{metric}", "{metric}?watch=1"])
def test_every_answer_has_a_content_type_an_audit_id_and_no_boast(target: Target, path: str):
    answer = target.ask(path.format(metric=target.path), ("Audit-Id", "0f1e-2d3c"))

    assert answer.headers["Content-Type"]
    assert answer.headers["Audit-Id"] == "0f1e-2d3c"
    assert "Python" not in answer.headers.get("Server", "")
    assert "Retry-After" not in answer.headers


def test_a_user_with_300_groups_gets_through(target: Target):
    groups = (("X-Remote-Group", f"group-with-a-rather-long-name-{number}") for number in range(300))

    assert target.ask(target.path, *groups).status == 200


def test_a_selector_of_20_kilobytes_gets_an_answer(target: Target):
    many = ",".join(f"v{number:06}" for number in range(2500))
    answer = target.get(f"{target.path}?labelSelector=foo+notin+({many})")

    assert len(many) > 19_000
    assert answer.status == 200


def test_an_endless_request_line_is_refused_with_a_status(target: Target):
    answer = target.get(f"{target.path}?labelSelector={'a' * 66_000}")

    assert_status(answer, 400, "BadRequest")
