"""The debugging endpoints of the loopback server, with TLS, tokens and reviews."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.loopback import Loopback, loopback


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        yield running


def get(service: Loopback, path: str, *, authenticated: bool = True) -> tuple[int, Any]:
    headers = {"Authorization": "Bearer good"} if authenticated else {}
    request = urllib.request.Request(service.url + path, headers=headers)  # noqa: S310 - https on loopback
    tls = ssl.create_default_context(cafile=str(service.ca))
    try:
        with urllib.request.urlopen(request, context=tls) as response:  # noqa: S310
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_trace_of_a_successful_read(service: Loopback):
    code, view = get(service, "/debug/metrics/default/my-metric?labelSelector=foo%3Dbar")

    assert code == 200
    assert view["request"] == {"namespace": "default", "metric": "my-metric", "selector": "foo=bar"}
    assert (view["rule"]["matched"], view["rule"]["name"], view["rule"]["origin"]) == (
        True,
        "my-metric",
        "configuration",
    )
    assert view["query"]["backend"] == "static"
    assert (view["series"]["total"], view["series"]["matched"], view["series"]["omitted"]) == (2, 1, 0)
    matched, other = view["series"]["items"]
    assert (matched["labels"], matched["value"], matched["matched"]) == ({"foo": "bar"}, "1.1", True)
    assert (other["matched"], other["reason"]) == (False, "not foo=bar: foo is 'baz'")
    assert (view["aggregation"], view["value"], view["error"]) == ("sum", "1100m", None)
    assert view["hpa"] == {"code": 200, "items": 1, "sum": "1100m"}
    assert view["history"]["failures"] == 0


def test_trace_of_a_failed_read_has_the_error_and_the_condition_of_the_hpa(service: Loopback):
    _, view = get(service, "/debug/metrics/default/my-metric?labelSelector=foo%3Dnope")
    message = "metric 'my-metric': static: no series: no series matches foo=nope"

    assert view["error"] == {"class": "no series", "message": message, "detail": ""}
    assert (view["value"], view["series"]["matched"]) == (None, 0)
    assert view["hpa"]["code"] == 503
    assert view["hpa"]["condition"] == (
        "unable to get external metric default/my-metric/&LabelSelector{MatchLabels:map[string]string{foo: nope,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}: "
        f"unable to fetch metrics from external metrics API: {message}"
    )
    assert view["history"]["firstFailureTime"]


def test_trace_without_a_rule_names_similar_metrics(service: Loopback):
    _, view = get(service, "/debug/metrics/default/my-metrik")
    assert view["rule"] == {"matched": False, "reason": "no rule has the name 'my-metrik'", "similar": ["my-metric"]}
    assert (view["query"], view["hpa"]["code"]) == (None, 404)

    _, view = get(service, "/debug/metrics/default/elsewhere")
    assert view["rule"]["reason"] == "'elsewhere' is defined only in the namespaces other"


def test_trace_of_a_rejected_query_has_the_error_of_the_backend(service: Loopback):
    _, view = get(service, "/debug/metrics/default/refused")

    assert view["fetch"]["error"] == "query rejected"
    assert view["error"]["class"] == "refused"


def test_rules_are_listed_with_their_health(service: Loopback):
    get(service, "/debug/metrics/default/refused")
    get(service, "/debug/metrics/default/whole")
    code, view = get(service, "/debug/rules")
    health = {rule["name"]: rule["health"] for rule in view["rules"]}

    assert code == 200
    assert (health["refused"], health["whole"], health["tiny"]) == ("failing", "ok", "idle")
    refused = next(rule for rule in view["rules"] if rule["name"] == "refused")
    assert refused["message"] == "metric 'refused': static: refused: query rejected"
    assert view["reload"] == {"ok": True, "problems": []}


def test_reads_of_metrics_without_a_rule_are_listed(service: Loopback):
    for _ in range(2):
        get(service, "/debug/metrics/default/hwole")
    _, view = get(service, "/debug/rules")
    (unknown,) = [read for read in view["unknownMetrics"] if read["metric"] == "hwole"]

    assert (unknown["namespace"], unknown["similar"], unknown["reads"]) == ("default", ["whole"], 2)
    assert unknown["firstFailureTime"]


def test_backends_are_listed_with_their_reachability(service: Loopback):
    assert get(service, "/debug/backends") == (200, {"backends": [{"name": "static", "reachable": True}]})


@pytest.mark.parametrize("path", ["/debug/rules", "/debug/backends", "/debug/metrics/default/my-metric"])
def test_debugging_endpoints_are_forbidden_for_anonymous_callers(service: Loopback, path: str):
    code, view = get(service, path, authenticated=False)

    assert (code, view["reason"]) == (403, "Forbidden")
    assert view["message"] == f'forbidden: User "system:anonymous" cannot get path "{path}"'


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/debug/metrics//x", 404),
        ("/debug/metrics/default/a/b", 404),
        ("/debug/nothing", 404),
        ("/debug/metrics/default/my-metric?labelSelector=a%3Db%3Dc", 400),
    ],
)
def test_invalid_path_or_selector_is_an_error(service: Loopback, path: str, code: int):
    assert get(service, path)[0] == code
