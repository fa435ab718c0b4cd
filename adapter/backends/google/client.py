"""Requests to Cloud Monitoring, each with a token."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from adapter.backends.connection import http_errors
from adapter.backends.connection.http import HttpClient
from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.google.settings import Google
from adapter.backends.google.time_series import Series, decoded
from adapter.backends.google.tokens import Login
from adapter.errors import BackendRejected, BadQuery

T = TypeVar("T")
_OF_GOOGLE: Final = "NOT_FOUND"


class Said(msgspec.Struct):
    """What Google says of an error."""

    status: str = ""
    message: str = ""


class Refusal(msgspec.Struct):
    """Why not."""

    error: Said


class GoogleClient:
    """Asks as who we are."""

    def __init__(self, settings: Google, clock: Callable[[], datetime]) -> None:
        self._login = Login(settings)
        web = HttpSettings(
            url=settings.url,
            tls=settings.tls,
            proxy_url=settings.proxy_url,
            connections=settings.connections,
            max_response_bytes=settings.max_response_bytes,
            breaker=settings.breaker,
        )
        self._web = HttpClient(web, clock, (self._login.secrets,))

    async def through(self, about: str, deadline: timedelta, ask: Callable[[], Awaitable[T]]) -> T:
        """Do whatever it takes to answer a question, under one deadline."""
        return await self._web.through(about, deadline, ask)

    async def get(self, target: str) -> bytes:
        """Ask for one document."""
        shown = await self._login.show()
        headers = {"Authorization": f"Bearer {shown.token}"}
        if shown.quota_project:
            headers["X-Goog-User-Project"] = shown.quota_project
        accepted = {HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED}
        answer = await self._web.request("GET", target, headers=headers, accept=accepted)
        if answer.status == HTTPStatus.OK:
            return answer.body
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._login.forget()
        elif why := _not_found(answer.body):
            raise BadQuery("Google has no such metric", detail=why)
        raise http_errors.of_status(answer.status, answer.body)

    async def series(self, target: str, most: int) -> list[Series]:
        """Read all pages."""
        found: list[Series] = []
        following = ""
        while following or not found:
            body = await self.get(f"{target}{following}")
            page = await asyncio.to_thread(decoded, body)
            found += page.time_series
            if len(found) > most:
                raise BackendRejected("there are more series than maxSeries")
            if not page.next_page_token:
                break
            following = f"&pageToken={quote(page.next_page_token, safe='')}"
        return found

    async def aclose(self) -> None:
        """End what is under way, then let go of connections."""
        await self._web.aclose()
        await self._login.aclose()


def _not_found(body: bytes) -> str:
    """Say what Google does not find; nothing, if it is not Google who says so."""
    try:
        said = msgspec.json.decode(body, type=Refusal).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    return (said.message or said.status)[:300] if said.status == _OF_GOOGLE else ""
