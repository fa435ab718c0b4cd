"""Decoded responses: their memory, also if their shape needs much for each byte, and series known from before."""

import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backends.prometheus import parse, vector
from adapter.errors import Ambiguous, BackendRejected, BadQuery
from tests.prometheus.generated_responses import response

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def body_with(series: str, warnings: str = "null") -> bytes:
    return f'{{"status":"success","data":{{"resultType":"vector","result":[{series}]}},"warnings":{warnings}}}'.encode()


def test_a_decoded_response_needs_at_most_twice_its_size_of_memory() -> None:
    body = response(3000)
    tracemalloc.start()
    try:
        samples = parse.samples(parse.decode(200, body), NOW)
        retained, peak = (size / len(body) for size in tracemalloc.get_traced_memory())
    finally:
        tracemalloc.stop()
    assert len(samples) == 3000
    assert peak < 2, f"{peak:.1f} times the size of the body, besides the body"
    assert retained < 1.5, f"{retained:.1f} times the size of the body"


def test_each_series_has_its_own_timestamp() -> None:
    samples = parse.samples(parse.decode(200, response(20)), NOW)
    ages = [round((NOW - sample.at).total_seconds()) for sample in samples]
    assert ages == [10 - number % 10 for number in range(20)]
    assert samples[3].labels["pod"] == "payment-service-3-abcde"


def test_a_result_with_more_labels_than_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "_MAX_SIZE", 300)
    series = [f'{{"metric":{{"a":"{number}"}},"value":[0,"1"]}}' for number in range(101)]
    assert len(parse.samples(parse.decode(200, body_with(",".join(series[1:]))), NOW)) == 100
    with pytest.raises(BackendRejected, match="too many series and labels: aggregate series in the query"):
        parse.samples(parse.decode(200, body_with(",".join(series))), NOW)


@pytest.mark.parametrize("shape", ["labels of one series", "warnings"])
def test_one_long_part_of_a_response_is_refused_before_it_is_decoded(shape: str) -> None:
    labels = ",".join(f'"{number:x}":""' for number in range(100_000))
    body = body_with(f'{{"metric":{{{labels}}},"value":[0,"1"]}}')
    if shape == "warnings":
        body = body_with("", warnings="[" + ",".join(['"a"'] * 200_000) + "]")
    tracemalloc.start()
    try:
        decoded = parse.decode(200, body)
        with pytest.raises(BackendRejected):
            _ = parse.samples(decoded, NOW), decoded.partial_warnings
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(body) / 2


def test_a_timestamp_out_of_range_is_refused() -> None:
    time = '{"metric":{"__steadyscale__":"time"},"value":[0,"1"]}'
    body = body_with(f'{{"metric":{{}},"value":[1e300,"1"]}},{time}')
    with pytest.raises(BackendRejected, match="invalid response"):
        parse.samples(parse.decode(200, body), NOW)


def test_two_series_without_labels_are_ambiguous() -> None:
    series = '{"metric":{},"value":[0,"1"]}'
    assert len(parse.samples(parse.decode(200, body_with(series)), NOW)) == 1
    with pytest.raises(Ambiguous, match="two series have no labels"):
        parse.samples(parse.decode(200, body_with(f"{series},{series}")), NOW)


HOSTILE = json.dumps(']},{"metric":{')  # what separates two series


def rows(numbers: dict[int, float], age: int = 0) -> str:
    """Return the rows of series by their number, with the timestamps of their samples."""
    labels = {number: f'"queue":"q{number}","text":{HOSTILE}' for number in numbers}
    values = [
        f'{{"metric":{{"__name__":"depth","__steadyscale__":"value",{labels[number]}}},"value":[100,"{value}"]}}'
        for number, value in numbers.items()
    ]
    timestamps = [
        f'{{"metric":{{"__steadyscale__":"time",{labels[number]}}},"value":[100,"{100 - age - number}"]}}'
        for number in numbers
    ]
    return ",".join([*values, *timestamps])


SERIES = st.dictionaries(st.integers(0, 9), st.floats(), max_size=10)


@given(st.lists(st.tuples(SERIES, st.integers(0, 5)), min_size=1, max_size=4), st.sampled_from([100, 300, 1000, 10**6]))
def test_a_response_is_parsed_the_same_whatever_series_are_known_and_however_it_is_split(results, part_bytes) -> None:
    known = None
    for numbers, age in results:
        body = body_with(rows(numbers, age))
        with mock.patch.object(parse, "_PART_BYTES", part_bytes):
            table = parse.samples(parse.decode(200, body), NOW, known)
        assert [each.labels["queue"] for each in table] == [f"q{number}" for number in numbers]
        assert [repr(each.value) for each in table] == [*map(repr, numbers.values())]
        assert [NOW - each.at for each in table] == [timedelta(seconds=age + number) for number in numbers]
        assert {each.labels["text"] for each in table} <= {json.loads(HOSTILE)}
        known = table.label_sets


def test_labels_of_known_series_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = parse.samples(parse.decode(200, body_with(rows({1: 1, 2: 2, 3: 3}))), NOW)
    decoded: list[bytes] = []

    def decode_labels(text: msgspec.Raw) -> dict[str, str]:
        decoded.append(bytes(text))
        return {"queue": "q4"}

    monkeypatch.setattr(vector, "_decode_labels", decode_labels)
    same = parse.samples(parse.decode(200, body_with(rows({1: 5, 2: 6, 3: 7}))), NOW, first.label_sets)
    assert same.label_sets is first.label_sets
    other = parse.samples(parse.decode(200, body_with(rows({2: 5, 3: 6, 4: 7}))), NOW, same.label_sets)
    assert other.label_sets.labels[0] is first.label_sets.labels[1]
    assert [b'"q4"' in text for text in decoded] == [True, True]


def test_of_two_timestamps_for_the_same_labels_the_older_one_applies_each_time() -> None:
    value = '{"metric":{"a":"1"},"value":[100,"5"]}'
    known = None
    for pair in ((90, 80), (70, 95)):
        times = ",".join(f'{{"metric":{{"__steadyscale__":"time","a":"1"}},"value":[100,"{time}"]}}' for time in pair)
        table = parse.samples(parse.decode(200, body_with(f"{value},{times}")), NOW, known)
        assert (NOW - table[0].at).total_seconds() == 100 - min(pair)
        known = table.label_sets


def test_a_timestamp_without_labels_is_that_of_all_series_without_their_own() -> None:
    common = '{"metric":{"__steadyscale__":"time"},"value":[100,"40"]}'
    other = '{"metric":{"a":"1"},"value":[100,"5"]}'
    known = None
    for _ in range(2):
        table = parse.samples(parse.decode(200, body_with(f"{rows({2: 1.0})},{other},{common}")), NOW, known)
        assert [(NOW - each.at).total_seconds() for each in table] == [2, 60]
        known = table.label_sets


def test_a_large_response_is_split_and_a_differently_formatted_one_is_decoded_too() -> None:
    body = response(3000)
    spaced = body.replace(b"},{", b"}, {")
    assert len(parse.decode(200, body).parts) > 10
    assert not parse.decode(200, spaced).parts
    expected, found = (parse.samples(parse.decode(200, text), NOW) for text in (body, spaced))
    assert list(expected) == list(found)


@pytest.mark.parametrize("result_type", ["matrix", "vector"])
def test_large_results_that_are_no_numbers_are_bad_queries(result_type: str) -> None:
    key = "values" if result_type == "matrix" else "histogram"
    series = ",".join([f'{{"metric":{{"a":"1"}},"{key}":[[100,"5"]]}}'] * 10_000)
    body = body_with(series).replace(b"vector", result_type.encode())
    with pytest.raises(BadQuery, match=r"the result is a (matrix|native histogram), not a number for each series"):
        parse.samples(parse.decode(200, body), NOW)


def test_a_truncated_large_response_is_refused() -> None:
    body = response(3000)
    for end in (len(body) - 1, len(body) - 100, len(body) // 2):
        with pytest.raises(BackendRejected, match="invalid response"):
            parse.samples(parse.decode(200, body[:end]), NOW)
