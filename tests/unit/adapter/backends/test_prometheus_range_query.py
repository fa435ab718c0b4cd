"""Responses to range queries."""

import json

from adapter.backends.prometheus.parse import decode
from adapter.backends.prometheus.range_query import series_of


def test_large_matrix_that_is_decoded_in_parts_keeps_all_series_in_order():
    values = [[float(second), "1"] for second in range(100)]
    result = [{"metric": {"queue": f"q{index}"}, "values": values} for index in range(400)]
    content = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    response = decode(200, json.dumps(content, separators=(",", ":")).encode())

    assert response.parts
    series = series_of(response)
    assert [one.metric["queue"] for one in series] == [f"q{index}" for index in range(400)]
    assert {len(one.values) for one in series} == {100}
