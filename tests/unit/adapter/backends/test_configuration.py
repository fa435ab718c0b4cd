"""What can be wrong with backends and with what rules ask of them, whichever kind it is."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapter.backends import loader
from adapter.backends.configuration import BackendEntry, backend_kinds, price_per_day
from adapter.backends.http.settings import Http
from adapter.backends.settings import BackendSettings, Parameters, Price
from adapter.config.model import decode
from adapter.errors import ConfigInvalid
from adapter.rules.rule import Rule

ROOT = Path(__file__).parents[4]
HTTP = {"http": {"url": "http://x"}}


def told(backends: dict[str, Any], *rules: dict[str, Any]) -> tuple[str, ...]:
    try:
        decode({"backends": backends, "rules": [{"name": f"m{number}", **rule} for number, rule in enumerate(rules)]})
    except ConfigInvalid as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        pytest.param({"pth": "/"}, ".pth: unknown key; did you mean 'path'?", id="unknown"),
        pytest.param({"path": 5}, ".path: expected `str`, got `int`", id="wrong type"),
        pytest.param({"format": "yaml"}, ".format: invalid enum value 'yaml'", id="wrong word"),
        pytest.param(
            {"format": "xml"}, ".value: is needed with xml: a document of elements is no number", id="missing"
        ),
        pytest.param({"path": "/../x"}, ".path: must not lead out of the backend's url", id="out"),
        pytest.param({"path": "/%2e%2e/x"}, ".path: must not lead out of the backend's url", id="out in disguise"),
        pytest.param(
            {"path": "x"}, ".path: must begin with / and hold no spaces or characters that need encoding", id="no slash"
        ),
        pytest.param(
            {"value": "a["},
            ".value: cannot be understood: Invalid jmespath expression: Incomplete expression:",
            id="what only the library sees",
        ),
        pytest.param(
            {"format": "text", "value": "("},
            ".value: cannot be understood: missing ) at position 1",
            id="an expression",
        ),
    ],
)
def test_a_parameter_that_makes_no_sense_is_told_when_the_file_is_read(parameters: dict[str, Any], problem: str):
    assert told({"it": HTTP}, {"backend": "it", "parameters": parameters}) == (f"rules[0].parameters{problem}",)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param({"backend": "it", "query": "x"}, "query: http is asked with parameters", id="a text"),
        pytest.param(
            {"backend": "main", "parameters": {"a": 1}},
            "parameters: prometheus is asked with a query in PromQL",
            id="parts",
        ),
    ],
)
def test_what_is_asked_is_what_the_kind_understands(rule: dict[str, Any], problem: str):
    assert told({"it": HTTP, "main": {"prometheus": {"url": "http://p"}}}, rule) == (f"rules[0].{problem}",)


def test_a_kind_whose_rules_write_the_labels_is_opened_to_named_namespaces_only():
    assert told({"it": {**HTTP, "externalMetrics": {"namespaces": ["shop"]}}}) == ()
    assert told({"it": {**HTTP, "externalMetrics": {}}}) == (
        "backends.it.externalMetrics.namespaces: is needed: with labels of its own a rule sees everything",
    )


def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Http, "library", ("jmespath", "no_such_thing", "no.such.thing"))
    why = "needs no_such_thing, no.such.thing: pip install 'steadyscale[http]'"
    assert told({"orders": HTTP}) == (f"backends.orders.http: {why}",)


def test_a_file_is_read_and_its_rules_are_checked_where_no_library_is_installed():
    program = """
import sys
from adapter.config.model import decode
from adapter.backends.configuration import backend_kinds
libraries = {"aiobotocore", "botocore", "azure", "google", "datadog_api_client", "aiokafka", "redis", "nats", "asyncpg",
             "jmespath", "regex"}
decode({"rules": [{"name": "x", "static": [{"value": 1}]}]})
print(sorted(libraries & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def kinds() -> Iterator[type[BackendSettings]]:
    for field in backend_kinds():
        (kind,) = (each for each in BackendEntry.__annotations__[field].__args__ if each is not type(None))
        yield kind


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in kinds()])
def test_every_kind_says_what_the_service_needs_to_know(kind: type[BackendSettings]):
    assert issubclass(kind, BackendSettings)
    assert kind.asked_with is not None or kind.language
    made = loader.imported(kind.opened_by)
    assert {"fetch", "ping", "aclose"} <= set(dir(made))
    assert bool(kind.library) == bool(kind.extra)
    extras = (ROOT / "pyproject.toml").read_text()
    assert not kind.extra or f"\n{kind.extra} = [" in extras
    assert not kind.extra or f"{kind.extra}," in extras or f",{kind.extra}]" in extras


class Metered(Parameters, frozen=True):
    count: int = 1


class Charging(Http, frozen=True):
    asked_with = Metered

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        assert isinstance(parameters, Metered)
        calls = parameters.count * timedelta(days=1) / interval
        return Price(calls * 0.01 / 1000, f"{calls:g} at $0.01 per 1,000")


def test_a_price_is_worked_out_of_settings_parameters_and_interval():
    entry = BackendEntry(http=Charging(url="http://x"))
    rule = Rule("m", backend="it", parameters={"count": 2}, interval=timedelta(minutes=1))
    assert price_per_day(rule, entry) == Price(0.0288, "2880 at $0.01 per 1,000")
    assert price_per_day(rule, None) is None
    assert price_per_day(Rule("m", backend="it", query="x"), entry) is None
    free = Rule("m", backend="it", parameters={"path": "/"})
    assert price_per_day(free, BackendEntry(http=Http(url="http://x"))) is None
