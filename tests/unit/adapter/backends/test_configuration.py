"""Validation of backends and of rules' parameters, for all backend kinds."""

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
from adapter.config.loading import decode
from adapter.decoding.problem import ConfigInvalid
from adapter.rules.rule import Rule

ROOT = Path(__file__).parents[4]
HTTP = {"http": {"url": "http://x"}}
DOTS = ".path: must not contain . or .. or an encoded %, \\ or control character"


def messages(backends: dict[str, Any], *rules: dict[str, Any]) -> tuple[str, ...]:
    try:
        decode({"backends": backends, "rules": [{"name": f"m{number}", **rule} for number, rule in enumerate(rules)]})
    except ConfigInvalid as error:
        return error.messages
    return ()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        pytest.param({"pth": "/"}, ".pth: unknown key; did you mean 'path'?", id="unknown key"),
        pytest.param({"path": 5}, ".path: expected `str`, got `int`", id="wrong type"),
        pytest.param(
            {"format": "yaml"}, ".format: invalid enum value 'yaml'; one of json, xml, text", id="unknown enum value"
        ),
        pytest.param({"format": "xml"}, ".value: required with format xml", id="missing key"),
        pytest.param({"path": "/../x"}, DOTS, id="path outside of the URL"),
        pytest.param({"path": "/%2e%2e/x"}, DOTS, id="encoded path outside of the URL"),
        pytest.param(
            {"path": "x"},
            ".path: must start with / and contain only letters, digits and -._~!$&'()*+,=:@, other characters as %XX",
            id="path without slash",
        ),
        pytest.param(
            {"value": "a["},
            ".value: invalid expression: Invalid jmespath expression: Incomplete expression:",
            id="error found by the library",
        ),
        pytest.param(
            {"format": "text", "value": "("},
            ".value: invalid expression: missing ): (",
            id="invalid regular expression",
        ),
    ],
)
def test_invalid_parameter_is_reported_when_the_configuration_is_loaded(parameters: dict[str, Any], problem: str):
    assert messages({"it": HTTP}, {"backend": "it", "parameters": parameters}) == (f"rules[0].parameters{problem}",)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param({"backend": "it", "query": "x"}, "query: not supported by http; use parameters", id="query"),
        pytest.param(
            {"backend": "main", "parameters": {"a": 1}},
            "parameters: not supported by prometheus; use query, in PromQL",
            id="parameters",
        ),
    ],
)
def test_rule_with_query_or_parameters_that_the_kind_does_not_support_is_reported(rule: dict[str, Any], problem: str):
    assert messages({"it": HTTP, "main": {"prometheus": {"url": "http://p"}}}, rule) == (f"rules[0].{problem}",)


def test_kind_whose_rules_control_labels_needs_a_list_of_namespaces_for_external_metrics():
    assert messages({"it": {**HTTP, "externalMetrics": {"namespaces": ["shop"]}}}) == ()
    message = "required: with http no label can restrict an object to its own namespace's series"
    assert messages({"it": {**HTTP, "externalMetrics": {}}}) == (f"backends.it.externalMetrics.namespaces: {message}",)


def test_missing_module_is_reported_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Http, "required_modules", ("jmespath", "no_such_thing", "no.such.thing"))
    message = "needs no_such_thing, no.such.thing: pip install 'steadyscale[http]'"
    assert messages({"orders": HTTP}) == (f"backends.orders.http: {message}",)


def test_configuration_is_decoded_without_importing_client_libraries():
    program = """
import sys
from adapter.config.loading import decode
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
def test_every_kind_declares_its_class_parameters_and_extra(kind: type[BackendSettings]):
    assert issubclass(kind, BackendSettings)
    assert kind.parameters_type is not None or kind.query_language
    backend = loader.import_object(kind.backend_class)
    assert {"fetch", "ping", "aclose"} <= set(dir(backend))
    assert bool(kind.required_modules) == bool(kind.extra)
    extras = (ROOT / "pyproject.toml").read_text()
    assert not kind.extra or f"\n{kind.extra} = [" in extras
    assert not kind.extra or f"{kind.extra}," in extras or f",{kind.extra}]" in extras


class Metered(Parameters, frozen=True):
    count: int = 1


class Charging(Http, frozen=True):
    parameters_type = Metered

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        assert isinstance(parameters, Metered)
        calls = parameters.count * timedelta(days=1) / interval
        return Price(calls * 0.01 / 1000, f"{calls:g} at $0.01 per 1,000")


def test_price_is_calculated_from_settings_parameters_and_interval():
    entry = BackendEntry(http=Charging(url="http://x"))
    rule = Rule("m", backend="it", parameters={"count": 2}, interval=timedelta(minutes=1))
    assert price_per_day(rule, entry) == Price(0.0288, "2880 at $0.01 per 1,000")
    assert price_per_day(rule, None) is None
    assert price_per_day(Rule("m", backend="it", query="x"), entry) is None
    free = Rule("m", backend="it", parameters={"path": "/"})
    assert price_per_day(free, BackendEntry(http=Http(url="http://x"))) is None
