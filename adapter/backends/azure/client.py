"""The library's client of Azure Monitor, over a session of ours: nothing is retried, followed, or read without end."""

import asyncio
import logging
import ssl
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.monitor.querymetrics.aio import MetricsClient

from adapter.backends.azure import errors
from adapter.backends.azure.credentials import Login
from adapter.backends.azure.parse import refusal
from adapter.backends.azure.settings import Azure
from adapter.backends.connection import http_errors
from adapter.backends.connection.secret_file import Hidden
from adapter.backends.connection.tls import context
from adapter.backends.settings import Tls
from adapter.errors import BackendRejected, BadQuery

_DOMAINS: Final = {"public": "azure.com", "usGovernment": "azure.us", "china": "azure.cn"}
_AUTHORITIES: Final = {
    "public": "",  # the library's own, which AZURE_AUTHORITY_HOST can change
    "usGovernment": "https://login.microsoftonline.us",
    "china": "https://login.chinacloudapi.cn",
}
_KEPT: Final = 75.0
_NO_END: Final = 3600  # seconds; the rule's deadline is the only one


class AzureClient:
    """Sends requests as who we are."""

    def __init__(self, settings: Azure) -> None:
        self._settings = settings
        domain = _DOMAINS[settings.cloud]
        self._endpoint = (settings.endpoint or f"https://{settings.region}.metrics.monitor.{domain}").rstrip("/")
        self._audience = settings.audience or f"https://metrics.monitor.{domain}"
        self._login = Login(settings.login, settings.authority or _AUTHORITIES[settings.cloud], self._options)
        self._session: aiohttp.ClientSession | None = None
        self._client: MetricsClient | None = None
        self._opening = asyncio.Lock()
        # It writes a paragraph for every request, and what failed is told by us.
        for name in ("azure", "msal"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    @property
    def secrets(self) -> tuple[Hidden, ...]:
        """All that must not be told."""
        return self._login.secrets

    async def post(self, target: str, body: object) -> bytes:
        """Ask; return what a status of 200 came with."""
        status, said = await self._send(HttpRequest("POST", target, json=body))
        if status == HTTPStatus.OK:
            return said
        if status == HTTPStatus.NOT_FOUND and (why := refusal(said)):
            raise BadQuery("Azure does not have this resource", detail=why)
        raise http_errors.of_status(status, said)

    async def ping(self) -> None:
        """See that there is a token, and somebody who answers."""
        status, said = await self._send(HttpRequest("GET", "/"))
        if status == HTTPStatus.UNAUTHORIZED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise http_errors.of_status(status, said)

    async def aclose(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: HttpRequest) -> tuple[int, bytes]:
        try:
            client = await self._opened()
            is_encrypted = self._endpoint.startswith("https:")
            response = await client.send_request(request, stream=True, enforce_https=is_encrypted)
            try:
                body = await self._body(response)
            finally:
                await response.close()
        except (AzureError, aiohttp.ClientError, OSError, ValueError) as error:
            raise errors.of_exception(error) from None
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            self._login.forget()
        return response.status_code, body

    async def _opened(self) -> MetricsClient:
        async with self._opening:
            if self._client is None:
                tls = await asyncio.to_thread(context, Tls(ca_file=self._settings.ca_file))
                self._session = self._new_session(tls)
                self._client = MetricsClient(self._endpoint, self._login, audience=self._audience, **self._options())
            return self._client

    def _new_session(self, tls: ssl.SSLContext) -> aiohttp.ClientSession:
        # One more than calls: a token is fetched in the midst of one.
        connector = aiohttp.TCPConnector(limit=self._settings.connections + 1, keepalive_timeout=_KEPT, ssl=tls)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    def _options(self) -> dict[str, Any]:
        transport = AioHttpTransport(
            session=self._session, session_owner=False, connection_timeout=_NO_END, read_timeout=_NO_END
        )
        proxy = self._settings.proxy_url
        proxies = {"proxies": {"http": proxy, "https": proxy}} if proxy else {}
        return {
            "transport": transport,
            "retry_total": 0,
            "permit_redirects": False,
            "tracing_enabled": False,
            **proxies,
        }

    async def _body(self, response: AsyncHttpResponse) -> bytes:
        parts, size = [], 0
        async for part in response.iter_bytes():
            size += len(part)
            if size > self._settings.max_response_bytes:
                raise BackendRejected("the answer is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
