"""What a process does with its observations: acquire, release, renew the gate, look again."""

from autoscaler.sharding.assignment import Assignment
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.sharding.lease_state import LeaseSpec
from autoscaler.sharding.protocol import LeaseTiming, ShardProtocol, gate_identity

TIMING = LeaseTiming(lease_duration=15.0, renew_deadline=10.0, retry_period=2.0)


def spec(holder, renewed="1"):
    return LeaseSpec(holder, 15, None, renewed)


def protocol(shards=4, *, gate_at=100.0):
    created = ShardProtocol("me", shards, TIMING)
    if gate_at is not None:
        created.gate.written(spec(gate_identity(shards)), gate_at, gate_at)
    return created


def test_nothing_is_acquired_without_the_gate_and_everything_is_released():
    one = protocol(gate_at=None)
    one.observe({}, {}, (), 100.0, 100.0)
    assert one.next((2, 1), 100.0) == Assignment((), (1, 2), is_complete=False)


def test_gate_of_another_number_of_shards_is_written_only_after_it_has_expired():
    one = protocol(gate_at=None)
    one.gate.observe(spec(gate_identity(8)), 100.0, 100.0)
    assert not one.must_write_gate(114.9)
    assert one.must_write_gate(115.0)


def test_gate_is_renewed_if_no_other_process_has_renewed_it_for_a_retry_period():
    one = protocol()
    assert not one.must_write_gate(101.9)
    assert one.must_write_gate(102.0)


def test_gate_of_the_own_number_is_written_if_it_is_not_known_since_when_it_is_held():
    one = protocol(gate_at=None)
    one.gate.observe(spec(gate_identity(4)), 100.0, 100.0)
    assert one.must_write_gate(100.0)


def test_shard_is_held_only_with_the_gate():
    one = protocol()
    one.leases[0].written(spec("me"), 105.0, 105.0)
    assert one.holds(0, 109.9)
    assert not one.holds(0, 110.0)
    assert not one.holds(1, 105.0)


def test_free_shards_are_shared_with_the_other_members():
    one = protocol()
    one.observe({}, {"m1": spec("me"), "m2": spec("other")}, (), 100.0, 100.0)
    assert one.next((), 100.0) == Assignment((0, 2), (), is_complete=False)
    assert one.unheld(101.0) == {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}


def test_shard_that_stays_free_is_acquired_by_any_member():
    one = protocol()
    for now in (100.0, 102.0):
        one.observe({}, {"m2": spec("other", str(now))}, (0, 2), now, now)
    assert one.next((0, 2), 101.9).acquire == ()
    assert one.next((0, 2), 102.0).acquire == (1, 3)


def test_member_that_does_not_renew_gets_no_shards_and_its_lease_is_deleted_in_the_end():
    one = protocol()
    for now in (100.0, 105.9, 106.0):
        one.observe({1: spec("other", str(now))}, {"m2": spec("other")}, (0, 2, 3), now, now)
        expected = (2, 3) if now < 106.0 else ()
        assert one.next((0, 2, 3), now).release[-1:] == expected[-1:]
    assert one.abandoned_members(699.9) == ()
    assert one.abandoned_members(700.0) == ("m2",)


def test_released_member_is_not_live():
    one = protocol()
    one.observe({}, {"m2": LeaseSpec("", 1)}, (0, 1, 2, 3), 100.0, 100.0)
    assert one.next((0, 1, 2, 3), 100.0).release == ()


def test_own_lease_without_a_controller_is_acquired_again():
    one = protocol(shards=2)
    one.observe({0: spec("me"), 1: spec("me")}, {}, (1,), 100.0, 100.0)
    assert one.next((1,), 100.0) == Assignment((0,), (), is_complete=False)


def test_next_list_is_early_while_shards_move_and_when_a_lease_expires():
    one = protocol(shards=2)
    one.observe({0: spec("other")}, {"m2": spec("other")}, (1,), 100.0, 100.0)
    complete = one.next((1,), 100.0)
    assert complete.is_complete
    assert one.next_delay(complete, 100.0) == 2.0
    assert one.next_delay(complete, 114.0) == 1.0
    assert one.next_delay(complete, 116.0) == 0.5
    assert one.next_delay(Assignment(is_complete=False), 100.0) == 0.5


def test_held_shards_contain_the_namespaces_of_their_hash():
    assert HeldShards().contains("shop")
    assert HeldShards(16, (3, 6)).contains("shop")
    assert not HeldShards(16, (3,)).contains("shop")
