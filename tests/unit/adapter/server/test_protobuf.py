"""The encoded list, decoded by the protobuf library with the fields of Kubernetes' .proto files."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from adapter.sample import Sample
from adapter.server.protobuf import encode_list
from adapter.server.serialization import NamedSample, named_samples

F = descriptor_pb2.FieldDescriptorProto
MESSAGES: dict[str, list[tuple[str, int, int, str]]] = {
    "TypeMeta": [("apiVersion", 1, F.TYPE_STRING, ""), ("kind", 2, F.TYPE_STRING, "")],
    "Unknown": [
        ("typeMeta", 1, F.TYPE_MESSAGE, "TypeMeta"),
        ("raw", 2, F.TYPE_BYTES, ""),
        ("contentEncoding", 3, F.TYPE_STRING, ""),
        ("contentType", 4, F.TYPE_STRING, ""),
    ],
    "ListMeta": [
        ("selfLink", 1, F.TYPE_STRING, ""),
        ("resourceVersion", 2, F.TYPE_STRING, ""),
        ("continue", 3, F.TYPE_STRING, ""),
    ],
    "Label": [("key", 1, F.TYPE_STRING, ""), ("value", 2, F.TYPE_STRING, "")],
    "Time": [("seconds", 1, F.TYPE_INT64, ""), ("nanos", 2, F.TYPE_INT32, "")],
    "Quantity": [("string", 1, F.TYPE_STRING, "")],
    "Value": [
        ("metricName", 1, F.TYPE_STRING, ""),
        ("metricLabels", 2, F.TYPE_MESSAGE, "Label*"),
        ("timestamp", 3, F.TYPE_MESSAGE, "Time"),
        ("window", 4, F.TYPE_INT64, ""),
        ("value", 5, F.TYPE_MESSAGE, "Quantity"),
    ],
    "List": [("metadata", 1, F.TYPE_MESSAGE, "ListMeta"), ("items", 2, F.TYPE_MESSAGE, "Value*")],
}
AT = datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC)


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="kube.proto", package="kube", syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            repeated = of.endswith("*")
            label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
            named = {"type_name": f".kube.{of.rstrip('*')}"} if of else {}
            message.field.add(name=field, number=number, type=kind, label=label, **named)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kube.{name}")) for name in MESSAGES}


KUBE = _classes()


def decoded(content: bytes) -> Any:
    assert content.startswith(b"k8s\x00")
    envelope = KUBE["Unknown"].FromString(content[4:])
    assert (envelope.typeMeta.apiVersion, envelope.typeMeta.kind) == (
        "external.metrics.k8s.io/v1beta1",
        "ExternalMetricValueList",
    )
    return KUBE["List"].FromString(envelope.raw)


def test_encoding_equals_the_bytes_of_kubernetes_own_server():
    at = datetime.fromtimestamp(1794791618, UTC)
    expected = (
        b"k8s\x00\x0a\x3a\x0a\x1fexternal.metrics.k8s.io/v1beta1\x12\x17ExternalMetricValueList"
        b"\x12\x3a\x0a\x06\x0a\x00\x12\x00\x1a\x00"
        b"\x12\x30\x0a\x12my-external-metric\x12\x0a\x0a\x03foo\x12\x03bar\x1a\x08\x08\xc2\xb1\xe9\xd7\x06\x10\x00\x2a\x04\x0a\x0242"
        b"\x1a\x00\x22\x00"
    )

    assert encode_list([NamedSample("my-external-metric", Sample(42_000, at, {"foo": "bar"}))]) == expected


def test_empty_list_is_encoded():
    assert list(decoded(encode_list([])).items) == []


def test_missing_window_is_omitted():
    without_window, with_window = decoded(
        encode_list([NamedSample("m", Sample(1, AT)), NamedSample("m", Sample(1, AT, {}, timedelta(seconds=300)))])
    ).items

    assert (without_window.HasField("window"), with_window.window) == (False, 300)


@pytest.mark.parametrize("year", [1, 1969, 1970, 9999])
def test_extreme_timestamps_are_encoded(year: int):
    at = datetime(year, 1, 1, tzinfo=UTC)
    (item,) = decoded(encode_list([NamedSample("m", Sample(1, at))])).items

    assert item.timestamp.seconds == int(at.timestamp())


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def samples() -> st.SearchStrategy[Sample]:
    return st.builds(
        Sample,
        milli=st.integers(0, 9_200_000_000_000_000_000),
        at=st.datetimes(timezones=st.just(UTC)),
        labels=st.dictionaries(texts, texts, max_size=4),
        window=st.none() | st.timedeltas(timedelta(0), timedelta(days=400)),
    )


@given(metric=texts, values=st.lists(samples(), max_size=4))
def test_decoded_list_equals_the_encoded_values(metric: str, values: list[Sample]):
    ordered = named_samples(metric, values)
    items = decoded(encode_list(ordered)).items

    assert [_decoded_fields(item) for item in items] == list(_expected_fields(ordered))


def _decoded_fields(item: Any) -> tuple[object, ...]:
    labels = [(label.key, label.value) for label in item.metricLabels]
    return item.metricName, labels, item.timestamp.seconds, item.window, item.value.string


def _expected_fields(ordered: list[NamedSample]) -> Iterator[tuple[object, ...]]:
    for metric, sample in ordered:
        whole = sample.milli % 1000 == 0
        text = str(sample.milli // 1000) if whole else f"{sample.milli}m"
        window = 0 if sample.window is None else round(sample.window.total_seconds())
        yield metric, sorted(sample.labels.items()), int(sample.at.timestamp()), window, text
