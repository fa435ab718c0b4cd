"""Authentication with real certificates and handshakes; the expected results were measured on Kubernetes' library."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.control_plane.certificates import DAY, TODAY, Credentials
from tests.unit.auth.auth_server import METRIC, PROXIES, UNKNOWN, USERS, AuthServer, auth_server, configmap

ALICE = USERS.client("alice", ["dev"])
ADMIN = USERS.client("admin", ["system:masters"])
PROXY = PROXIES.client("front-proxy-client")
OTHER_NAME = PROXIES.client("somebody-else")

ADMIN_HEADERS = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")]
ALICE_HEADERS = [("X-Remote-User", "alice")]
TOKEN = [("Authorization", "Bearer good")]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AuthServer]:
    async with auth_server(tmp_path) as running:
        running.api.reviews.tokens["good"] = {"username": "bob", "groups": ["system:authenticated"]}
        running.api.reviews.authorize = _authorize_alice_and_bob
        yield running


def _authorize_alice_and_bob(spec: dict[str, Any]) -> bool:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        return "system:authenticated" in spec["groups"] and spec["nonResourceAttributes"]["path"].startswith("/apis")
    return spec["user"] in {"alice", "bob"} and (attributes["verb"], attributes["namespace"]) == ("list", "default")


@pytest.mark.parametrize(
    ("request_", "code", "name"),
    [
        pytest.param({}, 403, None, id="no credentials is anonymous and forbidden"),
        pytest.param({"path": "/apis"}, 403, None, id="anonymous discovery is forbidden"),
        pytest.param({"headers": ADMIN_HEADERS}, 403, None, id="headers without a certificate are ignored"),
        pytest.param(
            {"certificate": ALICE, "headers": ADMIN_HEADERS},
            200,
            "alice",
            id="headers with a user certificate are ignored",
        ),
        pytest.param({"certificate": PROXY}, 401, None, id="front proxy without a user header is rejected"),
        pytest.param(
            {"certificate": PROXY, "headers": ALICE_HEADERS}, 200, "alice", id="front proxy with a user header"
        ),
        pytest.param(
            {"certificate": PROXY, "headers": [("x-remote-user", "alice")]}, 200, "alice", id="lower-case header names"
        ),
        pytest.param(
            {"certificate": PROXY, "headers": ADMIN_HEADERS}, 200, "admin", id="front proxy names a system:masters user"
        ),
        pytest.param(
            {"certificate": PROXY, "headers": [("X-Remote-User", "eve"), ("X-Remote-Group", "foo,system:masters")]},
            403,
            None,
            id="group header is not split at commas",
        ),
        pytest.param(
            {"certificate": PROXY, "headers": [("X-Remote-User", ""), ("X-Remote-User", "alice")]},
            401,
            None,
            id="only the first value of a user header counts",
        ),
        pytest.param(
            {"certificate": OTHER_NAME, "headers": ADMIN_HEADERS},
            401,
            None,
            id="front proxy certificate with a name that is not allowed",
        ),
        pytest.param(
            {"certificate": PROXY, "path": "/apis", "headers": [("X-Remote-User", "system:anonymous")]},
            403,
            None,
            id="anonymous user named by the front proxy stays anonymous",
        ),
        pytest.param(
            {"certificate": PROXY, "path": "/apis", "headers": [("X-Remote-User", "system:aggregator")]},
            200,
            "system:aggregator",
            id="user without groups is in system:authenticated",
        ),
        pytest.param(
            {"certificate": PROXY, "headers": [*ALICE_HEADERS, ("Authorization", "Bearer bad")]},
            200,
            "alice",
            id="invalid token beside a valid user header is ignored",
        ),
        pytest.param({"headers": TOKEN}, 200, "bob", id="valid token"),
        pytest.param({"headers": [("Authorization", "bearer good")]}, 200, "bob", id="lower-case bearer scheme"),
        pytest.param({"headers": [("Authorization", "Bearer bad")]}, 401, None, id="invalid token is rejected"),
        pytest.param({"headers": [("Authorization", "Basic Z29vZA==")]}, 403, None, id="basic auth is anonymous"),
        pytest.param({"headers": [("Authorization", "Bearer ")]}, 403, None, id="empty token is anonymous"),
        pytest.param({"headers": [("Authorization", "Bearer  good")]}, 403, None, id="two spaces is an empty token"),
        pytest.param({"certificate": ALICE}, 200, "alice", id="user certificate"),
        pytest.param({"certificate": ADMIN, "path": "/metrics"}, 200, "admin", id="system:masters certificate"),
        pytest.param(
            {"certificate": ALICE, "headers": [("Impersonate-User", "admin")], "path": "/metrics"},
            403,
            None,
            id="impersonation headers are ignored",
        ),
        pytest.param({"certificate": ALICE, "method": "POST"}, 403, None, id="list permission does not permit create"),
    ],
)
async def test_caller_and_status_code(
    server: AuthServer, request_: dict[str, Any], code: int, name: str | None
) -> None:
    response = await server.request(**request_)
    assert (response.code, response.body.get("name")) == (code, name), response.body


@pytest.mark.parametrize(
    "certificate",
    [
        pytest.param(UNKNOWN.client("front-proxy-client", ["system:masters"]), id="unknown CA"),
        pytest.param(USERS.client("alice", until=TODAY - DAY), id="expired user certificate"),
        pytest.param(PROXIES.client("front-proxy-client", until=TODAY - DAY), id="expired front proxy certificate"),
        pytest.param(PROXIES.server("front-proxy-client"), id="server certificate"),
    ],
)
async def test_handshake_fails_with_an_untrusted_certificate(server: AuthServer, certificate: Credentials) -> None:
    with pytest.raises((aiohttp.ClientError, OSError)):
        await server.request(certificate=certificate, headers=ADMIN_HEADERS)


async def test_front_proxy_headers_are_passed_to_the_review_unchanged(server: AuthServer) -> None:
    headers = [
        ("X-Remote-User", "alice"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "first"),
        ("X-Remote-Group", "second"),
        ("X-Remote-Extra-Acme.Io%2fFoo", "v1"),
        ("X-Remote-Extra-Acme.Io%2fFoo", "v1"),
    ]
    assert (await server.request(certificate=PROXY, headers=headers)).code == 200
    assert server.api.reviews.requests[-1]["spec"] == {
        "user": "alice",
        "uid": "42",
        "groups": ["first", "second", "system:authenticated"],
        "extra": {"acme.io/foo": ["v1", "v1"]},
        "resourceAttributes": {
            "verb": "list",
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "namespace": "default",
            "resource": "my-metric",
        },
    }


async def test_client_certificate_gives_name_groups_and_credential_id(server: AuthServer) -> None:
    response = await server.request(certificate=ALICE)
    assert response.body["groups"] == ["dev", "system:authenticated"]
    assert response.body["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_uid_header_is_ignored_unless_the_configmap_names_it(server: AuthServer) -> None:
    headers = [*ALICE_HEADERS, ("X-Remote-Uid", "42")]
    assert (await server.request(certificate=PROXY, headers=headers)).body["uid"] == "42"
    without_uid = configmap()
    del without_uid["data"]["requestheader-uid-headers"]
    await server.update_configmap(without_uid)
    assert (await server.request(certificate=PROXY, headers=headers)).body["uid"] == ""


async def test_other_paths_are_reviewed_as_non_resource_attributes(server: AuthServer) -> None:
    await server.request("/apis/external.metrics.k8s.io/v1beta1", certificate=ALICE)
    path = {"path": "/apis/external.metrics.k8s.io/v1beta1", "verb": "get"}
    assert server.api.reviews.requests[-1]["spec"]["nonResourceAttributes"] == path


async def test_system_masters_is_authorized_without_a_review(server: AuthServer) -> None:
    assert (await server.request(certificate=ADMIN)).code == 200
    assert server.api.reviews.requests == []


async def test_reviews_of_equal_requests_are_cached(server: AuthServer) -> None:
    for _ in range(5):
        assert (await server.request(headers=TOKEN)).code == 200
    assert [review["kind"] for review in server.api.reviews.requests] == ["TokenReview", "SubjectAccessReview"]


async def test_denied_review_is_cached_and_names_user_and_resource(server: AuthServer) -> None:
    mallory = USERS.client("mallory")
    responses = [await server.request(certificate=mallory) for _ in range(3)]
    assert {response.code for response in responses} == {403}
    assert responses[0].body["error"] == (
        'my-metric.external.metrics.k8s.io is forbidden: User "mallory" cannot list resource "my-metric" '
        'in API group "external.metrics.k8s.io" in the namespace "default"'
    )
    assert len(server.api.reviews.requests) == 1


async def test_failed_access_review_denies_the_request_and_is_not_cached(server: AuthServer) -> None:
    server.api.faults.fail_all_with = 503
    assert (await server.request(certificate=ALICE)).code == 500
    server.api.faults.fail_all_with = 0
    assert (await server.request(certificate=ALICE)).code == 200


async def test_failed_token_review_rejects_the_request_and_is_not_cached(server: AuthServer) -> None:
    server.api.faults.fail_all_with = 503
    assert (await server.request(headers=TOKEN)).code == 401
    server.api.faults.fail_all_with = 0
    assert (await server.request(headers=TOKEN)).code == 200


async def test_open_connection_is_verified_again_when_the_trusted_cas_change(server: AuthServer) -> None:
    async with server.session(PROXY) as session:
        assert (await server.send(session, headers=ALICE_HEADERS)).code == 200
        await server.update_configmap(configmap(requestheader_client_ca_file=UNKNOWN.pem))
        assert (await server.send(session, headers=ALICE_HEADERS)).code == 401


async def test_added_ca_is_trusted_without_a_restart_beside_the_old_one(server: AuthServer) -> None:
    await server.update_configmap(configmap(requestheader_client_ca_file=PROXIES.pem + UNKNOWN.pem))
    for ca in (PROXIES, UNKNOWN):
        certificate = ca.client("front-proxy-client")
        assert (await server.request(certificate=certificate, headers=ALICE_HEADERS)).code == 200


async def test_removed_ca_is_not_trusted_on_new_connections(server: AuthServer) -> None:
    await server.update_configmap(configmap(requestheader_client_ca_file=UNKNOWN.pem))
    with pytest.raises((aiohttp.ClientError, OSError)):
        await server.request(certificate=PROXY, headers=ADMIN_HEADERS)


@pytest.mark.parametrize("names", ["[]", "null", ""])
async def test_empty_allowed_names_allow_every_name(server: AuthServer, names: str) -> None:
    await server.update_configmap(configmap(requestheader_allowed_names=names))
    assert (await server.request(certificate=OTHER_NAME, headers=ADMIN_HEADERS)).code == 200


async def test_shared_ca_without_allowed_names_disables_front_proxy_headers(server: AuthServer) -> None:
    await server.update_configmap(configmap(requestheader_client_ca_file=USERS.pem, requestheader_allowed_names="[]"))
    response = await server.request(METRIC, certificate=ALICE, headers=ADMIN_HEADERS)
    assert (response.code, response.body["name"]) == (200, "alice")
