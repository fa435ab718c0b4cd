"""The time of the API server.

Timestamps in the status outlive the process that wrote them, and the next one may run on a machine whose wall clock is
wrong. Both read the clock of the API server, so that they agree.
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp

from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.errors import Unavailable, describe
from autoscaler.kube.paths import api_url

_TIMEOUT: Final = aiohttp.ClientTimeout(2)
_ROUNDING: Final = timedelta(milliseconds=500)
"""The Date header has whole seconds: on average, this much has passed since."""

_PLAUSIBLE_YEARS: Final = range(2020, 2200)
"""A server that reports another year has no valid clock; such a time plus a duration could be out of range."""


async def server_time(connection: KubeConnection) -> datetime | None:
    """Return the time of a response of the API server; None if the response has no valid time.

    The request needs no permission: a response that denies it has the time as well.
    """
    try:
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.get(
                api_url(connection.server, "/version"),
                ssl=connection.tls,
                server_hostname=connection.server_name,
                proxy=connection.proxy,
                allow_redirects=False,
            ) as response,
        ):
            return _parse(response.headers.get("Date", ""))
    except (aiohttp.ClientError, OSError) as error:  # also TimeoutError
        raise Unavailable(f"GET /version: {describe(error)}") from error


def _parse(date: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(date).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time + _ROUNDING if time.year in _PLAUSIBLE_YEARS else None
