"""Who comes in as whom: the matrix measured on Kubernetes' own library, with real certificates and real handshakes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.control_plane.certificates import DAY, TODAY
from tests.fakes.external_metrics import CONFIGMAP, METRIC, PROXIES, STRANGERS, USERS, Door, open_door, settled, trust

ALICE = USERS.client("alice", ["dev"])
ADMIN = USERS.client("admin", ["system:masters"])
PROXY = PROXIES.client("front-proxy-client")
WRONG_PROXY = PROXIES.client("somebody-else")

FORGED = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    async with open_door(tmp_path) as open_one:
        open_one.api.reviews.tokens["good"] = {"username": "bob", "groups": ["system:authenticated"]}
        open_one.api.reviews.allows = _alice_and_bob
        yield open_one


def _alice_and_bob(spec: dict[str, Any]) -> bool:
    asked = spec.get("resourceAttributes")
    if asked is None:
        return "system:authenticated" in spec["groups"] and spec["nonResourceAttributes"]["path"].startswith("/apis")
    return spec["user"] in {"alice", "bob"} and (asked["verb"], asked["namespace"]) == ("list", "default")


@pytest.mark.parametrize(
    ("given", "code", "name"),
    [
        pytest.param({}, 403, None, id="nothing shown is anonymous, who may not"),
        pytest.param({"path": "/apis"}, 403, None, id="nothing shown may not even discover"),
        pytest.param({"headers": FORGED}, 403, None, id="headers without a certificate are ignored"),
        pytest.param({"show": ALICE, "headers": FORGED}, 200, "alice", id="headers with a user's certificate, too"),
        pytest.param({"show": PROXY}, 401, None, id="a front proxy that names nobody is refused"),
        pytest.param(
            {"show": PROXY, "headers": [("X-Remote-User", "alice")]}, 200, "alice", id="one that does is believed"
        ),
        pytest.param(
            {"show": PROXY, "headers": [("x-remote-user", "alice")]}, 200, "alice", id="in any case of letters"
        ),
        pytest.param({"show": PROXY, "headers": FORGED}, 200, "admin", id="a front proxy may speak for a master"),
        pytest.param(
            {"show": PROXY, "headers": [("X-Remote-User", "eve"), ("X-Remote-Group", "foo,system:masters")]},
            403,
            None,
            id="a comma does not make two groups of one",
        ),
        pytest.param(
            {"show": PROXY, "headers": [("X-Remote-User", ""), ("X-Remote-User", "alice")]},
            401,
            None,
            id="only the first value of a user header counts",
        ),
        pytest.param(
            {"show": WRONG_PROXY, "headers": FORGED},
            401,
            None,
            id="a proxy's authority with a name not allowed is refused",
        ),
        pytest.param(
            {"show": PROXY, "path": "/apis", "headers": [("X-Remote-User", "system:anonymous")]},
            403,
            None,
            id="anonymous by proxy is still anonymous",
        ),
        pytest.param(
            {"show": PROXY, "path": "/apis", "headers": [("X-Remote-User", "system:aggregator")]},
            200,
            "system:aggregator",
            id="whom the API server names without groups is authenticated all the same",
        ),
        pytest.param(
            {"show": PROXY, "headers": [("X-Remote-User", "alice"), ("Authorization", "Bearer bad")]},
            200,
            "alice",
            id="a bad token does no harm beside a good header",
        ),
        pytest.param({"headers": [("Authorization", "Bearer good")]}, 200, "bob", id="a good token"),
        pytest.param({"headers": [("Authorization", "bearer good")]}, 200, "bob", id="bearer in small letters"),
        pytest.param({"headers": [("Authorization", "Bearer bad")]}, 401, None, id="a bad token is refused"),
        pytest.param(
            {"headers": [("Authorization", "Basic Z29vZA==")]}, 403, None, id="a password is no credential here"
        ),
        pytest.param({"headers": [("Authorization", "Bearer ")]}, 403, None, id="an empty token is none"),
        pytest.param({"headers": [("Authorization", "Bearer  good")]}, 403, None, id="two spaces make it none"),
        pytest.param({"show": ALICE}, 200, "alice", id="a user's certificate"),
        pytest.param({"show": ADMIN, "path": "/metrics"}, 200, "admin", id="a master's certificate"),
        pytest.param(
            {"show": ALICE, "headers": [("Impersonate-User", "admin")], "path": "/metrics"},
            403,
            None,
            id="impersonation is the API server's business, not ours",
        ),
        pytest.param({"show": ALICE, "method": "POST"}, 403, None, id="who may list may not create"),
    ],
)
async def test_the_golden_matrix(door: Door, given: dict[str, Any], code: int, name: str | None) -> None:
    answer = await door.knock(**given)
    assert (answer.code, answer.body.get("name")) == (code, name), answer.body


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(STRANGERS.client("front-proxy-client", ["system:masters"]), id="of an authority nobody named"),
        pytest.param(USERS.client("alice", until=TODAY - DAY), id="of a user, expired"),
        pytest.param(PROXIES.client("front-proxy-client", until=TODAY - DAY), id="of a front proxy, expired"),
        pytest.param(PROXIES.server("front-proxy-client"), id="of the right authority, but for servers"),
    ],
)
async def test_a_certificate_is_refused_that_is(door: Door, shown: Any) -> None:
    with pytest.raises((aiohttp.ClientError, OSError)):  # the handshake itself fails
        await door.knock(show=shown, headers=FORGED)


async def test_what_a_front_proxy_says_reaches_the_review_unchanged(door: Door) -> None:
    said = [
        ("X-Remote-User", "alice"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "first"),
        ("X-Remote-Group", "second"),
        ("X-Remote-Extra-Acme.Io%2fFoo", "v1"),
        ("X-Remote-Extra-Acme.Io%2fFoo", "v1"),
    ]
    assert (await door.knock(show=PROXY, headers=said)).code == 200
    assert door.api.reviews.reviewed[-1]["spec"] == {
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


async def test_a_certificate_says_name_groups_and_which_one_it_was(door: Door) -> None:
    answer = await door.knock(show=ALICE)
    assert answer.body["groups"] == ["dev", "system:authenticated"]
    assert answer.body["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_a_uid_header_is_nobodys_word_unless_the_cluster_names_it(door: Door) -> None:
    said = [("X-Remote-User", "alice"), ("X-Remote-Uid", "42")]
    assert (await door.knock(show=PROXY, headers=said)).body["uid"] == "42"
    without = trust()
    del without["data"]["requestheader-uid-headers"]
    door.api.put(CONFIGMAP, without)
    await settled(door.guard, 2)
    assert (await door.knock(show=PROXY, headers=said)).body["uid"] == ""


async def test_a_path_that_is_no_object_is_reviewed_as_a_path(door: Door) -> None:
    await door.knock("/apis/external.metrics.k8s.io/v1beta1", show=ALICE)
    path = {"path": "/apis/external.metrics.k8s.io/v1beta1", "verb": "get"}
    assert door.api.reviews.reviewed[-1]["spec"]["nonResourceAttributes"] == path


async def test_a_master_is_never_reviewed(door: Door) -> None:
    assert (await door.knock(show=ADMIN)).code == 200
    assert door.api.reviews.reviewed == []


async def test_the_same_question_is_asked_once(door: Door) -> None:
    for _ in range(5):
        assert (await door.knock(headers=[("Authorization", "Bearer good")])).code == 200
    assert [review["kind"] for review in door.api.reviews.reviewed] == ["TokenReview", "SubjectAccessReview"]


async def test_a_no_is_remembered_too_and_says_whom_and_what(door: Door) -> None:
    mallory = USERS.client("mallory")
    answers = [await door.knock(show=mallory) for _ in range(3)]
    assert {answer.code for answer in answers} == {403}
    assert answers[0].body["why"] == (
        'my-metric.external.metrics.k8s.io is forbidden: User "mallory" cannot list resource "my-metric" '
        'in API group "external.metrics.k8s.io" in the namespace "default"'
    )
    assert len(door.api.reviews.reviewed) == 1


async def test_when_access_cannot_be_reviewed_the_answer_is_no_and_yes_again_when_it_can(door: Door) -> None:
    door.api.weather.refusing = 503
    assert (await door.knock(show=ALICE)).code == 500
    door.api.weather.refusing = 0
    assert (await door.knock(show=ALICE)).code == 200


async def test_when_a_token_cannot_be_reviewed_it_is_refused_and_not_taken_for_anonymous(door: Door) -> None:
    door.api.weather.refusing = 503
    assert (await door.knock(headers=[("Authorization", "Bearer good")])).code == 401
    door.api.weather.refusing = 0
    assert (await door.knock(headers=[("Authorization", "Bearer good")])).code == 200


async def test_an_open_connection_is_judged_anew_when_the_trust_changes(door: Door) -> None:
    said = [("X-Remote-User", "alice")]
    async with door.visitor(PROXY) as session:
        assert (await door.ask(session, headers=said)).code == 200
        door.api.put(CONFIGMAP, trust(requestheader_client_ca_file=STRANGERS.pem))
        await settled(door.guard, 2)
        assert (await door.ask(session, headers=said)).code == 401


async def test_a_new_authority_is_believed_without_a_restart_and_the_old_one_beside_it(door: Door) -> None:
    door.api.put(CONFIGMAP, trust(requestheader_client_ca_file=PROXIES.pem + STRANGERS.pem))
    await settled(door.guard, 2)
    for authority in (PROXIES, STRANGERS):
        shown = authority.client("front-proxy-client")
        assert (await door.knock(show=shown, headers=[("X-Remote-User", "alice")])).code == 200


async def test_an_authority_that_was_removed_is_not_believed_on_new_connections(door: Door) -> None:
    door.api.put(CONFIGMAP, trust(requestheader_client_ca_file=STRANGERS.pem))
    await settled(door.guard, 2)
    with pytest.raises((aiohttp.ClientError, OSError)):
        await door.knock(show=PROXY, headers=FORGED)


@pytest.mark.parametrize("names", ["[]", "null", ""])
async def test_no_allowed_names_means_any_that_the_authority_vouches_for(door: Door, names: str) -> None:
    door.api.put(CONFIGMAP, trust(requestheader_allowed_names=names))
    await settled(door.guard, 2)
    assert (await door.knock(show=WRONG_PROXY, headers=FORGED)).code == 200


async def test_one_authority_for_users_and_proxies_and_no_names_means_headers_from_nobody(door: Door) -> None:
    door.api.put(CONFIGMAP, trust(requestheader_client_ca_file=USERS.pem, requestheader_allowed_names="[]"))
    await settled(door.guard, 2)
    answer = await door.knock(METRIC, show=ALICE, headers=FORGED)
    assert (answer.code, answer.body["name"]) == (200, "alice")
