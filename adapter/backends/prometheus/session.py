"""The requests session of prometheus-api-client: timeouts, response limit, TLS, credentials and translated errors."""

import threading
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager, ProxyManager, Retry, proxy_from_url
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from adapter.backends.connection.http_credentials import HttpCredentials
from adapter.backends.connection.tls import create_context, files_version
from adapter.backends.prometheus import errors
from adapter.backends.prometheus.connection import AbortablePool, AbortableTlsPool, current_request
from adapter.backends.prometheus.parse import ApiResponse, decode
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendRejected

NO_RETRIES: Final = Retry(
    total=False, connect=0, read=0, redirect=0, status=0, other=0, respect_retry_after_header=False
)
Manager = TypeVar("Manager", bound=PoolManager)
_CHUNK_BYTES: Final = 65536
_POOLS: Final = 2

urllib3.disable_warnings(InsecureRequestWarning)  # insecureSkipVerify is an explicit setting


class ResponseHolder:
    """Passes a whole response through prometheus-api-client.

    The library returns ``response.json()["data"]["result"]``, without the warnings and the result type. Therefore this
    object returns itself for each of these steps.
    """

    status_code = HTTPStatus.OK

    def __init__(self, response: ApiResponse) -> None:
        self.response = response

    def json(self) -> "ResponseHolder":
        """Return this object as the document."""
        return self

    def __getitem__(self, _: str) -> "ResponseHolder":
        return self


class Adapter(HTTPAdapter):
    """Pools of abortable connections with the settings' TLS context."""

    def __init__(self, settings: Prometheus) -> None:
        self._settings = settings
        super().__init__(max_retries=NO_RETRIES, pool_connections=_POOLS, pool_maxsize=settings.max_connections)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:  # noqa: ANN401, FBT001, FBT002 - requests' signature
        """Create the pools."""
        manager = PoolManager(connections, maxsize=maxsize, block=block, **options, **self._tls_options())
        self.poolmanager = _with_abortable_pools(manager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:  # noqa: ANN401 - requests' signature
        """Return the pools of a proxy, with the same TLS context."""
        if proxy not in self.proxy_manager:
            options |= {"num_pools": _POOLS, "maxsize": self._settings.max_connections, **self._tls_options()}
            self.proxy_manager[proxy] = _with_abortable_pools(proxy_from_url(proxy, **options))
        manager: ProxyManager = self.proxy_manager[proxy]
        return manager

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401, ARG002 - requests' signature
        """Return the pool of a request, without TLS options: the context has them."""
        parts = urlsplit(request.url)
        return {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port}, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401 - requests' signature
        """Leave the TLS context as it is; requests would replace its CAs."""

    def close(self) -> None:
        """Close idle connections now; requests would leave that to the garbage collector."""
        for manager in (self.poolmanager, *self.proxy_manager.values()):
            for key in manager.pools.keys():  # noqa: SIM118 - not a mapping
                manager.pools[key].close()
        super().close()

    def _tls_options(self) -> dict[str, Any]:
        tls = self._settings.tls
        if not self._settings.url.startswith("https:"):
            return {}
        name = {"server_hostname": tls.server_name, "assert_hostname": tls.server_name} if tls.server_name else {}
        return {"ssl_context": create_context(tls), **name}


def _with_abortable_pools(manager: Manager) -> Manager:
    manager.pool_classes_by_scheme = {"http": AbortablePool, "https": AbortableTlsPool}
    return manager


class Session(requests.Session):
    """Sends the requests of one backend."""

    def __init__(self, settings: Prometheus, credentials: HttpCredentials) -> None:
        super().__init__()
        self.trust_env = False  # ignore proxies and .netrc of the environment
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        if settings.proxy_url:
            self.proxies = {"http": settings.proxy_url, "https": settings.proxy_url}
        self._settings = settings
        self._credentials = credentials
        self._lock = threading.Lock()
        self._tls_version: object = None

    def refresh(self) -> None:
        """Replace all connections if the TLS files have changed."""
        with self._lock:
            version = files_version(self._settings.tls)
            if version == self._tls_version:
                return
            adapter = Adapter(self._settings)
            for old in self.adapters.values():
                old.close()
            self.adapters.clear()
            self.mount("http", adapter)
            self._tls_version = version

    def request(self, method: str, url: str, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - passed through
        """Send one request and return its response in a ``ResponseHolder``; raise ``BackendError``."""
        headers = self._credentials.headers()
        options |= {"timeout": current_request().seconds_left, "stream": True, "allow_redirects": False}
        if method == "POST":
            options["data"] = options.pop("params")
        try:
            with super().request(method, url, **{**options, "headers": headers}) as response:
                body = self._body(response)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise errors.from_exception(error) from None
        if response.status_code != HTTPStatus.OK:
            raise errors.from_status(response.status_code, body)
        return ResponseHolder(decode(body))

    def _body(self, response: requests.Response) -> bytes:
        parts, size = [], 0
        for part in response.iter_content(_CHUNK_BYTES):
            size += len(part)
            if size > self._settings.max_response_bytes:
                raise BackendRejected("the response is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
