"""CloudWatch as moto plays it, and what moto lacks added; asked by a user who may only read."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from adapter.app import clock
from tests.backends.contract import Json
from tests.backends.moto_server import VERIFIED_AGAINST, MotoPeer

NAMESPACE = "Shop/Queues"


class Peer(MotoPeer):
    kind = "cloudwatch"
    verified_against = f"{VERIFIED_AGAINST}, with searches, arithmetic, pages and refusals of our own"
    may: ClassVar = ("monitoring:GetMetricData",)  # moto knows the action by the name that requests are signed for
    metric = "Depth0"
    _held = 0

    def hold(self, numbers: Mapping[str, int]) -> None:
        """Hold them as another metric each time: what CloudWatch was told it keeps."""
        self._held += 1
        self.metric = f"Depth{self._held}"
        self.put({name: {1: number} for name, number in numbers.items()}, self.metric)

    def put(
        self,
        numbers: Mapping[str, Mapping[int, float]],
        metric: str,
        *,
        unit: str = "Count",
        now: datetime | None = None,
    ) -> datetime:
        """Tell values of whole minutes, by how many ago they began; return when the newest that is over did."""
        this = (now or clock()).replace(second=0, microsecond=0)
        data = [
            {
                "MetricName": metric,
                "Dimensions": [{"Name": "Queue", "Value": name}],
                "Timestamp": this - timedelta(minutes=ago),
                "Value": value,
                "Unit": unit,
            }
            for name, values in numbers.items()
            for ago, value in values.items()
        ]
        for first in range(0, len(data), 20):  # more are sent compressed, and moto computes their signature wrong
            self.server.client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=data[first : first + 20])
        return this - timedelta(minutes=1)

    def one(self, name: str) -> Json:
        return {"namespace": NAMESPACE, "metric": self.metric, "dimensions": {"Queue": name}}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"Queue": name}

    def several(self) -> Json:
        return self.search(self.metric)

    def nothing(self) -> Json:
        return self.search("Nobody")

    @staticmethod
    def search(metric: str) -> Json:
        expression = f"""SEARCH('{{{NAMESPACE},Queue}} MetricName="{metric}"', 'Average', 60)"""
        return {"expression": expression, "labels": ["Queue"]}
