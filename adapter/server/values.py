"""The answer that is given most often, a metric's values, written in one piece.

Every HPA gets one for each metric every fifteen seconds, and its head is the same but for three words. To collect such
a head name by name and to write it out again takes the library longer than it takes us to find the values. What is
unusual (an old HTTP, a connection that ends) is left to the library all the same.
"""

from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time

COMMON: Final = {"Server": "steadyscale", "Cache-Control": "no-cache, private"}
"""What every answer carries unless it says otherwise: not the names and versions of what we are made of."""

_COMMON: Final = "".join(f"{name}: {value}\r\n" for name, value in COMMON.items())


class Values(web.StreamResponse):
    """200 OK, and a body."""

    def __init__(self, body: bytes, media: str) -> None:
        super().__init__()
        self.audit_id = ""
        self.content, self._media = body, media
        self._request: web.BaseRequest | None = None
        self._usual: web.Response | None = None
        self._is_last = False

    @property
    def keep_alive(self) -> bool | None:
        """Say whether the connection goes on afterwards."""
        return True if self._usual is None else self._usual.keep_alive

    def force_close(self) -> None:
        """Say that this is the last answer on its connection."""
        self._is_last = True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Take note of where to write to, or leave it to the library."""
        self._request = request
        if request.version == HttpVersion11 and request.keep_alive and not self._is_last:
            return None
        headers = {"Audit-Id": self.audit_id, **COMMON}
        self._usual = web.Response(body=self.content, content_type=self._media, headers=headers)
        if self._is_last:
            self._usual.force_close()
        return await self._usual.prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:
        """Write it all."""
        if self._usual is not None:
            await self._usual.write_eof(data)
            return
        if self._request is None:
            raise RuntimeError("an answer is prepared before it is written")
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("nobody is there to be told")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {self._media}\r\nAudit-Id: {self.audit_id}\r\n{_COMMON}"
            f"Content-Length: {len(self.content)}\r\nDate: {rfc822_formatted_time()}\r\n\r\n"
        )
        transport.write(head.encode("ascii") + self.content)
        await self._request.writer.drain()  # who does not read it gets no other, and is waited for on a stop
