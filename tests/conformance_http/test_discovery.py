"""What kubectl, the HPA's client and the API server ask first."""

import re

import pytest

from tests.conformance_http.client import Answer, Target

GROUP = "external.metrics.k8s.io"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = V2.replace("v=v2", "v=v2beta1")


def assert_status(answer: Answer, code: int, reason: str) -> None:
    assert answer.media == "application/json"
    body = answer.json
    assert (answer.status, body["kind"], body["code"], body["reason"]) == (code, "Status", code, reason)
    assert body["status"] == "Failure"
    assert body["message"]
    assert "Retry-After" not in answer.headers


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_version_lists_one_namespaced_resource_that_can_be_got(target: Target, slash: str):
    answer = target.get(f"/apis/{GROUP}/v1beta1{slash}")

    assert answer.status == 200
    assert answer.media == "application/json"
    assert answer.json["kind"] == "APIResourceList"
    assert answer.json["groupVersion"] == f"{GROUP}/v1beta1"
    assert [(r["namespaced"], r["verbs"]) for r in answer.json["resources"]] == [(True, ["get"])]


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_groups_name_a_preferred_version(target: Target, slash: str):
    answer = target.get(f"/apis{slash}")

    assert answer.json["kind"] == "APIGroupList"
    served = {"groupVersion": f"{GROUP}/v1beta1", "version": "v1beta1"}
    ours = next(group for group in answer.json["groups"] if group["name"] == GROUP)
    assert (ours["preferredVersion"], ours["versions"]) == (served, [served])


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_group_describes_itself(target: Target, slash: str):
    answer = target.get(f"/apis/{GROUP}{slash}")

    assert (answer.status, answer.json["kind"], answer.json["name"]) == (200, "APIGroup", GROUP)


def test_aggregated_discovery_says_in_its_content_type_what_it_is(target: Target):
    answer = target.get("/apis", V2)

    parameters = {part.strip() for part in answer.headers["Content-Type"].split(";")}
    assert parameters == {"application/json", "g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"}
    assert answer.headers["Vary"] == "Accept"
    assert re.fullmatch(r'"[^"]+"', answer.headers["ETag"])


def test_aggregated_discovery_has_the_resource_and_its_kind(target: Target):
    body = target.get("/apis", V2).json

    assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    ours = next(item for item in body["items"] if item["metadata"]["name"] == GROUP)
    resource = ours["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["verbs"]) == ("externalmetrics", "Namespaced", ["get"])
    assert resource["responseKind"]["kind"]


@pytest.mark.parametrize("etags", ["{}", '"other", {}', "W/{}", "*"])
def test_who_has_the_document_already_gets_304_and_nothing(target: Target, etags: str):
    etag = target.get("/apis", V2).headers["ETag"]
    answer = target.ask("/apis", ("Accept", V2), ("If-None-Match", etags.format(etag)))

    assert (answer.status, answer.body) == (304, b"")


def test_the_etag_stays_the_same(target: Target):
    assert len({target.get("/apis", V2).headers["ETag"] for _ in range(3)}) == 1


def test_the_older_form_is_served_or_refused_but_never_mistaken(target: Target):
    answer = target.get("/apis", V2BETA1)

    if answer.status == 200:
        assert "v=v2beta1" in answer.headers["Content-Type"]
        assert answer.json["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    else:
        assert_status(answer, 406, "NotAcceptable")


def test_an_unknown_form_falls_through_to_the_next_clause(target: Target):
    answer = target.get("/apis", V2.replace("v=v2", "v=v9") + ",application/json")

    assert (answer.status, answer.json["kind"]) == (200, "APIGroupList")


@pytest.mark.parametrize("path", [f"/apis/{GROUP}/v1", "/apis/foo", "/api", "/nothing", "/apis/foo/v1beta1"])
def test_what_is_not_there_is_not_found(target: Target, path: str):
    assert_status(target.get(path), 404, "NotFound")


def test_the_version_of_the_server_is_all_text(target: Target):
    answer = target.get("/version")

    assert answer.status == 200
    assert {"major", "minor", "gitVersion", "platform"} <= answer.json.keys()
    assert all(isinstance(value, str) for value in answer.json.values())
