"""Memory of decoded responses, also of responses whose shape needs much memory for each byte."""

import tracemalloc
from datetime import UTC, datetime

import pytest

from adapter.backends.prometheus import parse
from adapter.errors import Ambiguous, BackendRejected
from tests.prometheus.generated_responses import response

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def vector(series: str, warnings: str = "null") -> bytes:
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
    monkeypatch.setattr(parse, "_MAX_SIZE", 300)
    series = [f'{{"metric":{{"a":"{number}"}},"value":[0,"1"]}}' for number in range(101)]
    assert len(parse.samples(parse.decode(200, vector(",".join(series[1:]))), NOW)) == 100
    with pytest.raises(BackendRejected, match="too many series and labels: aggregate series in the query"):
        parse.samples(parse.decode(200, vector(",".join(series))), NOW)


@pytest.mark.parametrize("shape", ["labels of one series", "warnings"])
def test_one_long_part_of_a_response_is_refused_before_it_is_decoded(shape: str) -> None:
    labels = ",".join(f'"{number:x}":""' for number in range(100_000))
    body = vector(f'{{"metric":{{{labels}}},"value":[0,"1"]}}')
    if shape == "warnings":
        body = vector("", warnings="[" + ",".join(['"a"'] * 200_000) + "]")
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
    body = vector(f'{{"metric":{{}},"value":[1e300,"1"]}},{time}')
    with pytest.raises(BackendRejected, match="invalid response"):
        parse.samples(parse.decode(200, body), NOW)


def test_two_series_without_labels_are_ambiguous() -> None:
    series = '{"metric":{},"value":[0,"1"]}'
    assert len(parse.samples(parse.decode(200, vector(series)), NOW)) == 1
    with pytest.raises(Ambiguous, match="two series have no labels"):
        parse.samples(parse.decode(200, vector(f"{series},{series}")), NOW)
