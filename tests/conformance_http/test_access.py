"""Who may: the golden matrix of Kubernetes' own servers, on ours."""

import http.client
import ssl
from dataclasses import replace

import pytest

from tests.conformance_http.client import Target
from tests.conformance_http.conftest import masters
from tests.conformance_http.test_discovery import assert_status
from tests.loopback import Loopback

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-metric"
USER, GROUP = "X-Remote-User", "X-Remote-Group"
ADMIN = ((USER, "admin"), (GROUP, "system:masters"))


def as_holder_of(ours: Loopback, name: str | None) -> Target:
    certificate = tuple(map(str, ours.credentials(name))) if name else None
    return replace(masters(ours), certificate=certificate, headers=())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_for_everyone(ours: Loopback, path: str):
    assert as_holder_of(ours, None).get(path).body == b"ok"


@pytest.mark.parametrize(
    "path", [METRIC, "/apis", "/readyz/ping", "/nothing", "/metrics", "/debug/page", "/debug/picture"]
)
def test_the_rest_is_not_for_strangers(ours: Loopback, path: str):
    answer = as_holder_of(ours, None).get(path)

    assert_status(answer, 403, "Forbidden")
    assert "system:anonymous" in answer.json["message"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_forged_headers_without_a_certificate_are_not_believed(ours: Loopback):
    answer = as_holder_of(ours, None).ask(METRIC, *ADMIN)

    assert_status(answer, 403, "Forbidden")
    assert "system:anonymous" in answer.json["message"]


def test_forged_headers_with_an_ordinary_certificate_are_not_believed(ours: Loopback):
    answer = as_holder_of(ours, "alice").ask("/metrics", *ADMIN)

    assert_status(answer, 403, "Forbidden")
    assert '"alice"' in answer.json["message"]


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", (), id="a front proxy that names nobody"),
        pytest.param("fp", ((USER, ""), (USER, "alice")), id="a first name that is empty"),
        pytest.param("fpbad", ((USER, "alice"),), id="a certificate of that authority with another name"),
        pytest.param(None, (("Authorization", "Bearer bad"),), id="a bad token"),
    ],
)
def test_bad_credentials_are_refused_and_not_taken_for_none(ours: Loopback, holder: str | None, headers):
    answer = as_holder_of(ours, holder).ask(METRIC, *headers)

    assert_status(answer, 401, "Unauthorized")
    assert answer.json["message"] == "Unauthorized"
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", ((USER, "alice"),), id="by the front proxy"),
        pytest.param("fp", ((USER.lower(), "alice"), (GROUP.lower(), "a")), id="in lower case"),
        pytest.param("fp", ((USER, "alice"), ("Authorization", "Bearer bad")), id="a bad token beside it"),
        pytest.param("alice", (), id="by a certificate"),
        pytest.param("admin", (), id="an administrator by a certificate"),
        pytest.param(None, (("Authorization", "Bearer good"),), id="by a token"),
        pytest.param(None, (("Authorization", "bearer good"),), id="by a token, in lower case"),
    ],
)
def test_who_may_is_let_in(ours: Loopback, holder: str | None, headers):
    assert as_holder_of(ours, holder).ask(METRIC, *headers).status == 200


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", ((USER, "carol"), (GROUP, "a,system:masters")), id="a comma makes no second group"),
        pytest.param("fp", ((USER, "system:anonymous"),), id="anonymous by name"),
        pytest.param(None, (("Authorization", "Basic Z29vZA=="),), id="basic"),
        pytest.param(None, (("Authorization", "Bearer "),), id="an empty token"),
        pytest.param(None, (("Authorization", "Bearer  good"),), id="two spaces"),
        pytest.param("fp", ((USER, "carol"), ("Impersonate-User", "alice")), id="impersonation is not ours to grant"),
    ],
)
def test_who_may_not_is_forbidden(ours: Loopback, holder: str | None, headers):
    assert_status(as_holder_of(ours, holder).ask(METRIC, *headers), 403, "Forbidden")


def test_a_strangers_certificate_ends_the_handshake(ours: Loopback):
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        as_holder_of(ours, "x").get(METRIC)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(((USER, "al\xff"),), id="name"),
        pytest.param(((USER, "alice"), (GROUP, "\xfe")), id="group"),
        pytest.param(((USER, "alice"), ("X-Remote-Extra-Note", "\xff")), id="extra"),
    ],
)
def test_whoever_is_named_in_bytes_that_are_no_text_is_refused(ours: Loopback, headers: tuple[tuple[str, str], ...]):
    before = len(ours.reviews.wishes)
    answer = as_holder_of(ours, "fp").ask(METRIC, *headers)

    assert_status(answer, 403, "Forbidden")
    assert "not UTF-8" in answer.json["message"]
    assert len(ours.reviews.wishes) == before


def test_leave_is_asked_for_with_kubernetes_own_words(ours: Loopback):
    as_holder_of(ours, "fp").ask(METRIC.replace("my-metric", "whole"), (USER, "alice"), (GROUP, "b"), (GROUP, "a"))
    subject, wanted = ours.reviews.wishes[-1]

    assert subject.groups == ("b", "a", "system:authenticated")
    assert wanted["resourceAttributes"] == {
        "verb": "list",
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "namespace": "default",
        "resource": "whole",
    }


def test_leave_to_see_a_plain_path_is_asked_for_as_such(ours: Loopback):
    as_holder_of(ours, "fp").ask("/apis/external.metrics.k8s.io/v1beta1", (USER, "dave"))

    assert ours.reviews.wishes[-1][1] == {
        "nonResourceAttributes": {"verb": "get", "path": "/apis/external.metrics.k8s.io/v1beta1"}
    }


def test_extra_and_uid_are_passed_on(ours: Loopback):
    extra = ("X-Remote-Extra-Acme.Io%2fFoo", "v1")
    as_holder_of(ours, "fp").ask("/version", (USER, "erin"), extra, extra, ("X-Remote-Uid", "u1"))
    subject, _ = ours.reviews.wishes[-1]

    assert (dict(subject.extra), subject.uid) == ({"acme.io/foo": ("v1", "v1")}, "u1")


def test_in_which_order_more_is_told_makes_no_other_caller(ours: Loopback):
    one, other = ("X-Remote-Extra-One", "1"), ("X-Remote-Extra-Other", "2")
    target = as_holder_of(ours, "fp")
    target.ask("/version", (USER, "frank"), one, other)
    before = len(ours.reviews.wishes)
    target.ask("/version", (USER, "frank"), other, one)

    assert len(ours.reviews.wishes) == before


def test_a_yes_is_remembered(ours: Loopback):
    target = as_holder_of(ours, "fp")
    target.ask(METRIC, (USER, "alice"), (GROUP, "remembered"))
    before = len(ours.reviews.wishes)
    for _ in range(20):
        target.ask(METRIC, (USER, "alice"), (GROUP, "remembered"))

    assert len(ours.reviews.wishes) == before


def test_writing_is_forbidden_before_it_is_impossible(ours: Loopback):
    assert_status(as_holder_of(ours, "alice").ask(METRIC, method="POST"), 403, "Forbidden")


@pytest.mark.parametrize("namespace", ["default%2Fother", "default/../other", "other%2F..%2Fdefault"])
def test_what_is_served_is_what_was_authorized(ours: Loopback, namespace: str):
    answer = as_holder_of(ours, "alice").get(METRIC.replace("default", namespace))

    assert answer.status in {403, 404}
