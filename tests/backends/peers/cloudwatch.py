"""CloudWatch of moto with additional features, used by a user with read permissions."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from adapter.process import clock
from tests.backends.contract import Json
from tests.backends.moto_server import VERIFIED_AGAINST, MotoPeer

NAMESPACE = "Shop/Queues"


class Peer(MotoPeer):
    kind = "cloudwatch"
    verified_against = f"{VERIFIED_AGAINST}, with added searches, arithmetic, pages and validation"
    may: ClassVar = ("monitoring:GetMetricData",)  # moto uses the signing name as the prefix of actions
    metric = "Depth0"
    _held = 0

    def set_values(self, numbers: Mapping[str, int]) -> None:
        """Store the values as a new metric each time, because CloudWatch cannot delete values."""
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
        """Store values by their age in minutes; return the start of the newest complete minute."""
        minute = (now or clock()).replace(second=0, microsecond=0)
        data = [
            {
                "MetricName": metric,
                "Dimensions": [{"Name": "Queue", "Value": name}],
                "Timestamp": minute - timedelta(minutes=ago),
                "Value": value,
                "Unit": unit,
            }
            for name, values in numbers.items()
            for ago, value in values.items()
        ]
        for first in range(0, len(data), 20):  # boto3 compresses larger requests, whose signature moto computes wrongly
            self.server.client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=data[first : first + 20])
        return minute - timedelta(minutes=1)

    def parameters_for(self, name: str) -> Json:
        return {"namespace": NAMESPACE, "metric": self.metric, "dimensions": {"Queue": name}}

    def labels(self, name: str) -> Mapping[str, str]:
        return {"Queue": name}

    def parameters_for_all(self) -> Json:
        return self.search(self.metric)

    def parameters_without_result(self) -> Json:
        return self.search("Absent")

    @staticmethod
    def search(metric: str) -> Json:
        expression = f"""SEARCH('{{{NAMESPACE},Queue}} MetricName="{metric}"', 'Average', 60)"""
        return {"expression": expression, "labels": ["Queue"]}
