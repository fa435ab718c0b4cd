from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.sample import Sample
from adapter.server.serialization import NamedSample, document, named_samples, quantity, timestamp, to_bytes
from autoscaler.values.quantity import Quantity

AT = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("milli", "text"),
    [(0, "0"), (1, "1m"), (999, "999m"), (1000, "1"), (1100, "1100m"), (9_200_000_000_000_000_000, "9200000000000000")],
)
def test_quantities_are_plain_digits_or_thousandths(milli: int, text: str):
    assert quantity(milli) == text


@given(st.integers(0, 9_200_000_000_000_000_000))
def test_quantity_parses_to_the_same_number(milli: int):
    assert Quantity.parse(quantity(milli)).milli() == milli


def test_timestamp_is_utc_in_whole_seconds():
    assert timestamp(AT) == "2026-01-02T03:04:05Z"
    assert timestamp(AT.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-01-02T03:04:05Z"


def test_fields_have_the_order_of_kubernetes_own_server():
    values = [NamedSample("m", Sample(1500, AT, {"b": "2", "a": "1"}, timedelta(seconds=60)))]

    assert to_bytes(document(values), "application/json") == (
        b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":['
        b'{"metricName":"m","metricLabels":{"a":"1","b":"2"},"timestamp":"2026-01-02T03:04:05Z","window":60,"value":"1500m"}'
        b"]}\n"
    )


def test_empty_list_is_encoded_as_a_list():
    assert b'"items":[]' in to_bytes(document([]), "application/json")


def test_empty_labels_are_an_object_and_a_missing_window_is_omitted():
    text = to_bytes(document([NamedSample("m", Sample(0, AT))]), "application/json")

    assert b'"metricLabels":{},"timestamp"' in text
    assert b"window" not in text
    assert b'"value":"0"' in text


def test_series_are_sorted_by_their_labels():
    samples = [Sample(1, AT, {"a": "z"}), Sample(2, AT, {"a": "b"}), Sample(3, AT, {})]

    assert [named.sample.milli for named in named_samples("m", samples)] == [3, 2, 1]


@pytest.mark.parametrize("label", ["no", "1", "null", "a: b", "é", "<script>", "'", "\u2028"])
def test_yaml_preserves_strings(label: str):
    text = to_bytes(document([NamedSample("m", Sample(1000, AT, {"label": label}))]), "application/yaml")
    (item,) = yaml.safe_load(text)["items"]

    assert (item["metricLabels"], item["value"], item["timestamp"]) == ({"label": label}, "1", "2026-01-02T03:04:05Z")
