"""Responses of any size, as Prometheus sends them for a query with the timestamps of its samples."""

import msgspec

from adapter.rules.promql.sample_age import KIND_LABEL, TIMESTAMP_KIND, VALUE_KIND


def response(count: int) -> bytes:
    """Return a response with this number of series with 12 labels; some labels have few values, others many."""
    result = []
    for number in range(count):
        labels = {
            "cluster": "production-eu-west-1",
            "namespace": f"team-{number % 50}",
            "job": "payment-service",
            "instance": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:8080",
            "pod": f"payment-service-{number:x}-abcde",
            "container": "payment",
            "endpoint": "metrics",
            "method": "GET",
            "status": "200",
            "path": f"/api/v1/orders/{number % 100}",
            "region": "eu-west-1",
        }
        values = {"__name__": "http_requests_total", KIND_LABEL: VALUE_KIND, **labels}
        result.append({"metric": values, "value": [1700000000.123, str(number * 1.5)]})
        timestamps = {KIND_LABEL: TIMESTAMP_KIND, **labels}
        result.append({"metric": timestamps, "value": [1700000000.123, str(1699999990.123 + number % 10)]})
    return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})
