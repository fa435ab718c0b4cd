"""GET /debug/metrics and /debug/metrics/NAMESPACE: the metrics that can be read, with value, age and health."""

from typing import Final

from aiohttp import web

from adapter.debug.metric_list import metric_list_view
from adapter.server.debug_endpoints import DebugSources
from adapter.server.request_context import RequestContext

ALL_METRICS: Final = "/debug/metrics"


class MetricListEndpoint:
    """The endpoint. What it shows was read by this process, so it is forwarded to the leader, which reads the most."""

    def __init__(self, sources: DebugSources) -> None:
        self._sources = sources

    async def handle(self, context: RequestContext) -> web.Response:
        namespace = context.path.removeprefix(ALL_METRICS).strip("/")
        return context.respond(metric_list_view(self._sources.reader, self._sources.problems(), namespace))
