"""Client of the Azure Monitor metrics API, with the pipeline and the tokens of Azure's libraries.

The libraries send through an aiohttp session of this module. Retries, redirects and proxies of the environment are
disabled, and the size of responses is limited.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.monitor.querymetrics.aio import MetricsClient

from adapter.backends.azure import errors
from adapter.backends.azure.credentials import AzureCredential
from adapter.backends.azure.parse import error_text
from adapter.backends.azure.settings import Azure
from adapter.backends.connection import http_errors
from adapter.backends.connection.secret_file import Redactor
from adapter.backends.connection.tls import create_context
from adapter.backends.settings import Tls
from adapter.errors import BackendRejected, BadQuery

_DOMAINS: Final = {"public": "azure.com", "usGovernment": "azure.us", "china": "azure.cn"}
_AUTHORITIES: Final = {
    "public": "",  # the default of azure-identity, which AZURE_AUTHORITY_HOST can change
    "usGovernment": "https://login.microsoftonline.us",
    "china": "https://login.chinacloudapi.cn",
}
_KEEPALIVE_SECONDS: Final = 75.0  # longer than the default interval of rules, so that connections are reused
_NO_TIMEOUT: Final = 3600  # seconds; ProtectedCall has the deadline


class AzureClient:
    """Sends authenticated requests to one metrics endpoint."""

    def __init__(self, settings: Azure) -> None:
        self._settings = settings
        domain = _DOMAINS[settings.cloud]
        self._endpoint = (settings.endpoint or f"https://{settings.region}.metrics.monitor.{domain}").rstrip("/")
        self._audience = settings.audience or f"https://metrics.monitor.{domain}"
        authority = settings.authority or _AUTHORITIES[settings.cloud]
        self._credential = AzureCredential(settings.login, authority, self._pipeline_options)
        self._session: aiohttp.ClientSession | None = None
        self._client: MetricsClient | None = None
        self._opening = asyncio.Lock()
        # These libraries log every request and every failure; failures are reported as BackendErrors instead.
        for name in ("azure", "msal"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    @property
    def secrets(self) -> tuple[Redactor, ...]:
        """Redactors of the tokens and the client secret."""
        return self._credential.secrets

    async def post(self, target: str, body: object) -> bytes:
        """Send a request and return the body of the response."""
        status, response = await self._send(HttpRequest("POST", target, json=body))
        if status == HTTPStatus.OK:
            return response
        if status == HTTPStatus.NOT_FOUND and (detail := error_text(response)):
            raise BadQuery("resource not found: check resource", detail=detail)
        raise http_errors.from_status(status, response)

    async def ping(self) -> None:
        """Check that a token can be obtained and that the endpoint responds."""
        status, response = await self._send(HttpRequest("GET", "/"))
        if status == HTTPStatus.UNAUTHORIZED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise http_errors.from_status(status, response)

    async def aclose(self) -> None:
        """Close connections."""
        if self._client is not None:
            await self._client.close()
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: HttpRequest) -> tuple[int, bytes]:
        try:
            client = await self._open()
            is_encrypted = self._endpoint.startswith("https:")
            response = await client.send_request(request, stream=True, enforce_https=is_encrypted)
            try:
                body = await self._read_body(response)
            finally:
                await response.close()
        except (AzureError, aiohttp.ClientError, OSError, ValueError) as error:
            raise errors.from_exception(error) from None
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            self._credential.reset()
        return response.status_code, body

    async def _open(self) -> MetricsClient:
        async with self._opening:
            if self._client is None:
                tls = await asyncio.to_thread(create_context, Tls(ca_file=self._settings.ca_file))
                # One connection more than requests: a token may be fetched in the middle of a request.
                limit = self._settings.max_connections + 1
                connector = aiohttp.TCPConnector(limit=limit, keepalive_timeout=_KEEPALIVE_SECONDS, ssl=tls)
                self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
                options = self._pipeline_options()
                self._client = MetricsClient(self._endpoint, self._credential, audience=self._audience, **options)
            return self._client

    def _pipeline_options(self) -> dict[str, Any]:
        transport = AioHttpTransport(
            session=self._session, session_owner=False, connection_timeout=_NO_TIMEOUT, read_timeout=_NO_TIMEOUT
        )
        proxy = self._settings.proxy_url
        return {
            "transport": transport,
            "retry_total": 0,
            "permit_redirects": False,
            "tracing_enabled": False,
            **({"proxies": {"http": proxy, "https": proxy}} if proxy else {}),
        }

    async def _read_body(self, response: AsyncHttpResponse) -> bytes:
        parts, size = [], 0
        async for part in response.iter_bytes():
            size += len(part)
            if size > self._settings.max_response_bytes:
                raise BackendRejected("the response is larger than maxResponseBytes")
            parts.append(part)
        return b"".join(parts)
