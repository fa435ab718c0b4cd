"""The session that prometheus-api-client is given: ours decides about time, size, redirects, retries and errors."""

import threading
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager, ProxyManager, Retry, proxy_from_url
from urllib3.exceptions import HTTPError

from adapter.backends.connection.tls import context, stamp
from adapter.backends.prometheus import errors
from adapter.backends.prometheus.connection import PlainPool, TlsPool, current
from adapter.backends.prometheus.parse import Answer, decode
from adapter.backends.prometheus.settings import Prometheus
from adapter.errors import BackendRejected

NEVER = Retry(total=False, connect=0, read=0, redirect=0, status=0, other=0, respect_retry_after_header=False)
Manager = TypeVar("Manager", bound=PoolManager)
_CHUNK = 65536
_OK = 200


class Envelope:
    """A whole answer where the library expects a response, and again where it looks for the result in it.

    It would keep the series and throw away the warnings and the type; looked into, this gives itself.
    """

    status_code = _OK

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def json(self) -> "Envelope":
        """Be the document."""
        return self

    def __getitem__(self, _: str) -> "Envelope":
        return self


class Adapter(HTTPAdapter):
    """Connections of our own kind, with a TLS context of our own."""

    def __init__(self, settings: Prometheus) -> None:
        self._settings = settings
        super().__init__(max_retries=NEVER, pool_connections=2, pool_maxsize=settings.connections)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:  # noqa: ANN401, FBT001, FBT002 - the library's own words
        """Make the pools."""
        self.poolmanager = _ours(PoolManager(connections, maxsize=maxsize, block=block, **options, **self._tls()))

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:  # noqa: ANN401
        """Make the pools of a proxy: the same connections, the same trust."""
        if proxy not in self.proxy_manager:
            options |= {"num_pools": self._pool_connections, "maxsize": self._pool_maxsize, **self._tls()}
            self.proxy_manager[proxy] = _ours(proxy_from_url(proxy, **options))
        found: ProxyManager = self.proxy_manager[proxy]
        return found

    def _tls(self) -> dict[str, Any]:
        tls = self._settings.tls
        if not self._settings.url.startswith("https:"):
            return {}
        name = {"server_hostname": tls.server_name, "assert_hostname": tls.server_name} if tls.server_name else {}
        return {"ssl_context": context(tls), **name}

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401, ARG002 - the library's own words
        """Say which pool a request belongs to; what to trust is in the context already, and nowhere else."""
        parts = urlsplit(request.url)
        return {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port}, {}

    def close(self) -> None:
        """Close idle connections now; the library would leave that to whenever nothing refers to their pool."""
        for manager in (self.poolmanager, *self.proxy_manager.values()):
            for key in manager.pools.keys():  # noqa: SIM118 - it is no mapping to iterate over
                manager.pools[key].close()
        super().close()

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401
        """Add nothing to the context."""


def _ours(manager: Manager) -> Manager:
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": TlsPool}
    return manager


class Session(requests.Session):
    """One request, one answer, one deadline."""

    def __init__(self, settings: Prometheus) -> None:
        super().__init__()
        self.trust_env = False  # no proxy and no password that is not in our own configuration
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        if settings.proxy_url:
            self.proxies = {"http": settings.proxy_url, "https": settings.proxy_url}
        self._settings = settings
        self._lock = threading.Lock()
        self._stamp: object = None

    def refresh(self) -> None:
        """Start with new connections if the files of TLS are new."""
        with self._lock:
            now = stamp(self._settings.tls)
            if now == self._stamp:
                return
            made = Adapter(self._settings)
            for old in self.adapters.values():
                old.close()
            self.adapters.clear()
            self.mount("http", made)
            self._stamp = now

    def request(self, method: str, url: str, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - the library hands them on
        """Send one request and read its answer; raise our own errors."""
        options |= {"timeout": current().seconds_left, "stream": True, "allow_redirects": False}
        if method == "POST":
            options["data"] = options.pop("params")
        try:
            with super().request(method, url, **options) as response:
                body = self._body(response)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise errors.of_exception(error) from None
        if response.status_code != _OK:
            raise errors.of_status(response.status_code, body)
        return Envelope(decode(body))

    def _body(self, response: requests.Response) -> bytes:
        parts, size = [], 0
        for part in response.iter_content(_CHUNK):
            size += len(part)
            if size > self._settings.max_response_bytes:
                raise BackendRejected("the answer is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
