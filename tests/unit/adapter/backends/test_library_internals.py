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
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection

from adapter.backends.prometheus.connection import AbortableConnection, AbortablePool, AbortableTlsPool
from adapter.backends.prometheus.parse import ApiResponse
from adapter.backends.prometheus.session import ResponseHolder


def parameter_names(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        pytest.param(HTTPConnection._new_conn, ["self"], id="urllib3 HTTPConnection._new_conn"),
        pytest.param(HTTPAdapter.init_poolmanager, ["self", "connections", "maxsize", "block"], id="init_poolmanager"),
        pytest.param(HTTPAdapter.proxy_manager_for, ["self", "proxy"], id="proxy_manager_for"),
        pytest.param(HTTPAdapter.cert_verify, ["self", "conn", "url", "verify", "cert"], id="cert_verify"),
        pytest.param(
            HTTPAdapter.build_connection_pool_key_attributes,
            ["self", "request", "verify", "cert"],
            id="build_connection_pool_key_attributes",
        ),
        pytest.param(AIOHTTPSession._get_session, ["self", "proxy_url"], id="aiobotocore AIOHTTPSession._get_session"),
    ],
)
def test_overridden_method_has_the_expected_parameters(method: object, parameters: list[str]) -> None:
    assert parameter_names(method)[: len(parameters)] == parameters


def test_urllib3_connects_through_the_overridden_method() -> None:
    assert "self._new_conn()" in inspect.getsource(HTTPConnection.connect)
    assert (HTTPConnectionPool.ConnectionCls, HTTPSConnectionPool.ConnectionCls) != (None, None)


def test_pool_manager_creates_pools_of_the_given_classes() -> None:
    manager = PoolManager()
    manager.pool_classes_by_scheme = {"http": AbortablePool, "https": AbortableTlsPool}
    pool = manager.connection_from_url("http://127.0.0.1:1")
    assert isinstance(pool, AbortablePool)
    assert isinstance(pool._new_conn(), AbortableConnection)
    assert list(manager.pools.keys())
    manager.clear()


def test_prometheus_api_client_returns_the_response_holder_unchanged() -> None:
    holder = ResponseHolder(ApiResponse("success"))

    class Session:
        verify, cert = True, None

        def mount(self, *_: object) -> None:
            """Ignore the library's adapter."""

        def request(self, **_: object) -> ResponseHolder:
            return holder

        def get(self, *_: object, **__: object) -> ResponseHolder:
            return holder

    library = PrometheusConnect(url="http://x", session=Session())
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert library.custom_query("up") is holder
    assert library.get_series(now, now) is holder


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
