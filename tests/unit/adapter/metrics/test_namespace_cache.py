"""A cache that several namespaces share."""

from operator import itemgetter

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.metrics.namespace_cache import NamespaceCache

Key = tuple[str, int]


def cache(max_weight: int) -> NamespaceCache[Key, int]:
    """Return a cache in which the values are the weights."""
    return NamespaceCache(max_weight, itemgetter(0), lambda _key, value: value)


def test_least_recently_used_entry_of_the_heaviest_namespace_is_evicted():
    it = cache(10)
    it["quiet", 0] = 1
    for number in range(4):
        it["noisy", number] = 3
        assert it.get(("noisy", 0)) == 3, "used, so that it is kept"
    assert set(it) == {("quiet", 0), ("noisy", 0), ("noisy", 3), ("noisy", 2)}


def test_value_above_the_limit_is_not_stored():
    it = cache(10)
    it["a", 1] = 11
    assert len(it) == 0


def test_replaced_entry_counts_once():
    it = cache(10)
    for _ in range(100):
        it["a", 1] = 9
    it["b", 1] = 1
    assert dict(it.entries()) == {("a", 1): 9, ("b", 1): 1}


KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 5))


@settings(deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(1, 12), st.booleans()), max_size=60))
def test_total_weight_never_exceeds_the_limit_and_small_namespaces_keep_their_entries(steps):
    it, stored = cache(30), dict[Key, int]()
    for key, weight, is_deleted in steps:
        if is_deleted:
            it.pop(key, None)
            stored.pop(key, None)
        else:
            it[key] = stored[key] = weight
        entries = dict(it.entries())
        assert sum(entries.values()) <= 30
        for namespace in "abc":
            own = {each: value for each, value in stored.items() if each[0] == namespace}
            if sum(own.values()) <= 10:  # never the heaviest of three while the limit is exceeded
                assert own.items() <= entries.items()
        stored = entries
