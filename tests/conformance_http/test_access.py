"""Authentication and authorization, with the results of Kubernetes' own servers."""

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


def with_certificate(loopback_server: Loopback, name: str | None) -> Target:
    if name is None:
        return replace(masters(loopback_server), certificate=None, headers=())
    certificate, key = loopback_server.credentials(name)
    return replace(masters(loopback_server), certificate=(str(certificate), str(key)), headers=())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_needs_no_authentication(loopback_server: Loopback, path: str):
    assert with_certificate(loopback_server, None).get(path).body == b"ok"


@pytest.mark.parametrize(
    "path", [METRIC, "/apis", "/readyz/ping", "/nothing", "/metrics", "/debug/page", "/debug/overview"]
)
def test_other_paths_are_forbidden_for_anonymous_callers(loopback_server: Loopback, path: str):
    response = with_certificate(loopback_server, None).get(path)

    assert_status(response, 403, "Forbidden")
    assert "system:anonymous" in response.json["message"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_front_proxy_headers_without_a_certificate_are_ignored(loopback_server: Loopback):
    response = with_certificate(loopback_server, None).request(METRIC, *ADMIN)

    assert_status(response, 403, "Forbidden")
    assert "system:anonymous" in response.json["message"]


def test_front_proxy_headers_with_a_user_certificate_are_ignored(loopback_server: Loopback):
    response = with_certificate(loopback_server, "alice").request("/metrics", *ADMIN)

    assert_status(response, 403, "Forbidden")
    assert '"alice"' in response.json["message"]


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", (), id="front proxy without a user header"),
        pytest.param("fp", ((USER, ""), (USER, "alice")), id="empty first user header"),
        pytest.param("fpbad", ((USER, "alice"),), id="front proxy certificate with another name"),
        pytest.param(None, (("Authorization", "Bearer bad"),), id="invalid token"),
    ],
)
def test_invalid_credentials_are_rejected_and_not_anonymous(loopback_server: Loopback, holder: str | None, headers):
    response = with_certificate(loopback_server, holder).request(METRIC, *headers)

    assert_status(response, 401, "Unauthorized")
    assert response.json["message"] == "Unauthorized"
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", ((USER, "alice"),), id="front proxy"),
        pytest.param("fp", ((USER.lower(), "alice"), (GROUP.lower(), "a")), id="lower-case header names"),
        pytest.param("fp", ((USER, "alice"), ("Authorization", "Bearer bad")), id="front proxy and an invalid token"),
        pytest.param("alice", (), id="client certificate"),
        pytest.param("admin", (), id="system:masters certificate"),
        pytest.param(None, (("Authorization", "Bearer good"),), id="token"),
        pytest.param(None, (("Authorization", "bearer good"),), id="token with a lower-case scheme"),
    ],
)
def test_authorized_callers_get_the_metric(loopback_server: Loopback, holder: str | None, headers):
    assert with_certificate(loopback_server, holder).request(METRIC, *headers).status == 200


@pytest.mark.parametrize(
    ("holder", "headers"),
    [
        pytest.param("fp", ((USER, "carol"), (GROUP, "a,system:masters")), id="group header is not split at commas"),
        pytest.param("fp", ((USER, "system:anonymous"),), id="front proxy names system:anonymous"),
        pytest.param(None, (("Authorization", "Basic Z29vZA=="),), id="basic auth"),
        pytest.param(None, (("Authorization", "Bearer "),), id="empty token"),
        pytest.param(None, (("Authorization", "Bearer  good"),), id="two spaces before the token"),
        pytest.param("fp", ((USER, "carol"), ("Impersonate-User", "alice")), id="impersonation headers are ignored"),
    ],
)
def test_unauthorized_callers_are_forbidden(loopback_server: Loopback, holder: str | None, headers):
    assert_status(with_certificate(loopback_server, holder).request(METRIC, *headers), 403, "Forbidden")


def test_certificate_of_an_unknown_ca_fails_the_handshake(loopback_server: Loopback):
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        with_certificate(loopback_server, "x").get(METRIC)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(((USER, "al\xff"),), id="name"),
        pytest.param(((USER, "alice"), (GROUP, "\xfe")), id="group"),
        pytest.param(((USER, "alice"), ("X-Remote-Extra-Note", "\xff")), id="extra"),
    ],
)
def test_caller_with_fields_that_are_not_utf_8_is_forbidden(
    loopback_server: Loopback, headers: tuple[tuple[str, str], ...]
):
    before = len(loopback_server.reviews.access_reviews)
    response = with_certificate(loopback_server, "fp").request(METRIC, *headers)

    assert_status(response, 403, "Forbidden")
    assert "not UTF-8" in response.json["message"]
    assert len(loopback_server.reviews.access_reviews) == before


def test_metric_is_reviewed_with_resource_attributes(loopback_server: Loopback):
    with_certificate(loopback_server, "fp").request(
        METRIC.replace("my-metric", "whole"), (USER, "alice"), (GROUP, "b"), (GROUP, "a")
    )
    subject, attributes = loopback_server.reviews.access_reviews[-1]

    assert subject.groups == ("b", "a", "system:authenticated")
    assert attributes["resourceAttributes"] == {
        "verb": "list",
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "namespace": "default",
        "resource": "whole",
    }


def test_other_path_is_reviewed_with_non_resource_attributes(loopback_server: Loopback):
    with_certificate(loopback_server, "fp").request("/apis/external.metrics.k8s.io/v1beta1", (USER, "dave"))

    assert loopback_server.reviews.access_reviews[-1][1] == {
        "nonResourceAttributes": {"verb": "get", "path": "/apis/external.metrics.k8s.io/v1beta1"}
    }


def test_extra_and_uid_are_part_of_the_review(loopback_server: Loopback):
    extra = ("X-Remote-Extra-Acme.Io%2fFoo", "v1")
    with_certificate(loopback_server, "fp").request("/version", (USER, "erin"), extra, extra, ("X-Remote-Uid", "u1"))
    subject, _ = loopback_server.reviews.access_reviews[-1]

    assert (dict(subject.extra), subject.uid) == ({"acme.io/foo": ("v1", "v1")}, "u1")


def test_order_of_extra_headers_does_not_matter_for_the_cache(loopback_server: Loopback):
    one, other = ("X-Remote-Extra-One", "1"), ("X-Remote-Extra-Other", "2")
    target = with_certificate(loopback_server, "fp")
    target.request("/version", (USER, "frank"), one, other)
    before = len(loopback_server.reviews.access_reviews)
    target.request("/version", (USER, "frank"), other, one)

    assert len(loopback_server.reviews.access_reviews) == before


def test_allowed_review_is_cached(loopback_server: Loopback):
    target = with_certificate(loopback_server, "fp")
    target.request(METRIC, (USER, "alice"), (GROUP, "cached"))
    before = len(loopback_server.reviews.access_reviews)
    for _ in range(20):
        target.request(METRIC, (USER, "alice"), (GROUP, "cached"))

    assert len(loopback_server.reviews.access_reviews) == before


def test_authorization_is_checked_before_the_method(loopback_server: Loopback):
    assert_status(with_certificate(loopback_server, "alice").request(METRIC, method="POST"), 403, "Forbidden")


@pytest.mark.parametrize("namespace", ["default%2Fother", "default/../other", "other%2F..%2Fdefault"])
def test_path_is_authorized_as_it_is_served(loopback_server: Loopback, namespace: str):
    response = with_certificate(loopback_server, "alice").get(METRIC.replace("default", namespace))

    assert response.status in {403, 404}
