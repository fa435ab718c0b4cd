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


def test_next_snapshot_can_be_built_with_the_same_indexes():
    first = Snapshot(SERIES, BEGINNING)
    first.select(parse("queue=orders"), "namespace", "shop")

    assert set(first.indexed_labels) == {"queue", "namespace"}
    assert Snapshot(SERIES, BEGINNING, indexed_labels=first.indexed_labels).index_count == 2


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
