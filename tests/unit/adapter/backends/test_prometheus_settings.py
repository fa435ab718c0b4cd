"""What can be wrong with the settings of a Prometheus, each problem with its path."""

from pathlib import Path
from typing import Any

import pytest

from adapter.backends.prometheus.settings import Prometheus
from adapter.config.model import decode
from adapter.errors import ConfigInvalid

ROOT = Path(__file__).parents[4]


def told(settings: dict[str, Any], **more: Any) -> tuple[str, ...]:
    try:
        decode({"backends": {"main": {"prometheus": {"url": "http://prometheus:9090", **settings}}}, **more})
    except ConfigInvalid as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"url": "prometheus:9090"}, "url: not an http or https URL with a host", id="no scheme"),
        pytest.param({"url": "http://x:port"}, "url: not an http or https URL with a host", id="no port"),
        pytest.param(
            {"url": "http://a:b@x"},
            "url: holds a password; use basic, so that it is in a file of its own",
            id="a password",
        ),
        pytest.param({"url": "http://x/?a=b"}, "url: holds a query or a fragment; use parameters", id="a query"),
        pytest.param({"proxyUrl": "x"}, "proxyUrl: not an http or https URL with a host", id="a proxy"),
        pytest.param({"proxyUrl": "http://a:b@x"}, "proxyUrl: must not hold a password", id="a proxy's password"),
        pytest.param(
            {"bearerTokenFile": "t", "basic": {"username": "u", "passwordFile": "p"}},
            "basic: excludes bearerTokenFile",
            id="two ways to say who we are",
        ),
        pytest.param({"tls": {"keyFile": "k"}}, "tls.certFile: is needed with keyFile", id="a key alone"),
        pytest.param({"connections": 0}, "connections: must be at least 1, is 0", id="no connections"),
        pytest.param({"headers": {"a b": "c"}}, "headers.a b: cannot be sent as a header", id="a header's name"),
        pytest.param({"headers": {"a": "c\r\nd: e"}}, "headers.a: cannot be sent as a header", id="two headers in one"),
        pytest.param(
            {"headers": {"authorization": "Bearer x"}},
            "headers.authorization: use bearerTokenFile or basic, so that the secret is in a file of its own",
            id="a secret among the headers",
        ),
        pytest.param({"conections": 1}, "conections: unknown key; did you mean 'connections'?", id="a slip"),
    ],
)
def test_every_problem_has_its_path(settings: dict[str, Any], problem: str) -> None:
    assert told(settings) == (f"backends.main.prometheus.{problem}",)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        pytest.param({"backend": "other"}, "backend: there is no Prometheus 'other' under backends", id="no backend"),
        pytest.param({"relistInterval": "0"}, "relistInterval: must be more than nothing", id="no interval"),
        pytest.param({"maxage": "1m"}, "maxage: unknown key; did you mean 'maxAge'?", id="a slip"),
    ],
)
def test_so_has_every_problem_with_an_imported_file(entry: dict[str, str], problem: str) -> None:
    assert told({}, prometheusAdapter=[{"file": "f", "backend": "main", **entry}]) == (
        f"prometheusAdapter[0].{problem}",
    )


def test_a_file_is_imported_once() -> None:
    files = [{"file": "f", "backend": "main"}] * 2
    assert told({}, prometheusAdapter=files) == ("prometheusAdapter[1].file: is listed twice",)


def test_every_setting_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "prometheus.md").read_text()
    assert [key for key in Prometheus.__struct_encode_fields__ if f"| `{key}` |" not in text] == []
