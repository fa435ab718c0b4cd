from datetime import UTC, datetime, timedelta

import pytest

from adapter.sample import Sample
from adapter.server.serialization import NamedSample, table

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def cells(sample: Sample) -> list[str]:
    (row,) = table([NamedSample("m", sample)], namespace="ns", version="v1", include="None", now=NOW)["rows"]
    return row["cells"]


def test_row_has_name_value_labels_and_age():
    assert cells(Sample(1500, NOW - timedelta(seconds=12), {"b": "2", "a": "1"})) == ["m", "1500m", "a=1,b=2", "12s"]


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (999_999, "277h")],
)
def test_age_is_formatted_as_kubectl_does(seconds: int, age: str):
    assert cells(Sample(0, NOW - timedelta(seconds=seconds)))[-1] == age
