from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.controller.metric_readers import MetricReaders, spread
from autoscaler.ports import MetricChange
from autoscaler.values.selector import Selector, parse

READS = {
    "shop/orders": "queue=orders",
    "shop/gold": "tier=gold,queue=orders",
    "shop/any": "",
    "shop/not-mails": "queue!=mails",
    "bank/orders": "queue=orders",
    "bank/two": "queue in (orders,mails)",
}
ORDERS, MAILS = {"queue": "orders", "tier": "silver"}, {"queue": "mails"}


def readers(reads: dict[str, str]) -> MetricReaders:
    created = MetricReaders()
    for key, selector in reads.items():
        created.add("Depth", key, parse(selector))
    return created


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(MetricChange("depth"), set(READS), id="any series, all namespaces"),
        pytest.param(MetricChange("DEPTH", "bank"), {"bank/orders", "bank/two"}, id="any series, one namespace"),
        pytest.param(
            MetricChange("depth", "shop", (ORDERS,)),
            {"shop/orders", "shop/any", "shop/not-mails"},
            id="only selectors that match",
        ),
        pytest.param(MetricChange("depth", "bank", (MAILS,)), {"bank/two"}, id="a set of values"),
        pytest.param(
            MetricChange("depth", None, (MAILS, ORDERS)),
            set(READS) - {"shop/gold"},
            id="all namespaces, several series",
        ),
        pytest.param(MetricChange("depth", "shop", ({},)), {"shop/any", "shop/not-mails"}, id="no labels"),
        pytest.param(MetricChange("depth", "empty", (ORDERS,)), set(), id="namespace without readers"),
        pytest.param(MetricChange("depth", "empty"), set(), id="namespace without readers, any series"),
        pytest.param(MetricChange("other", None, (ORDERS,)), set(), id="metric without readers"),
    ],
)
def test_a_change_concerns_the_autoscalers_whose_selectors_match_a_changed_series(change, expected):
    assert set(readers(READS).concerned(change)) == expected


def test_removed_reads_are_not_concerned():
    registered = readers({**READS, "shop/orders-again": "queue=orders"})
    for key, selector in READS.items():
        registered.remove("depth", key, parse(selector))
    assert set(registered.concerned(MetricChange("depth"))) == {"shop/orders-again"}
    registered.remove("depth", "shop/orders-again", parse("queue=orders"))
    assert registered._metrics == {}


def test_a_selector_is_indexed_by_the_value_that_the_fewest_selectors_require():
    registered = readers({f"shop/{number}": f"app=web,queue=q{number}" for number in range(100)})
    compared: list[Selector] = []
    original = Selector.matches

    class Counted(Selector):
        def matches(self, labels):
            compared.append(self)
            return original(self, labels)

    for number in range(100, 110):
        registered.add("depth", f"shop/{number}", Counted(parse(f"app=web,queue=q{number}").requirements))
    assert [*registered.concerned(MetricChange("depth", "shop", ({"app": "web", "queue": "q105"},)))] == ["shop/105"]
    assert len(compared) == 1


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"]), max_size=3)
SELECTORS = st.sampled_from(["", "a=1", "a=1,b=2", "a in (1,2)", "b!=1", "!c", "c", "a=", "a=1,c"])
KEYS = st.sampled_from(["x/1", "x/2", "y/1", "y/2"])


@given(
    st.sets(st.tuples(KEYS, SELECTORS), max_size=12),
    st.sets(st.tuples(KEYS, SELECTORS), max_size=6),
    st.lists(LABELS, max_size=3).map(tuple),
    st.sampled_from(["x", "y", None]),
)
def test_the_index_finds_what_a_comparison_with_every_selector_finds(reads, removed, series, namespace):
    registered = MetricReaders()
    for key, selector in reads:
        registered.add("depth", key, parse(selector))
    for key, selector in reads & removed:
        registered.remove("depth", key, parse(selector))
    expected = {
        key
        for key, selector in reads - removed
        if namespace in (None, key[0]) and any(map(parse(selector).matches, series))
    }
    assert set(registered.concerned(MetricChange("depth", namespace, series))) == expected


@pytest.mark.parametrize(("count", "last"), [(0, None), (1, 0), (11, 0.02), (1501, 3), (20_000, 3)])
def test_few_reconciles_follow_each_other_closely_and_many_are_spread_over_a_fifth_of_the_period(count, last):
    delays = [delay for _, delay in spread([*map(str, range(count))], timedelta(seconds=15))]
    assert delays == sorted(delays)
    assert last is None or delays[-1].total_seconds() == pytest.approx(last, abs=0.003)
