"""Reading of recorded metrics from CSV: forms, time zones, order, gaps, and problems with their lines."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from adapter.debug.render_history import csv_text
from adapter.decoding.problem import ConfigInvalid
from adapter.simulation import csv_history
from adapter.simulation.csv_history import CsvOptions, read_csv
from adapter.simulation.history_table import histories_for
from tests.builders import make_external_metric, make_object_metric, make_pods_metric, make_resource_metric

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def table(*rows: str, header: str = "timestamp,value", **options):
    return read_csv([header, *rows], CsvOptions(**options))


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01 12:00:00",
        "2026-03-01T13:00:00+01:00",
        "2026-03-01T12:00:00.0000000",
        "1772366400",
        "1772366400000",
        "1.7723664e9",
    ],
)
def test_formats_of_timestamps(text: str):
    assert table(f"{text},1").times == (NOON,)


def test_timestamps_without_zone_are_of_the_chosen_one():
    assert table("2026-03-01 13:00:00,1", zone=ZoneInfo("Europe/Berlin")).times == (NOON,)


def test_rows_are_sorted_and_equal_duplicates_dropped():
    found = table("1772366430,3", "1772366400,1", "1772366430,3", "1772366415,2")
    assert found.times == (NOON, NOON + 15, NOON + 30)
    assert found.columns == {"value": (1000, 2000, 3000)}


def test_values_are_scaled_and_rounded_up_like_quantities():
    assert table("1772366400,100", scale=Decimal(1) / 60).columns["value"] == (1667,)


def test_missing_values_are_gaps():
    found = table("0,", "15,NaN", "30,null", "45,1", "60", "")
    assert found.columns["value"] == (None, None, None, 1000, None)


def test_irregular_steps_have_a_gap_where_the_distance_is_long():
    assert table(*(f"{second},1" for second in (0, 200, 390, 4000))).max_age == 600
    assert table("0,1", "15,1", "30,1").max_age == 300
    assert table("0,1").max_age == 300
    assert table("0,1", "15,1", max_age=timedelta(seconds=20)).max_age == 20


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (("0,1", "15,many"), {}, "line 3: value is not a number: 'many'"),
        (("0,-1",), {}, "line 2: value is out of range: '-1' is negative"),
        (("0,inf",), {}, "line 2: value is not a number: 'inf'"),
        (("yesterday,1",), {}, "line 2: not a timestamp: 'yesterday'"),
        (("1e300,1",), {}, "line 2: "),
        (("0,1", "15,2", "0,3"), {}, "line 4: the same time as line 2, with other values"),
        (("0,1", "15,"), {"refuse_gaps": True}, "line 3: value has no value"),
        (
            ("0,1", "3600,1"),
            {"refuse_gaps": True, "max_age": timedelta(minutes=5)},
            "line 3: a gap of 1:00:00 before this row",
        ),
        ((), {}, "the history is empty: it has a header but no rows"),
    ],
)
def test_problem_names_its_line(rows, options, message):
    with pytest.raises(ConfigInvalid) as error:
        table(*rows, **options)
    assert error.value.messages[0].startswith(message)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "the history is empty"),
        (["timestamp"], "line 1: no column of a metric"),
        (["1772366400,1"], "line 1: no header"),
        (["a,b", '1,"' + "x" * 200_000], "line 2: not CSV"),
    ],
)
def test_file_that_is_no_history_is_refused(lines, message):
    with pytest.raises(ConfigInvalid) as error:
        read_csv(lines)
    assert error.value.messages[0].startswith(message)


def test_at_most_ten_problems_are_reported():
    with pytest.raises(ConfigInvalid) as error:
        table(*(f"{second},x" for second in range(100)))
    assert len(error.value.messages) == 10


def test_number_of_rows_is_bounded(monkeypatch):
    monkeypatch.setattr(csv_history, "MAX_ROWS", 3)
    with pytest.raises(ConfigInvalid, match="line 5: more than 3 rows"):
        table(*(f"{second},1" for second in range(100)))


def test_columns_are_found_by_the_names_of_the_metrics():
    found = table("0,1,2,3", header="time,queue_depth{app=web},rps,cpu")
    metrics = (
        make_external_metric(selector={"app": "web"}),
        make_pods_metric("rps"),
        make_resource_metric("cpu"),
    )
    assert [history.milli for history in histories_for(metrics, found)] == [(1000,), (2000,), (3000,)]


def test_only_column_belongs_to_the_only_metric():
    assert histories_for((make_external_metric("orders"),), table("0,1"))[0].milli == (1000,)


def test_metric_without_a_column_is_a_problem():
    with pytest.raises(ConfigInvalid, match=r"spec.metrics\[1\]: the history has no column other; it has: queue_depth"):
        histories_for((make_external_metric(), make_external_metric("other")), table("0,1", header="t,queue_depth"))


DECISIONS = "time,current,replicas,state,limitingFactor,omitted,orders value,orders target,orders proposal,orders state"


def test_decision_history_has_averages_over_the_replicas():
    rows = ("2026-03-01T12:00:00Z,3,3,normal,,0,20,30,2,ok", "2026-03-01T12:30:00Z,0,0,normal,,0,,30,,failed")
    found = table(*rows, header=DECISIONS)
    assert found.max_age == float("inf")  # a record applies until the next one
    assert histories_for((make_external_metric("orders"),), found)[0].milli == (60_000, None)
    assert histories_for((make_object_metric("orders", value="5"),), found)[0].milli == (20_000, None)


def test_output_of_the_history_command_is_read():
    metric = {"name": "orders", "value": 20, "target": 30, "proposal": 2, "state": "ok"}
    record = {"at": "2026-03-01T12:00:00Z", "current": 3, "replicas": 3, "state": "normal", "omitted": 0}
    text = csv_text({"records": [{**record, "limitingFactor": None, "metrics": [metric]}]})
    assert histories_for((make_external_metric("orders"),), read_csv(text.splitlines()))[0].milli == (60_000,)


def test_decision_history_has_no_totals_of_pods():
    found = table("2026-03-01T12:00:00Z,3,3,normal,,0,20,30,2,ok", header=DECISIONS)
    with pytest.raises(ConfigInvalid, match="no totals of Pods metrics"):
        histories_for((make_pods_metric("orders"),), found)
