"""GET /debug/...: JSON about rules, metrics and backends."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aiohttp import web

from adapter import errors
from adapter.debug.rule_views import backends_view, comparisons_view, rules_view
from adapter.debug.trace import trace_view
from adapter.decoding.problem import Problem
from adapter.metrics.comparison import Comparison
from adapter.metrics.read_history import ReadKey
from adapter.metrics.reader import MetricReader
from adapter.server.debug_page import DebugPage
from adapter.server.request_context import RequestContext
from autoscaler.values import selector
from autoscaler.values.selector import SelectorError

METRICS: Final = "/debug/metrics/"


class DebugEndpoints:
    """The debugging endpoints. They show all namespaces, so only operators should be authorized to read them."""

    def __init__(
        self,
        reader: MetricReader,
        problems: Callable[[], Mapping[str, tuple[Problem, ...]]] = dict,
        page: DebugPage | None = None,
        comparisons: Iterable[tuple[ReadKey, Comparison]] = (),
    ) -> None:
        self.page = page
        self.reader = reader
        self._problems = problems
        self._comparisons = comparisons

    async def rules(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/rules``."""
        return context.respond(rules_view(self.reader, dict(self._problems())))

    async def backends(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/backends``."""
        return context.respond(await backends_view(self.reader))

    async def comparisons(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/comparisons``."""
        return context.respond(comparisons_view(self._comparisons, self.reader.delegate))

    async def metric(self, context: RequestContext) -> web.Response:
        """Serve ``/debug/metrics/NAMESPACE/METRIC?labelSelector=...``: read the metric and return the trace."""
        namespace, _, metric = context.path.removeprefix(METRICS).rstrip("/").partition("/")
        if not namespace or not metric or "/" in metric:
            raise errors.PathNotFound
        try:
            label_selector = selector.parse(context.query.get("labelSelector", ""))
        except SelectorError as error:
            raise errors.InvalidRequest(f"unable to parse the label selector: {error}") from error
        trace = await self.reader.read(namespace, metric, label_selector)
        return context.respond(trace_view(trace, self.reader))
