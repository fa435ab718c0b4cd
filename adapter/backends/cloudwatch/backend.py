"""The CloudWatch backend: whichever regions rules ask in, with one identity."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.cloudwatch.client import Found, Region
from adapter.backends.cloudwatch.parameters import CloudWatchParameters
from adapter.backends.cloudwatch.query import Question
from adapter.backends.cloudwatch.settings import CloudWatch
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.parameters import parameters
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendError
from adapter.rules.query_builder import Query

_PING: Final = timedelta(seconds=5)
_NOBODY: Final = Question("ping", CloudWatchParameters(namespace="Steadyscale", metric="Ping", statistic="SampleCount"))


class CloudWatchBackend:
    """A client of CloudWatch."""

    aligned = True

    def __init__(self, name: str, settings: CloudWatch, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._settings = settings
        self._client = AwsClient("cloudwatch", settings, clock)
        self._regions: dict[str, Region] = {}

    async def fetch(self, query: Query, deadline: timedelta) -> Found:
        """Return the newest value of each series that the rule asks for."""
        wanted = parameters(query, CloudWatchParameters)
        return await self._region(wanted.region).ask(Question(query.text, wanted), deadline)

    async def ping(self) -> None:
        """Ask for a metric that nobody has."""

        async def ask() -> None:
            (outcome,) = await self._region("").call([_NOBODY])
            if isinstance(outcome, BackendError):
                raise outcome

        await self._client.through("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        regions, self._regions = tuple(self._regions.values()), {}
        await asyncio.gather(*(region.aclose() for region in regions))
        await self._client.aclose()

    def _region(self, name: str) -> Region:
        if name not in self._regions:
            pace = Pace(at_once=self._settings.connections, per_second=self._settings.calls_per_second)
            self._regions[name] = Region(name, self._client, pace, self._clock)
        return self._regions[name]
