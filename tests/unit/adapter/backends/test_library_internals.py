"""The internals of client libraries that backends override or rely on.

These tests fail when a new version of a library moves them; the upper bounds of versions are in ``pyproject.toml``.
"""

import inspect
from datetime import UTC, datetime

import aiohttp
import pytest
from aiobotocore.config import AioConfig
from aiobotocore.credentials import AioAssumeRoleCredentialFetcher, AioDeferredRefreshableCredentials
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from prometheus_api_client import PrometheusConnect

from adapter.backends.prometheus.api_request import ApiRequest, RecordingSession


def parameter_names(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_aiobotocore_has_the_overridden_method() -> None:
    assert parameter_names(AIOHTTPSession._get_session) == ["self", "proxy_url"]


@pytest.mark.parametrize(
    ("method", "target", "form"),
    [
        pytest.param("GET", "/api/v1/query?query=up+%2B+1&timeout=9ms", None, id="GET"),
        pytest.param("POST", "/api/v1/query", {"query": "up + 1", "timeout": "9ms"}, id="POST"),
    ],
)
def test_prometheus_api_client_builds_requests_without_sending_them(method: str, target: str, form: object) -> None:
    library = PrometheusConnect(url="", session=RecordingSession(), method=method)
    query = library.custom_query("up + 1", params={"timeout": "9ms"})
    assert isinstance(query, ApiRequest)
    assert (query.method, query.target, query.form) == (method, target, form)
    series = library.get_series(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), {"match[]": "up"})
    assert isinstance(series, ApiRequest)
    assert (series.method, series.form) == ("GET", None)
    assert series.target == "/api/v1/series?match%5B%5D=up&start=1767225600.0&end=1767312000.0"


def test_aiohttp_repeats_requests_only_as_the_session_attribute_says() -> None:
    assert "self._retry_connection" in inspect.getsource(aiohttp.ClientSession._request)


def test_aiohttp_response_stores_its_body_where_it_is_set() -> None:
    assert "self._body" in inspect.getsource(aiohttp.ClientResponse.read)


def test_aiobotocore_sends_requests_with_the_session_of_get_session() -> None:
    source = inspect.getsource(AIOHTTPSession.send)
    assert "self._get_session(" in source
    assert "session.request(" in source


def test_aiobotocore_accepts_the_options_and_components_in_use() -> None:
    AioConfig(http_session_cls=AIOHTTPSession, account_id_endpoint_mode="disabled", parameter_validation=False)
    assert {"register_component", "get_component", "set_default_client_config", "set_config_variable"} <= set(
        dir(AioSession)
    )
    assert "client_creator" in parameter_names(AioAssumeRoleCredentialFetcher)
    assert parameter_names(AioDeferredRefreshableCredentials)[:2] == ["refresh_using", "method"]
