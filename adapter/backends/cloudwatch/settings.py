"""Which CloudWatch, how often it may be called, and what asking costs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final

from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.parameters import CloudWatchParameters
from adapter.backends.connection.aws.settings import AwsSettings
from adapter.backends.settings import Parameters, Price, at_least_one

_DAY: Final = timedelta(days=1)
_PRICE: Final = 0.01 / 1000
"""Dollars for each metric that is asked for, by the price list of most regions."""


class CloudWatch(AwsSettings, frozen=True):
    """Amazon CloudWatch."""

    opened_by: ClassVar[str] = "adapter.backends.cloudwatch.backend:CloudWatchBackend"
    asked_with: ClassVar[type[Parameters] | None] = CloudWatchParameters
    rules_write_labels: ClassVar[bool] = True

    calls_per_second: int = 10
    """How often to call at most, in each region. CloudWatch's own limit is 50 for the whole account."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from super().problems(at)
        yield from at_least_one({"callsPerSecond": self.calls_per_second}, at)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Say what asking costs: CloudWatch charges for every metric that it looks at."""
        if not isinstance(parameters, CloudWatchParameters):
            return None
        times = _DAY / interval
        if text.finds_metrics(parameters.expression):
            return Price(times * _PRICE, f"{times:,.0f} times at $0.01 per 1,000 metrics, for each that it finds")
        many = max(1, len(parameters.metrics))
        return Price(times * many * _PRICE, f"{times:,.0f} times {many} at $0.01 per 1,000 metrics")
