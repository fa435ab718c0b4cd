import pytest

from adapter.metrics.snapshot import Snapshot
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, raw

SERIES = (
    raw(1, queue="orders", namespace="shop"),
    raw(2, queue="mails", namespace="shop", slow="yes"),
    raw(3, queue="orders", namespace="bank"),
    raw(4, namespace="shop"),
    raw(5, queue="", namespace="shop"),
)


def selected(selector: str, label: str = "", value: str = "") -> list[float]:
    return sorted(series.value for series in Snapshot(SERIES, BEGINNING).select(parse(selector), label, value))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("queue=orders", [1, 3]),
        ("queue==orders", [1, 3]),
        ("queue!=orders", [2, 4, 5]),
        ("queue in (orders,mails)", [1, 2, 3]),
        ("queue notin (orders,mails)", [4, 5]),
        ("queue", [1, 2, 3, 5]),
        ("!queue", [4]),
        ("queue=", [5]),
        ("nothing", []),
        ("!nothing", [1, 2, 3, 4, 5]),
        ("nothing=x", []),
        ("queue=orders,namespace=bank", [3]),
        ("queue=orders,slow", []),
    ],
)
def test_selector_operators_match_as_in_kubernetes(selector: str, expected: list[float]):
    assert selected(selector) == expected


def test_label_of_the_rule_restricts_any_selector():
    assert selected("", "namespace", "bank") == [3]
    assert selected("namespace=shop", "namespace", "bank") == []


def test_next_snapshot_can_be_built_with_the_same_indexes():
    first = Snapshot(SERIES, BEGINNING)
    first.select(parse("queue=orders"), "namespace", "shop")

    assert set(first.indexed_labels) == {"queue", "namespace"}
    assert Snapshot(SERIES, BEGINNING, indexed_labels=first.indexed_labels).index_count == 2


def test_duplicate_value_in_a_set_selects_a_series_once():
    snapshot = Snapshot(SERIES, BEGINNING)

    assert [series.value for series in snapshot.select(parse("queue in (mails,mails)"))] == [2]
