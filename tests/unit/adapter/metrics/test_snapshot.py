import pytest

from adapter.metrics.snapshot import Snapshot
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, raw

ROWS = (
    raw(1, queue="orders", namespace="shop"),
    raw(2, queue="mails", namespace="shop", slow="yes"),
    raw(3, queue="orders", namespace="bank"),
    raw(4, namespace="shop"),
    raw(5, queue="", namespace="shop"),
)


def chosen(selector: str, label: str = "", value: str = "") -> list[float]:
    return sorted(row.value for row in Snapshot(ROWS, BEGINNING).select(parse(selector), label, value))


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
def test_every_operator_chooses_as_kubernetes_does(selector: str, expected: list[float]):
    assert chosen(selector) == expected


def test_a_label_that_belongs_to_the_rule_narrows_whatever_the_selector_says():
    assert chosen("", "namespace", "bank") == [3]
    assert chosen("namespace=shop", "namespace", "bank") == []


def test_what_was_indexed_once_is_indexed_at_once_in_the_next_snapshot():
    first = Snapshot(ROWS, BEGINNING)
    first.select(parse("queue=orders"), "namespace", "shop")

    assert set(Snapshot(ROWS, BEGINNING, indexed=first.indexed).indexed) == {"queue", "namespace"}


def test_a_value_named_twice_chooses_its_series_once():
    snapshot = Snapshot(ROWS, BEGINNING)

    assert [row.value for row in snapshot.select(parse("queue in (mails,mails)"))] == [2]
