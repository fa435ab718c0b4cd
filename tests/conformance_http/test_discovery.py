"""The discovery documents that kubectl, the HPA's client and the API server read first."""

import re

import pytest

from tests.conformance_http.client import Response, Target

GROUP = "external.metrics.k8s.io"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = V2.replace("v=v2", "v=v2beta1")


def assert_status(response: Response, code: int, reason: str) -> None:
    assert response.media == "application/json"
    body = response.json
    assert (response.status, body["kind"], body["code"], body["reason"]) == (code, "Status", code, reason)
    assert body["status"] == "Failure"
    assert body["message"]
    assert "Retry-After" not in response.headers


@pytest.mark.parametrize("slash", ["", "/"])
def test_version_lists_one_namespaced_resource_with_get(target: Target, slash: str):
    response = target.get(f"/apis/{GROUP}/v1beta1{slash}")

    assert response.status == 200
    assert response.media == "application/json"
    assert response.json["kind"] == "APIResourceList"
    assert response.json["groupVersion"] == f"{GROUP}/v1beta1"
    assert [(r["namespaced"], r["verbs"]) for r in response.json["resources"]] == [(True, ["get"])]


@pytest.mark.parametrize("slash", ["", "/"])
def test_group_list_names_the_preferred_version(target: Target, slash: str):
    response = target.get(f"/apis{slash}")

    assert response.json["kind"] == "APIGroupList"
    served = {"groupVersion": f"{GROUP}/v1beta1", "version": "v1beta1"}
    group = next(item for item in response.json["groups"] if item["name"] == GROUP)
    assert (group["preferredVersion"], group["versions"]) == (served, [served])


@pytest.mark.parametrize("slash", ["", "/"])
def test_group_document(target: Target, slash: str):
    response = target.get(f"/apis/{GROUP}{slash}")

    assert (response.status, response.json["kind"], response.json["name"]) == (200, "APIGroup", GROUP)


def test_aggregated_discovery_has_its_kind_in_the_content_type(target: Target):
    response = target.get("/apis", V2)

    parameters = {part.strip() for part in response.headers["Content-Type"].split(";")}
    assert parameters == {"application/json", "g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"}
    assert response.headers["Vary"] == "Accept"
    assert re.fullmatch(r'"[^"]+"', response.headers["ETag"])


def test_aggregated_discovery_contains_the_resource_and_its_kind(target: Target):
    body = target.get("/apis", V2).json

    assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    group = next(item for item in body["items"] if item["metadata"]["name"] == GROUP)
    resource = group["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["verbs"]) == ("externalmetrics", "Namespaced", ["get"])
    assert resource["responseKind"]["kind"]


@pytest.mark.parametrize("etags", ["{}", '"other", {}', "W/{}", "*"])
def test_matching_etag_gives_304_without_a_body(target: Target, etags: str):
    etag = target.get("/apis", V2).headers["ETag"]
    response = target.request("/apis", ("Accept", V2), ("If-None-Match", etags.format(etag)))

    assert (response.status, response.body) == (304, b"")


def test_etag_is_stable(target: Target):
    assert len({target.get("/apis", V2).headers["ETag"] for _ in range(3)}) == 1


def test_aggregated_discovery_v2beta1_is_served_or_not_acceptable(target: Target):
    response = target.get("/apis", V2BETA1)

    if response.status == 200:
        assert "v=v2beta1" in response.headers["Content-Type"]
        assert response.json["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    else:
        assert_status(response, 406, "NotAcceptable")


def test_unknown_version_falls_back_to_the_next_clause(target: Target):
    response = target.get("/apis", V2.replace("v=v2", "v=v9") + ",application/json")

    assert (response.status, response.json["kind"]) == (200, "APIGroupList")


@pytest.mark.parametrize("path", [f"/apis/{GROUP}/v1", "/apis/foo", "/api", "/nothing", "/apis/foo/v1beta1"])
def test_unknown_path_is_not_found(target: Target, path: str):
    assert_status(target.get(path), 404, "NotFound")


def test_version_info_has_only_strings(target: Target):
    response = target.get("/version")

    assert response.status == 200
    assert {"major", "minor", "gitVersion", "platform"} <= response.json.keys()
    assert all(isinstance(value, str) for value in response.json.values())
