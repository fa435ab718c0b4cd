"""CloudWatch in one region: the questions of many rules in one call; one that is no good spoils no other."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from adapter.backends.cloudwatch import parse
from adapter.backends.cloudwatch.query import MOST, Asked, Question, asked_now, blamed, calls, queries, together
from adapter.backends.connection.aws.client import AwsClient
from adapter.backends.connection.secret_file import all_without_secrets
from adapter.backends.resilience.batching import Batcher
from adapter.backends.resilience.bisect import SettingApart
from adapter.backends.resilience.rate_limit import Pace
from adapter.errors import BackendError, BackendRejected
from adapter.sample import RawSample

_MOST_PAGES: Final = 100

Found: TypeAlias = tuple[RawSample, ...]
Outcome: TypeAlias = Found | BackendError


class Region:
    """Gathers questions, and asks them together."""

    def __init__(self, name: str, client: AwsClient, pace: Pace, clock: Callable[[], datetime]) -> None:
        self._name = name
        self._client = client
        self._pace = pace
        self._clock = clock
        apart: SettingApart[Question, Found] = SettingApart(
            self._guarded, text=lambda question: question.text, together=together, blamed=blamed
        )
        self._batcher = Batcher(apart.send, most=MOST, together=apart.together)

    async def ask(self, question: Question, deadline: timedelta) -> Found:
        """Ask this with whatever else is asked now."""
        return await self._batcher.ask(question, deadline)

    async def aclose(self) -> None:
        """End what is under way."""
        await self._batcher.aclose()

    async def call(self, questions: Sequence[Question]) -> Sequence[Outcome]:
        """Ask what may go together; raise ``BadQuery`` if any of it is bad: CloudWatch refuses all for one."""
        asked = asked_now(questions, self._clock())
        outcomes: list[Outcome] = []
        for call in calls(asked):
            outcomes += parse.outcomes(call, await self._pages(call))
        return outcomes

    async def _guarded(self, questions: Sequence[Question], ends: float) -> Sequence[Outcome]:
        """Call once; a call that fails is one failure to the breaker, however many rules are in it."""
        left = timedelta(seconds=max(0.0, ends - asyncio.get_running_loop().time()))
        about = repr([question.text for question in questions])
        found = await self._client.through(about, left, lambda: self.call(questions))
        return all_without_secrets(found, self._client.secrets)

    async def _pages(self, call: list[Asked]) -> list[dict[str, Any]]:
        request: dict[str, Any] = {
            "MetricDataQueries": [query for asked in call for query in queries(asked)],
            "StartTime": call[0].window.start,
            "EndTime": call[0].window.end,
            "ScanBy": "TimestampDescending",
        }
        pages: list[dict[str, Any]] = []
        while len(pages) < _MOST_PAGES:
            async with self._pace.turn():
                page = await self._client.call(self._name, "get_metric_data", **request)
            pages.append(page)
            if not page.get("NextToken"):
                return pages
            request["NextToken"] = page["NextToken"]
        raise BackendRejected("it answers with pages without end")
