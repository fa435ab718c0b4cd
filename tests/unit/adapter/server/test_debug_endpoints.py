"""The debugging endpoints through the real server: TLS, tokens, reviews and all."""

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


def ask(service: Loopback, path: str, *, known: bool = True) -> tuple[int, Any]:
    headers = {"Authorization": "Bearer good"} if known else {}
    request = urllib.request.Request(service.url + path, headers=headers)  # noqa: S310 - our own server
    tls = ssl.create_default_context(cafile=str(service.ca))
    try:
        with urllib.request.urlopen(request, context=tls) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_the_whole_way_to_a_number(service: Loopback):
    code, told = ask(service, "/debug/metrics/default/my-metric?labelSelector=foo%3Dbar")

    assert code == 200
    assert told["asked"] == {"namespace": "default", "metric": "my-metric", "selector": "foo=bar"}
    assert (told["rule"]["matched"], told["rule"]["name"], told["rule"]["origin"]) == (
        True,
        "my-metric",
        "configuration",
    )
    assert told["query"]["backend"] == "static"
    assert (told["series"]["found"], told["series"]["matched"], told["series"]["leftOff"]) == (2, 1, 0)
    matched, other = told["series"]["items"]
    assert (matched["labels"], matched["value"], matched["matched"]) == ({"foo": "bar"}, "1.1", True)
    assert (other["matched"], other["why"]) == (False, "not foo=bar: foo is 'baz'")
    assert (told["aggregation"], told["value"], told["error"]) == ("sum", "1100m", None)
    assert told["hpa"] == {"code": 200, "items": 1, "sum": "1100m"}
    assert told["history"]["failures"] == 0


def test_a_number_that_is_missing_says_why_and_what_an_hpa_makes_of_it(service: Loopback):
    _, told = ask(service, "/debug/metrics/default/my-metric?labelSelector=foo%3Dnope")
    message = "metric 'my-metric': static: no series: nothing matches foo=nope"

    assert told["error"] == {"class": "no series", "message": message, "detail": ""}
    assert (told["value"], told["series"]["matched"]) == (None, 0)
    assert told["hpa"]["code"] == 503
    assert told["hpa"]["condition"] == (
        "unable to get external metric default/my-metric/&LabelSelector{MatchLabels:map[string]string{foo: nope,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}: "
        f"unable to fetch metrics from external metrics API: {message}"
    )
    assert told["history"]["firstFailureTime"]


def test_a_metric_without_a_rule_says_which_are_near(service: Loopback):
    _, told = ask(service, "/debug/metrics/default/my-metrik")
    assert told["rule"] == {"matched": False, "why": "no rule has the name 'my-metrik'", "nearest": ["my-metric"]}
    assert (told["query"], told["hpa"]["code"]) == (None, 404)

    _, told = ask(service, "/debug/metrics/default/elsewhere")
    assert told["rule"]["why"] == "'elsewhere' is defined, but only in: other"


def test_a_backend_that_refuses_is_told_as_it_is(service: Loopback):
    _, told = ask(service, "/debug/metrics/default/refused")

    assert told["fetch"]["failed"] == "it said no"
    assert told["error"]["class"] == "refused"


def test_all_rules_with_their_health(service: Loopback):
    ask(service, "/debug/metrics/default/refused")
    ask(service, "/debug/metrics/default/whole")
    code, told = ask(service, "/debug/rules")
    health = {rule["name"]: rule["health"] for rule in told["rules"]}

    assert code == 200
    assert (health["refused"], health["whole"], health["tiny"]) == ("failing", "ok", "idle")
    refused = next(rule for rule in told["rules"] if rule["name"] == "refused")
    assert refused["message"] == "metric 'refused': static: refused: it said no"
    assert told["reload"] == {"ok": True, "problems": []}


def test_names_that_are_asked_for_and_that_no_rule_has_are_listed(service: Loopback):
    for _ in range(2):
        ask(service, "/debug/metrics/default/hwole")
    _, told = ask(service, "/debug/rules")
    (stray,) = [each for each in told["strays"] if each["metric"] == "hwole"]

    assert (stray["namespace"], stray["nearest"], stray["reads"]) == ("default", ["whole"], 2)
    assert stray["firstFailureTime"]


def test_all_backends_are_asked_whether_they_are_there(service: Loopback):
    assert ask(service, "/debug/backends") == (200, {"backends": [{"name": "static", "answers": True}]})


@pytest.mark.parametrize("path", ["/debug/rules", "/debug/backends", "/debug/metrics/default/my-metric"])
def test_who_may_not_read_the_path_learns_nothing(service: Loopback, path: str):
    code, told = ask(service, path, known=False)

    assert (code, told["reason"]) == (403, "Forbidden")
    assert told["message"] == f'forbidden: User "system:anonymous" cannot get path "{path}"'


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/debug/metrics/default", 404),
        ("/debug/metrics//x", 404),
        ("/debug/metrics/default/a/b", 404),
        ("/debug/nothing", 404),
        ("/debug/metrics/default/my-metric?labelSelector=a%3Db%3Dc", 400),
    ],
)
def test_what_is_not_there_or_makes_no_sense_is_said_so(service: Loopback, path: str, code: int):
    assert ask(service, path)[0] == code
