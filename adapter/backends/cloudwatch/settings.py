"""Settings of the CloudWatch backend, and the price of its queries."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final

from adapter.backends.cloudwatch import expression as text
from adapter.backends.cloudwatch.parameters import CloudWatchParameters
from adapter.backends.connection.aws.settings import AwsSettings
from adapter.backends.settings import Parameters, Price, at_least_one
from adapter.decoding.problem import Problem

_DOLLARS_PER_METRIC: Final = 0.01 / 1000
"""Price of one metric of GetMetricData in most regions."""


class CloudWatch(AwsSettings, frozen=True):
    """Amazon CloudWatch."""

    backend_class: ClassVar[str] = "adapter.backends.cloudwatch.backend:CloudWatchBackend"
    parameters_type: ClassVar[type[Parameters] | None] = CloudWatchParameters
    labels_controlled_by_rules: ClassVar[bool] = True

    max_requests_per_second: int = 10
    """Maximum request rate in each region; further requests wait. The quota of CloudWatch is 50 per second for all
    clients of an account and region."""

    def problems(self, path: str) -> Iterator[Problem]:
        """Return the problems that decoding does not find, each with its path."""
        yield from super().problems(path)
        yield from at_least_one({"maxRequestsPerSecond": self.max_requests_per_second}, path)

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Return the price: CloudWatch charges for each metric that a query reads."""
        if not isinstance(parameters, CloudWatchParameters):
            return None
        metrics = max(1, len(parameters.metrics)) * (timedelta(days=1) / interval)
        is_search = text.searches_metrics(parameters.expression)
        per_metric = ", for each metric that the expression finds" if is_search else ""
        return Price(metrics * _DOLLARS_PER_METRIC, f"{metrics:,.0f} metrics at $0.01 per 1,000{per_metric}")
