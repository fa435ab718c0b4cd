"""Quotas: fair, with as few moves as possible, and the same in every process."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.sharding.assignment import Assignment, assign, shard_of

MEMBERS = ("a", "b", "c", "d", "e")


def settle(members, holders):
    """Let all members act on the same observation until nothing changes; return the holders and the moves."""
    holders, moves = list(holders), 0
    for _ in range(3):
        plans = {member: assign(member, members, holders) for member in members}
        for member, plan in plans.items():
            for shard in plan.release:
                assert holders[shard] == member
                holders[shard], moves = "", moves + 1
            for shard in plan.acquire:
                assert holders[shard] == ""
                holders[shard] = member
    return holders, moves


@given(
    members=st.sets(st.sampled_from(MEMBERS), min_size=1),
    holders=st.lists(st.sampled_from(("", *MEMBERS)), min_size=1, max_size=40),
)
def test_members_with_the_same_observation_reach_a_fair_share_without_conflict(members, holders):
    gone = {shard for shard, holder in enumerate(holders) if holder and holder not in members}
    settled, _ = settle(members, holders)
    counts = Counter(dict.fromkeys(members, 0))
    counts.update(holder for holder in settled if holder in members)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert {shard for shard, holder in enumerate(settled) if holder not in members} == gone
    assert all(assign(member, members, settled).is_complete for member in members)


def test_join_moves_only_the_share_of_the_new_member():
    holders = ["a", "b"] * 6
    settled, moves = settle(("a", "b", "c"), holders)
    assert moves == 4
    assert Counter(settled) == {"a": 4, "b": 4, "c": 4}


def test_free_shards_go_to_the_members_with_the_fewest():
    holders = ["a", "a", "a", "b", "", ""]
    assert assign("b", ("a", "b"), holders) == Assignment((4, 5), (), is_complete=False)
    assert assign("a", ("a", "b"), holders) == Assignment((), (), is_complete=False)


def test_shards_of_a_holder_that_does_not_respond_are_not_counted():
    holders = ["gone", "gone", "a", "a", "b", "b"]
    assert assign("a", ("a", "b"), holders) == Assignment((), (), is_complete=True)


def test_overdue_shard_is_acquired_by_any_member():
    holders = ["a", "a", "b", ""]
    assert assign("a", ("a", "b"), holders).acquire == ()
    assert assign("a", ("a", "b"), holders, overdue=(3,)).acquire == (3,)
    assert assign("a", ("a", "b"), ["a", "a", "b", "b"], overdue=(3,)).acquire == ()


def test_process_that_is_not_a_member_yet_counts_itself():
    assert assign("new", ("a",), ["a", "a"]) == Assignment((), (), is_complete=False)
    assert assign("a", ("a", "new"), ["a", "a"]).release == (1,)


@pytest.mark.parametrize(("namespace", "shard"), [("shop", 6), ("default", 2), ("kube-system", 2), ("", 4)])
def test_shard_of_a_namespace_never_changes(namespace, shard):
    assert shard_of(namespace, 16) == shard


def test_namespaces_are_spread_evenly():
    counts = Counter(shard_of(f"team-{number:04}", 8) for number in range(8000))
    assert max(counts.values()) < 1.1 * 1000
    assert min(counts.values()) > 0.9 * 1000
