from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.sample import Sample
from adapter.server.serialization import Named, document, in_order, quantity, timestamp, to_bytes
from autoscaler.values.quantity import Quantity

AT = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("milli", "text"),
    [(0, "0"), (1, "1m"), (999, "999m"), (1000, "1"), (1100, "1100m"), (9_200_000_000_000_000_000, "9200000000000000")],
)
def test_quantities_are_plain_digits_or_thousandths(milli: int, text: str):
    assert quantity(milli) == text


@given(st.integers(0, 9_200_000_000_000_000_000))
def test_a_quantity_is_read_back_as_the_same_number(milli: int):
    assert Quantity.parse(quantity(milli)).milli() == milli


def test_a_time_is_utc_in_whole_seconds():
    assert timestamp(AT) == "2026-01-02T03:04:05Z"
    assert timestamp(AT.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-01-02T03:04:05Z"


def test_the_list_in_the_order_of_kubernetes_own_fields():
    values = [Named("m", Sample(1500, AT, {"b": "2", "a": "1"}, timedelta(seconds=60)))]

    assert to_bytes(document(values), "application/json") == (
        b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":['
        b'{"metricName":"m","metricLabels":{"a":"1","b":"2"},"timestamp":"2026-01-02T03:04:05Z","window":60,"value":"1500m"}'
        b"]}\n"
    )


def test_an_empty_list_is_a_list_and_not_null():
    assert b'"items":[]' in to_bytes(document([]), "application/json")


def test_no_labels_are_an_object_and_no_window_is_absent():
    text = to_bytes(document([Named("m", Sample(0, AT))]), "application/json")

    assert b'"metricLabels":{},"timestamp"' in text
    assert b"window" not in text
    assert b'"value":"0"' in text


def test_series_are_in_the_order_of_their_labels():
    several = [Sample(1, AT, {"a": "z"}), Sample(2, AT, {"a": "b"}), Sample(3, AT, {})]

    assert [named.sample.milli for named in in_order("m", several)] == [3, 2, 1]


@pytest.mark.parametrize("label", ["no", "1", "null", "a: b", "é", "<script>", "'", "\u2028"])
def test_yaml_keeps_every_text_a_text(label: str):
    text = to_bytes(document([Named("m", Sample(1000, AT, {"label": label}))]), "application/yaml")
    (item,) = yaml.safe_load(text)["items"]

    assert (item["metricLabels"], item["value"], item["timestamp"]) == ({"label": label}, "1", "2026-01-02T03:04:05Z")
