"""From what a rule says to what Azure is asked; pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from adapter.backends.azure.resource_id import parsed
from adapter.backends.azure.settings import AzureParameters

_VERSION: Final = "2024-02-01"
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Call(NamedTuple):
    """What resources must have in common to be asked for by one call."""

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
        """Say the path and the query of the request; only whole granularities are asked for."""
        since = (now - self.delay) - _BEGINNING
        end = _BEGINNING + (since // self.granularity) * self.granularity
        asked = {
            "api-version": _VERSION,
            "starttime": _written(end - self.window),
            "endtime": _written(end),
            "interval": f"PT{self.granularity // timedelta(minutes=1)}M",
            "metricnamespace": self.namespace,
            "metricnames": self.metric.replace(",", "%2"),  # so it is written: a comma stands between names
            "aggregation": self.aggregation,
        }
        if self.filter:
            asked |= {"filter": self.filter, "top": str(self.max_series + 1)}  # one more tells that there are more
        if self.roll_up_by:
            asked["rollupby"] = self.roll_up_by
        return f"/subscriptions/{self.subscription}/metrics:getBatch?{urlencode(asked, quote_via=quote)}"


class Question(NamedTuple):
    """One resource, and what is asked of it."""

    resource: str
    call: Call


def questions(asked: AzureParameters) -> list[Question]:
    """Make a question for each resource of a rule."""
    ids = asked.resources or (asked.resource,)
    first = parsed(ids[0])
    call = Call(
        first.subscription,
        asked.namespace or first.type,
        asked.metric,
        asked.aggregation,
        asked.granularity,
        asked.window,
        asked.delay,
        asked.filter or _filter(asked.dimensions),
        asked.roll_up_by,
        asked.max_series,
    )
    return [Question(each, call) for each in ids]


def _filter(dimensions: Mapping[str, str]) -> str:
    return " and ".join(f"{_escaped(name)} eq '{_escaped(value)}'" for name, value in sorted(dimensions.items()))


def _escaped(text: str) -> str:
    """Write a name or a value so that it cannot end early; brackets are written twice encoded, as Azure wants them."""
    return text.replace("'", "''").replace("(", "%2528").replace(")", "%2529")


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
