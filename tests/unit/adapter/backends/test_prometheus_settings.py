"""Validation of the settings of a Prometheus backend."""

from pathlib import Path
from typing import Any

import pytest

from adapter.backends.prometheus.settings import Prometheus
from adapter.config.loading import decode
from adapter.decoding.problem import ConfigInvalid

ROOT = Path(__file__).parents[4]


def messages(settings: dict[str, Any], **more: Any) -> tuple[str, ...]:
    try:
        decode({"backends": {"main": {"prometheus": {"url": "http://prometheus:9090", **settings}}}, **more})
    except ConfigInvalid as error:
        return error.messages
    return ()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"url": "prometheus:9090"}, "url: not an http or https URL with a host", id="no scheme"),
        pytest.param({"url": "http://x:port"}, "url: not an http or https URL with a host", id="no port"),
        pytest.param(
            {"url": "http://a:b@x"},
            "url: must not contain credentials",
            id="URL with password",
        ),
        pytest.param({"url": "http://x/?a=b"}, "url: must not contain a query or a fragment", id="URL with query"),
        pytest.param(
            {"proxyUrl": "x"}, "proxyUrl: not an http or https URL with a host", id="proxy URL without scheme"
        ),
        pytest.param(
            {"proxyUrl": "http://a:b@x"}, "proxyUrl: must not contain credentials", id="proxy URL with password"
        ),
        pytest.param(
            {"bearerTokenFile": "t", "basicAuth": {"username": "u", "passwordFile": "p"}},
            "basicAuth: cannot be combined with bearerTokenFile",
            id="bearer token and basic auth",
        ),
        pytest.param({"tls": {"keyFile": "k"}}, "tls.certFile: required with keyFile", id="key without certificate"),
        pytest.param({"maxConnections": 0}, "maxConnections: must be at least 1, is 0", id="no connections"),
        pytest.param({"headers": {"a b": "c"}}, "headers.a b: not a valid HTTP header", id="header name with space"),
        pytest.param(
            {"headers": {"a": "c\r\nd: e"}}, "headers.a: not a valid HTTP header", id="header value with line break"
        ),
        pytest.param(
            {"headers": {"authorization": "Bearer x"}},
            "headers.authorization: must not contain credentials; use bearerTokenFile or basicAuth",
            id="authorization header",
        ),
        pytest.param(
            {"maxConections": 1}, "maxConections: unknown key; did you mean 'maxConnections'?", id="misspelt key"
        ),
    ],
)
def test_invalid_setting_is_reported_with_its_path(settings: dict[str, Any], problem: str) -> None:
    assert messages(settings) == (f"backends.main.prometheus.{problem}",)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        pytest.param(
            {"backend": "other"}, "backend: no Prometheus backend 'other' under backends", id="unknown backend"
        ),
        pytest.param({"relistInterval": "0"}, "relistInterval: must be greater than 0, is 0s", id="interval of zero"),
        pytest.param({"maxage": "1m"}, "maxage: unknown key; did you mean 'maxAge'?", id="misspelt key"),
    ],
)
def test_invalid_prometheus_adapter_entry_is_reported_with_its_path(entry: dict[str, str], problem: str) -> None:
    assert messages({}, prometheusAdapter=[{"file": "f", "backend": "main", **entry}]) == (
        f"prometheusAdapter[0].{problem}",
    )


def test_prometheus_adapter_file_that_is_listed_twice_is_reported() -> None:
    files = [{"file": "f", "backend": "main"}] * 2
    assert messages({}, prometheusAdapter=files) == ("prometheusAdapter[1].file: is listed twice",)


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "prometheus.md").read_text()
    assert [key for key in Prometheus.__struct_encode_fields__ if f"| `{key}` |" not in text] == []
