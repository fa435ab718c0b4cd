"""Reading a metric: the list, its forms, and what a caller may add to the path."""

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
    answer = target.get(f"{target.path}?{query}")
    assert answer.status == 200
    return [item["value"] for item in answer.json["items"]]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_metric_is_a_list_of_values(target: Target, slash: str):
    answer = target.get(target.path + slash)

    assert (answer.status, answer.media) == (200, "application/json")
    body = answer.json
    assert (body["kind"], body["apiVersion"]) == ("ExternalMetricValueList", "external.metrics.k8s.io/v1beta1")
    assert body["metadata"] == {}
    assert body["items"]
    for item in body["items"]:
        assert item["metricName"] == target.metric
        assert QUANTITY.fullmatch(item["value"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["timestamp"])
        assert all(isinstance(label, str) for label in item["metricLabels"].values())


def test_the_timestamp_is_utc_and_of_this_minute(rehearsing: Target):
    answer = rehearsing.get(rehearsing.path)
    taken = datetime.fromisoformat(answer.json["items"][0]["timestamp"])
    sent = datetime.strptime(answer.headers["Date"], "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=taken.tzinfo)

    assert -1 <= (sent - taken).total_seconds() <= 60


@pytest.mark.parametrize(
    ("metric", "value"), [("tiny", "1m"), ("whole", "2"), ("mixedcase", "7"), ("MIXEDCASE", "7"), ("MixedCase", "7")]
)
def test_numbers_are_rounded_up_to_thousandths_and_names_found_in_any_case(rehearsing: Target, metric: str, value: str):
    body = rehearsing.get(f"{rehearsing.metrics}/{metric}").json

    assert [(item["metricName"], item["value"]) for item in body["items"]] == [(metric, value)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("foo%3Dbar", ["1100m"], id="equals"),
        pytest.param("foo%3D%3Dbar", ["1100m"], id="equals twice"),
        pytest.param("foo!%3Dbar", ["2"], id="differs"),
        pytest.param("foo+in+(bar,baz)", ["1100m", "2"], id="one of"),
        pytest.param("foo+notin+(bar)", ["2"], id="none of"),
        pytest.param("foo", ["1100m", "2"], id="has it"),
        pytest.param("!zz,a!%3Db", ["1100m", "2"], id="has it not, and differs where absent"),
        pytest.param("", ["1100m", "2"], id="empty"),
    ],
)
def test_selectors_mean_what_kubernetes_means(rehearsing: Target, selector: str, expected: list[str]):
    assert sorted(values(rehearsing, f"labelSelector={selector}")) == sorted(expected)


@pytest.mark.parametrize("selector", ["a%3D%3D%3Db", "a%3Db%3Dc", "(", "a+in", "a+in+()x", "uri%3D/v1/login", "%3Db"])
def test_a_selector_that_does_not_parse_is_refused(target: Target, selector: str):
    assert_status(target.get(f"{target.path}?labelSelector={selector}"), 400, "BadRequest")


def test_a_selector_that_matches_nothing_is_an_empty_list_or_an_error_but_never_a_number(target: Target):
    answer = target.get(f"{target.path}?labelSelector=foo%3Dnope-nothing-has-this")

    if answer.status == 200:
        assert answer.json["items"] == []
    else:
        assert_status(answer, 503, "ServiceUnavailable")


@pytest.mark.parametrize(
    "query", ["limit=1", "limit=500&continue=", "resourceVersion=abc", "unknown=1", "timeout=5s", "timeout=1m30s"]
)
def test_what_a_list_may_also_be_asked_changes_nothing(target: Target, query: str):
    plain, asked = target.get(target.path).json, target.get(f"{target.path}?{query}").json

    assert len(asked["items"]) == len(plain["items"])
    assert "continue" not in asked["metadata"]


@pytest.mark.parametrize("query", ["limit=x", "fieldSelector=a%3Db", "timeout=abc", "timeout=-1s"])
def test_a_parameter_that_makes_no_sense_is_refused(target: Target, query: str):
    assert_status(target.get(f"{target.path}?{query}"), 400, "BadRequest")


@pytest.mark.parametrize("watch", ["true", "1", ""])
def test_watching_is_not_possible(target: Target, watch: str):
    assert_status(target.get(f"{target.path}?watch={watch}"), 405, "MethodNotAllowed")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_reading_is_all_there_is(target: Target, method: str):
    answer = target.ask(target.path, method=method)

    assert_status(answer, 405, "MethodNotAllowed")


def test_head_is_refused_too_and_has_no_body(target: Target):
    answer = target.ask(target.path, method="HEAD")

    assert (answer.status, answer.body) == (405, b"")


@pytest.mark.parametrize("agent", ["curl/8", "Wget/1", "Mozilla/5.0 (X11)"])
def test_people_get_it_indented_unless_they_say_no(target: Target, agent: str):
    assert target.ask(target.path, ("User-Agent", agent)).body.startswith(b"{\n  ")
    assert b"\n  " not in target.ask(f"{target.path}?pretty=false", ("User-Agent", agent)).body
    assert target.get(f"{target.path}?pretty=true").body.startswith(b"{\n  ")


@pytest.mark.parametrize(
    "accept", [f"{PROTOBUF}, */*", f"{PROTOBUF},application/json", "application/json, */*", "*/*", "application/json"]
)
def test_every_real_client_gets_a_form_it_can_read(target: Target, accept: str):
    answer = target.get(target.path, accept)

    assert answer.status == 200
    if answer.media == PROTOBUF:
        assert answer.body.startswith(b"k8s\x00")
        assert b"ExternalMetricValueList" in answer.body
    else:
        assert (answer.media, answer.json["kind"]) == ("application/json", "ExternalMetricValueList")


def test_kubectl_gets_a_table_or_the_list(target: Target):
    body = target.get(f"{target.path}?limit=500", KUBECTL).json

    if body["kind"] == "Table":
        assert body["apiVersion"] == "meta.k8s.io/v1"
        assert all(len(row["cells"]) == len(body["columnDefinitions"]) for row in body["rows"])
        assert target.metric in body["rows"][0]["cells"]
    else:
        assert body["kind"] == "ExternalMetricValueList"


def test_an_old_table_has_the_old_version_or_is_refused(target: Target):
    answer = target.get(target.path, TABLE.format("v1beta1"))

    if answer.status == 200:
        assert answer.json["apiVersion"] == "meta.k8s.io/v1beta1"
    else:
        assert_status(answer, 406, "NotAcceptable")


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "value")]
)
def test_a_tables_rows_hold_what_was_asked_for(rehearsing: Target, include: str, kind: str | None):
    rows = rehearsing.get(f"{rehearsing.path}?includeObject={include}", TABLE.format("v1")).json["rows"]

    held = rows[0]["object"]
    assert (held is None) if kind is None else (held.get("kind", "value") == kind)


def test_yaml_is_the_same_document(target: Target):
    answer = target.get(target.path, "application/yaml")

    if answer.status == 406:
        assert_status(answer, 406, "NotAcceptable")
    else:
        assert answer.media == "application/yaml"
        assert yaml.safe_load(answer.body)["items"][0]["value"] == target.get(target.path).json["items"][0]["value"]


@pytest.mark.parametrize("accept", ["application/cbor", "text/html", "text/plain", "application/json;as=Bogus;v=v1"])
def test_what_nobody_speaks_is_not_acceptable(target: Target, accept: str):
    assert_status(target.get(target.path, accept), 406, "NotAcceptable")


@pytest.mark.parametrize(
    "accept", ["text/html, application/json;q=0.5", "application/json;foo=bar", "application/json;stream=watch"]
)
def test_the_first_clause_that_fits_wins(target: Target, accept: str):
    answer = target.get(target.path, accept)

    assert (answer.status, answer.media) == (200, "application/json")


def test_kubectl_can_list_all_metrics_of_a_namespace(rehearsing: Target):
    body = rehearsing.get(f"{rehearsing.metrics}/externalmetrics", KUBECTL).json

    names = [row["cells"][0] for row in body["rows"]]
    assert names == sorted(names)
    assert {"my-metric", "whole", "MixedCase"} <= set(names)
    assert not {"negative", "old", "elsewhere"} & set(names)
