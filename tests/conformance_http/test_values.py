"""Values of a metric: the list, its representations, and query parameters."""

import re
from datetime import datetime

import pytest
import yaml

from tests.conformance_http.client import Target
from tests.conformance_http.test_discovery import assert_status

TABLE = "application/json;as=Table;v={};g=meta.k8s.io"
KUBECTL = ",".join((TABLE.format("v1"), TABLE.format("v1beta1"), "application/json"))
QUANTITY = re.compile(r"\d+(\.\d+)?([numkMGTPE]|[KMGTPE]i|[eE]\d+)?")
PROTOBUF = "application/vnd.kubernetes.protobuf"


def values(target: Target, query: str) -> list[str]:
    response = target.get(f"{target.path}?{query}")
    assert response.status == 200
    return [item["value"] for item in response.json["items"]]


@pytest.mark.parametrize("slash", ["", "/"])
def test_metric_is_served_as_a_list_of_values(target: Target, slash: str):
    response = target.get(target.path + slash)

    assert (response.status, response.media) == (200, "application/json")
    body = response.json
    assert (body["kind"], body["apiVersion"]) == ("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1")
    assert body["metadata"] == {}
    assert body["items"]
    for item in body["items"]:
        assert item["metricName"] == target.metric
        assert QUANTITY.fullmatch(item["value"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["timestamp"])
        assert all(isinstance(label, str) for label in item["metricLabels"].values())


def test_timestamp_is_utc_and_recent(own_server: Target):
    response = own_server.get(own_server.path)
    timestamp = datetime.fromisoformat(response.json["items"][0]["timestamp"])
    sent = datetime.strptime(response.headers["Date"], "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=timestamp.tzinfo)

    assert -1 <= (sent - timestamp).total_seconds() <= 60


@pytest.mark.parametrize(
    ("metric", "value"), [("tiny", "1m"), ("whole", "2"), ("mixedcase", "7"), ("MIXEDCASE", "7"), ("MixedCase", "7")]
)
def test_values_are_rounded_up_to_thousandths_and_names_are_case_insensitive(
    own_server: Target, metric: str, value: str
):
    body = own_server.get(f"{own_server.metrics}/{metric}").json

    assert [(item["metricName"], item["value"]) for item in body["items"]] == [(metric, value)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("foo%3Dbar", ["1100m"], id="equals"),
        pytest.param("foo%3D%3Dbar", ["1100m"], id="double equals"),
        pytest.param("foo!%3Dbar", ["2"], id="not equal"),
        pytest.param("foo+in+(bar,baz)", ["1100m", "2"], id="in"),
        pytest.param("foo+notin+(bar)", ["2"], id="notin"),
        pytest.param("foo", ["1100m", "2"], id="exists"),
        pytest.param("!zz,a!%3Db", ["1100m", "2"], id="does not exist and not equal"),
        pytest.param("", ["1100m", "2"], id="empty"),
    ],
)
def test_selector_matches_as_in_kubernetes(own_server: Target, selector: str, expected: list[str]):
    assert sorted(values(own_server, f"labelSelector={selector}")) == sorted(expected)


@pytest.mark.parametrize("selector", ["a%3D%3D%3Db", "a%3Db%3Dc", "(", "a+in", "a+in+()x", "uri%3D/v1/login", "%3Db"])
def test_invalid_selector_is_a_bad_request(target: Target, selector: str):
    assert_status(target.get(f"{target.path}?labelSelector={selector}"), 400, "BadRequest")


def test_selector_without_matches_gives_an_empty_list_or_an_error(target: Target):
    response = target.get(f"{target.path}?labelSelector=foo%3Dnope-nothing-has-this")

    if response.status == 200:
        assert response.json["items"] == []
    else:
        assert_status(response, 503, "ServiceUnavailable")


@pytest.mark.parametrize(
    "query", ["limit=1", "limit=500&continue=", "resourceVersion=abc", "unknown=1", "timeout=5s", "timeout=1m30s"]
)
def test_other_list_parameters_are_ignored(target: Target, query: str):
    plain, with_query = target.get(target.path).json, target.get(f"{target.path}?{query}").json

    assert len(with_query["items"]) == len(plain["items"])
    assert "continue" not in with_query["metadata"]


@pytest.mark.parametrize("query", ["limit=x", "fieldSelector=a%3Db", "timeout=abc", "timeout=-1s"])
def test_invalid_query_parameter_is_a_bad_request(target: Target, query: str):
    assert_status(target.get(f"{target.path}?{query}"), 400, "BadRequest")


@pytest.mark.parametrize("watch", ["true", "1", ""])
def test_watch_is_not_supported(target: Target, watch: str):
    assert_status(target.get(f"{target.path}?watch={watch}"), 405, "MethodNotAllowed")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_than_get_are_not_allowed(target: Target, method: str):
    response = target.request(target.path, method=method)

    assert_status(response, 405, "MethodNotAllowed")


def test_head_is_not_allowed_and_has_no_body(target: Target):
    response = target.request(target.path, method="HEAD")

    assert (response.status, response.body) == (405, b"")


@pytest.mark.parametrize("agent", ["curl/8", "Wget/1", "Mozilla/5.0 (X11)"])
def test_response_to_a_human_user_agent_is_indented_by_default(target: Target, agent: str):
    assert target.request(target.path, ("User-Agent", agent)).body.startswith(b"{\n  ")
    assert b"\n  " not in target.request(f"{target.path}?pretty=false", ("User-Agent", agent)).body
    assert target.get(f"{target.path}?pretty=true").body.startswith(b"{\n  ")


@pytest.mark.parametrize(
    "accept", [f"{PROTOBUF}, */*", f"{PROTOBUF},application/json", "application/json, */*", "*/*", "application/json"]
)
def test_accept_headers_of_real_clients_are_supported(target: Target, accept: str):
    response = target.get(target.path, accept)

    assert response.status == 200
    if response.media == PROTOBUF:
        assert response.body.startswith(b"k8s\x00")
        assert b"ExternalMetricValueList" in response.body
    else:
        assert (response.media, response.json["kind"]) == ("application/json", "ExternalMetricValueList")


def test_accept_header_of_kubectl_gives_a_table_or_the_list(target: Target):
    body = target.get(f"{target.path}?limit=500", KUBECTL).json

    if body["kind"] == "Table":
        assert body["apiVersion"] == "meta.k8s.io/v1"
        assert all(len(row["cells"]) == len(body["columnDefinitions"]) for row in body["rows"])
        assert target.metric in body["rows"][0]["cells"]
    else:
        assert body["kind"] == "ExternalMetricValueList"


def test_table_of_v1beta1_is_served_or_not_acceptable(target: Target):
    response = target.get(target.path, TABLE.format("v1beta1"))

    if response.status == 200:
        assert response.json["apiVersion"] == "meta.k8s.io/v1beta1"
    else:
        assert_status(response, 406, "NotAcceptable")


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "value")]
)
def test_include_object_determines_the_object_of_a_row(own_server: Target, include: str, kind: str | None):
    rows = own_server.get(f"{own_server.path}?includeObject={include}", TABLE.format("v1")).json["rows"]

    row_object = rows[0]["object"]
    assert (row_object is None) if kind is None else (row_object.get("kind", "value") == kind)


def test_yaml_has_the_same_content(target: Target):
    response = target.get(target.path, "application/yaml")

    if response.status == 406:
        assert_status(response, 406, "NotAcceptable")
    else:
        assert response.media == "application/yaml"
        assert yaml.safe_load(response.body)["items"][0]["value"] == target.get(target.path).json["items"][0]["value"]


@pytest.mark.parametrize("accept", ["application/cbor", "text/html", "text/plain", "application/json;as=Bogus;v=v1"])
def test_unsupported_media_type_is_not_acceptable(target: Target, accept: str):
    assert_status(target.get(target.path, accept), 406, "NotAcceptable")


@pytest.mark.parametrize(
    "accept", ["text/html, application/json;q=0.5", "application/json;foo=bar", "application/json;stream=watch"]
)
def test_first_matching_clause_of_accept_is_used(target: Target, accept: str):
    response = target.get(target.path, accept)

    assert (response.status, response.media) == (200, "application/json")


def test_index_lists_all_readable_metrics_of_a_namespace(own_server: Target):
    body = own_server.get(f"{own_server.metrics}/externalmetrics", KUBECTL).json

    names = [row["cells"][0] for row in body["rows"]]
    assert names == sorted(names)
    assert {"my-metric", "whole", "MixedCase"} <= set(names)
    assert not {"negative", "old", "elsewhere"} & set(names)
