import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.metrics.snapshot import Snapshot
from adapter.sample import RawSample
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


def test_next_snapshot_of_the_same_series_shares_labels_and_indexes():
    first = Snapshot(SERIES, BEGINNING)
    first.select(parse("queue=orders"), "namespace", "shop")
    second = Snapshot([RawSample(9, BEGINNING, dict(each.labels)) for each in SERIES], BEGINNING, previous=first)

    assert second.label_sets is first.label_sets
    assert set(second.label_sets.indexed_labels) == {"queue", "namespace"}
    assert [each.value for each in second.select(parse("queue=orders"), "namespace", "bank")] == [9]


def test_snapshot_with_other_series_has_the_indexes_of_the_previous_one():
    first = Snapshot(SERIES, BEGINNING)
    first.select(parse("queue=orders"))
    second = Snapshot([*SERIES[1:], raw(6, queue="orders", namespace="new")], BEGINNING, previous=first)

    assert second.label_sets.indexed_labels == ("queue",)
    assert second.label_sets.labels[0] is first.label_sets.labels[1]
    assert [each.value for each in second.select(parse("queue=orders"))] == [3, 6]


def changes(before: list[RawSample], after: list[RawSample]) -> set[str] | None:
    first = Snapshot(before, BEGINNING)
    changed = Snapshot(after, BEGINNING, previous=first).changes_since(first)
    return None if changed is None else {labels["queue"] for labels in changed}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param([raw(1, queue="a"), raw(math.nan, queue="b")], set(), id="same values, NaN is no change"),
        pytest.param([raw(1, queue="a"), raw(2, queue="b")], {"b"}, id="from NaN to a number"),
        pytest.param([raw(math.nan, queue="a"), raw(math.nan, queue="b")], {"a"}, id="from a number to NaN"),
        pytest.param([raw(math.nan, queue="b"), raw(1, queue="a")], set(), id="another order"),
        pytest.param([raw(1, queue="a")], {"b"}, id="a series disappeared"),
        pytest.param([raw(2, queue="a"), raw(1, queue="c")], {"a", "b", "c"}, id="one of each"),
        pytest.param([raw(1, queue="a"), raw(1, queue="a")], None, id="two series with the same labels"),
    ],
)
def test_changed_series_are_those_with_another_value_and_those_that_came_and_went(after, expected):
    assert changes([raw(1, queue="a"), raw(math.nan, queue="b")], after) == expected


def test_duplicate_value_in_a_set_selects_a_series_once():
    snapshot = Snapshot(SERIES, BEGINNING)

    assert [series.value for series in snapshot.select(parse("queue in (mails,mails)"))] == [2]


LABELS = st.dictionaries(st.sampled_from(["queue", "zone", "__name__"]), st.sampled_from(["a", "b"]))


@given(label_sets=st.lists(LABELS, max_size=8), matched=st.integers(0, 8))
@example(label_sets=[{"queue": "a", "zone": "b"}, {"zone": "b", "queue": "a"}], matched=2)
@example(label_sets=[{"queue": "a"}, {"queue": "a"}, {"queue": "b"}], matched=1)
@settings(deadline=None)
def test_repeated_labels_are_those_of_two_matching_series(label_sets: list[dict[str, str]], matched: int):
    snapshot = Snapshot([RawSample(1, BEGINNING, labels) for labels in label_sets], BEGINNING)
    labelled = [labels for labels in label_sets[:matched] if labels]

    repeated = snapshot.repeated_labels(snapshot.series[:matched])

    assert (repeated is not None) == any(labelled.count(labels) > 1 for labels in labelled)
    assert repeated is None or labelled.count(dict(repeated)) > 1


def test_repeated_labels_of_few_matching_series_are_found():
    series = [raw(number, queue=str(number)) for number in range(20)]
    snapshot = Snapshot([*series, raw(1, queue="0")], BEGINNING)

    assert snapshot.repeated_labels(snapshot.select(parse("queue=0"))) == {"queue": "0"}
    assert snapshot.repeated_labels(snapshot.select(parse("queue in (1,2)"))) is None
    assert snapshot.repeated_labels(snapshot.select(parse("queue!=0"))) is None
