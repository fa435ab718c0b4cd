"""GET /debug/...: JSON about rules, metrics and backends, for who may read those paths."""

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from adapter import errors
from adapter.debug.comparison_views import comparisons
from adapter.debug.rule_views import backends, rules
from adapter.debug.trace import way
from adapter.metrics.comparison import Comparisons
from adapter.metrics.reader import RuleReader
from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML
from adapter.server.debug_page import Page
from adapter.server.request_context import RequestContext
from autoscaler.values import selector
from autoscaler.values.selector import SelectorError

METRICS: Final = "/debug/metrics/"


class Debug:
    """The debugging endpoints. What they show is of all namespaces, so the right to read them is the operator's."""

    def __init__(
        self,
        reader: RuleReader,
        problems: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
        page: Page | None = None,
        compared: Comparisons | None = None,
    ) -> None:
        self.page = page
        """What shows the same to people, and the autoscalers besides."""

        self.reader = reader
        self._problems = problems
        self._compared = compared or Comparisons(reader)

    async def rules(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/rules``."""
        return _answer(exchange, rules(self.reader, dict(self._problems())))

    async def backends(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/backends``."""
        return _answer(exchange, await backends(self.reader))

    async def comparisons(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/comparisons``."""
        return _answer(exchange, comparisons(self._compared, self.reader.delegate))

    async def metric(self, exchange: RequestContext) -> web.Response:
        """Answer ``/debug/metrics/NAMESPACE/METRIC?labelSelector=...``: read it now, and tell the way."""
        namespace, _, metric = exchange.path.removeprefix(METRICS).rstrip("/").partition("/")
        if not namespace or not metric or "/" in metric:
            raise errors.PathNotFound
        try:
            wanted = selector.parse(exchange.query.get("labelSelector", ""))
        except SelectorError as error:
            raise errors.BadRequest(f"unable to parse the label selector: {error}") from error
        look = await self.reader.look(namespace, metric, wanted)
        return _answer(exchange, way(look, self.reader))


def _answer(exchange: RequestContext, content: object) -> web.Response:
    media = exchange.wants((JSON, YAML)).media
    return web.Response(body=serialization.to_bytes(content, media, pretty=exchange.pretty()), content_type=media)
