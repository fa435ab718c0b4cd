"""aiobotocore's HTTP session without redirects and with a limit on the size of responses."""

from typing import Any, Final

import aiohttp
from aiobotocore.httpsession import AIOHTTPSession

from adapter.errors import BackendRejected

_CHUNK_BYTES: Final = 65536
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""Five times the largest response of GetMetricData."""


class BoundedSession(AIOHTTPSession):  # type: ignore[misc]  # aiobotocore has no types
    """The session that aiobotocore sends requests with."""

    async def _get_session(self, proxy_url: str | None) -> "_BoundedClient":
        return _BoundedClient(await super()._get_session(proxy_url))


class _BoundedClient:
    """An aiohttp session that does not follow redirects, which would forward credentials to another host."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> aiohttp.ClientResponse:  # noqa: ANN401 - aiohttp's
        response = await self._session.request(method, allow_redirects=False, **options)
        try:
            response._body = await _read_body(response)  # noqa: SLF001 - where read() stores the body
        except BaseException:
            response.close()
            raise
        return response


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_chunked(_CHUNK_BYTES):
        size += len(part)
        if size > MAX_RESPONSE_BYTES:
            raise BackendRejected("the response is too large")
        parts.append(part)
    return b"".join(parts)
