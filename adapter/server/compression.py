"""Compression of responses with gzip, for callers that accept it."""

import asyncio
import gzip
from typing import Final

from aiohttp import hdrs, web

from adapter.server.request_context import RequestContext
from adapter.server.route import Handler

_MIN_BYTES: Final = 1024
"""Smaller responses fit into one packet anyway."""

_MAX_BYTES_IN_LOOP: Final = 64 * 1024
"""Larger responses are compressed in a thread; this many bytes take about a millisecond."""

_LEVEL: Final = 5


def compressing(handler: Handler) -> Handler:
    """Return a handler that compresses the response of another one."""

    async def handle(context: RequestContext) -> web.StreamResponse:
        response = await handler(context)
        if isinstance(response, web.Response) and (body := _compressible_body(response)):
            response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
            if accepts_gzip(",".join(context.request.headers.getall(hdrs.ACCEPT_ENCODING, ()))):
                response.body = await _compress(body)
                response.headers[hdrs.CONTENT_ENCODING] = "gzip"
        return response

    return handle


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip; without the header, nothing is compressed."""
    weights = dict(map(_weight, header.split(",")))
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(part: str) -> tuple[str, float]:
    coding, _, parameter = part.partition(";")
    name, _, value = parameter.partition("=")
    try:
        weight = float(value) if name.strip().lower() == "q" else 1.0
    except ValueError:
        weight = 0.0
    return coding.strip().lower(), weight


def _compressible_body(response: web.Response) -> bytes:
    """Return the body to compress; empty if it is small, or was compressed by the leader."""
    body, is_encoded = response.body, hdrs.CONTENT_ENCODING in response.headers
    return body if isinstance(body, bytes) and len(body) >= _MIN_BYTES and not is_encoded else b""


async def _compress(body: bytes) -> bytes:
    if len(body) > _MAX_BYTES_IN_LOOP:
        return await asyncio.to_thread(gzip.compress, body, _LEVEL, mtime=0)
    return gzip.compress(body, _LEVEL, mtime=0)
