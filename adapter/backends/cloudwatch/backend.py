"""The CloudWatch backend: the questions of many rules in one call; one that is no good spoils no other."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeAlias

from adapter.backends.asking.aws.client import AwsClient
from adapter.backends.asking.batching import Batcher
from adapter.backends.asking.question import parameters
from adapter.backends.cloudwatch import answer, splitting
from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.pace import Pace
from adapter.backends.cloudwatch.question import MOST, Asked, calls, queries
from adapter.backends.cloudwatch.settings import CloudWatch, CloudWatchParameters
from adapter.errors import BackendError, BackendRefused, BadQuery
from adapter.rules.fill import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
_MOST_PAGES: Final = 100
_NOBODY: Final = CloudWatchParameters(namespace="Steadyscale", metric="Ping", statistic="SampleCount")

Found: TypeAlias = tuple[RawSample, ...]
Outcome: TypeAlias = Found | BackendError


class CloudWatchBackend:
    """A client of CloudWatch in whatever regions rules ask for."""

    aligned = True

    def __init__(self, name: str, settings: CloudWatch, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._clock = clock
        self._calls_per_second = settings.calls_per_second
        self._client = AwsClient("cloudwatch", settings, clock)
        self._regions: dict[str, Batcher[CloudWatchParameters, Found]] = {}
        self._paces: dict[str, Pace] = {}
        self._suspects = splitting.Suspects()

    async def fetch(self, query: Query, deadline: timedelta) -> Found:
        """Return the newest value of each series that the rule asks for."""
        asked = parameters(query, CloudWatchParameters)
        batcher = self._batcher(asked.region)
        return await self._client.through(query.text, deadline, lambda: batcher.ask(asked, deadline))

    async def ping(self) -> None:
        """Ask for a metric that nobody has."""

        async def ask() -> None:
            (outcome,) = await self._send("", [_NOBODY], _PING)
            if isinstance(outcome, BackendError):
                raise outcome

        await self._client.through("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        batchers, self._regions = tuple(self._regions.values()), {}
        await asyncio.gather(*(batcher.aclose() for batcher in batchers))
        await self._client.aclose()

    def _batcher(self, region: str) -> Batcher[CloudWatchParameters, Found]:
        if region not in self._regions:
            self._regions[region] = Batcher(partial(self._send, region), most=MOST)
        return self._regions[region]

    async def _send(
        self,
        region: str,
        questions: Sequence[CloudWatchParameters],
        _: timedelta,
    ) -> Sequence[Outcome]:
        """Ask in as few calls as can be, and give each question its own outcome."""
        splits = splitting.Splits()
        made = list(calls(questions, self._suspects, self._clock()))
        answered = await asyncio.gather(*(self._together(region, call, splits) for call in made))
        outcomes = {name: outcome for each in answered for name, outcome in each.items()}
        return [outcomes[f"q{number}"] for number in range(len(questions))]

    async def _together(self, region: str, call: list[Asked], splits: splitting.Splits) -> dict[str, Outcome]:
        """Make one call. One bad question makes CloudWatch refuse all, so those are parted until it stands alone."""
        try:
            pages = await self._pages(region, call)
            outcomes = _outcomes(call, pages)
        except BadQuery as error:
            if len(call) > 1 and splits.is_left():
                parts = splitting.parted(call, error.detail)
                answered = await asyncio.gather(*(self._together(region, part, splits) for part in parts))
                return {name: outcome for each in answered for name, outcome in each.items()}
            if len(call) == 1:
                self._suspects.add(call[0].question)
            return {asked.id: error for asked in call}
        except BackendError as error:
            return {asked.id: error for asked in call}
        for asked in call:
            self._suspects.discard(asked.question)
        return outcomes

    async def _pages(self, region: str, call: list[Asked]) -> list[dict[str, Any]]:
        pace = self._paces.setdefault(region, Pace(self._calls_per_second))
        request: dict[str, Any] = {
            "MetricDataQueries": [query for asked in call for query in queries(asked)],
            "StartTime": call[0].window.start,
            "EndTime": call[0].window.end,
            "ScanBy": "TimestampDescending",
        }
        pages: list[dict[str, Any]] = []
        while len(pages) < _MOST_PAGES:
            await pace.turn()
            page = await self._client.call(region, "get_metric_data", **request)
            pages.append(page)
            if not page.get("NextToken"):
                return pages
            request["NextToken"] = page["NextToken"]
        raise BackendRefused("it answers with pages without end")


def _outcomes(call: list[Asked], pages: list[dict[str, Any]]) -> dict[str, Outcome]:
    found, lacks = answer.series(pages), answer.left_out(pages)
    outcomes: dict[str, Outcome] = {}
    for asked in call:
        try:
            if lacks and text.finds_metrics(asked.question.expression):
                raise BackendRefused("it leaves series out, because there are too many", detail=lacks)
            outcomes[asked.id] = answer.samples(asked, found.get(asked.id, ()))
        except BackendError as error:
            outcomes[asked.id] = error
    return outcomes
