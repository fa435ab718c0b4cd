"""Conversion of rule parameters into ``metrics:getBatch`` requests. No I/O."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.backends.azure.resource_id import parse_resource_id
from adapter.backends.azure.settings import AzureParameters

_API_VERSION: Final = "2024-02-01"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AzureBatch(NamedTuple):
    """What resources must have in common to be queried by one request."""

    subscription: str
    namespace: str
    metric: str
    aggregation: str
    granularity: timedelta
    window: timedelta
    delay: timedelta
    filter: str
    roll_up_by: str
    max_series: int

    def target(self, now: datetime) -> str:
        """Return the path and query string of the request; its time range consists of complete intervals."""
        end = _EPOCH + ((now - self.delay) - _EPOCH) // self.granularity * self.granularity
        query = {
            "api-version": _API_VERSION,
            "starttime": _format_time(end - self.window),
            "endtime": _format_time(end),
            "interval": f"PT{self.granularity // timedelta(minutes=1)}M",
            "metricnamespace": self.namespace,
            "metricnames": self.metric.replace(",", "%2"),  # Azure's escape for a comma, which separates names
            "aggregation": self.aggregation,
        }
        if self.filter:
            # One more than the limit reveals that the result would have been truncated.
            query |= {"filter": self.filter, "top": str(self.max_series + 1)}
        if self.roll_up_by:
            query["rollupby"] = self.roll_up_by
        return f"/subscriptions/{self.subscription}/metrics:getBatch?{urlencode(query, quote_via=quote)}"


class AzureQuery(NamedTuple):
    """A metric of one resource."""

    resource: str
    batch: AzureBatch


def build_queries(parameters: AzureParameters) -> list[AzureQuery]:
    """Return one query for each resource of a rule."""
    ids = parameters.resources or (parameters.resource,)
    first = parse_resource_id(ids[0])
    batch = AzureBatch(
        first.subscription,
        parameters.namespace or first.type,
        parameters.metric,
        parameters.aggregation,
        parameters.granularity,
        parameters.window,
        parameters.delay,
        parameters.filter or _filter(parameters.dimensions),
        parameters.roll_up_by,
        parameters.max_series,
    )
    return [AzureQuery(resource, batch) for resource in ids]


def _filter(dimensions: Mapping[str, str]) -> str:
    return " and ".join(f"{_escape(name)} eq '{_escape(value)}'" for name, value in sorted(dimensions.items()))


def _escape(text: str) -> str:
    """Escape quotes and parentheses; Azure expects parentheses percent-encoded twice."""
    return text.replace("'", "''").replace("(", "%2528").replace(")", "%2529")


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")
