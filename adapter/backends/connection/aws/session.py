"""The HTTP session below aiobotocore: as its own, but it follows nobody elsewhere and reads no more than it should."""

from typing import Any, Final

import aiohttp
from aiobotocore.httpsession import AIOHTTPSession

from adapter.errors import BackendRejected

_CHUNK: Final = 65536
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of an answer. As much as GetMetricData can fill is a fifth of that."""


class BoundedSession(AIOHTTPSession):  # type: ignore[misc]  # aiobotocore tells no types
    """What aiobotocore sends requests with."""

    async def _get_session(self, proxy_url: str | None) -> "_Bounded":
        return _Bounded(await super()._get_session(proxy_url))


class _Bounded:
    """A session that does not follow redirects: they would lead away with the token that says who we are."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, **options: Any) -> aiohttp.ClientResponse:  # noqa: ANN401 - aiohttp's own
        response = await self._session.request(method, allow_redirects=False, **options)
        try:
            response._body = await _body(response)  # noqa: SLF001 - what its read() would have put there
        except BaseException:
            response.close()
            raise
        return response


async def _body(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_chunked(_CHUNK):
        size += len(part)
        if size > LARGEST:
            raise BackendRejected("the answer is too large")
        parts.append(part)
    return b"".join(parts)
