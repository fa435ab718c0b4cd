"""When a Lease is held, free or expired, by observation alone."""

import pytest

from autoscaler.sharding.lease_state import LeaseSpec, LeaseState


def state(**changes):
    return LeaseState("me", lease_duration=15.0, renew_deadline=10.0, **changes)


def spec(holder="other", renewed="1", seconds=15):
    return LeaseSpec(holder, seconds, None, renewed)


def test_lease_that_was_never_observed_is_free_and_not_held():
    lease = state()
    assert (lease.holder, lease.is_held(0.0), lease.is_free(0.0)) == ("", False, True)


def test_lease_of_another_process_expires_if_it_does_not_change_for_its_duration():
    lease = state()
    for now in (100.0, 108.0, 114.9):
        lease.observe(spec(), now, now)
        assert not lease.is_free(now)
    assert lease.is_free(115.0)


@pytest.mark.parametrize(("seconds", "expires_at"), [(3, 103.0), (None, 115.0)])
def test_duration_is_that_of_the_lease_or_of_this_process(seconds, expires_at):
    lease = state()
    lease.observe(spec(seconds=seconds), 100.0, 100.0)
    assert lease.expires_at == expires_at


def test_observed_renewal_postpones_the_expiry():
    lease = state()
    lease.observe(spec(), 100.0, 100.0)
    lease.observe(spec(renewed="2"), 110.0, 111.0)
    assert not lease.is_free(125.0)
    assert lease.is_free(126.0)


def test_written_lease_is_held_from_the_start_of_the_request():
    lease = state()
    lease.written(spec("me"), 100.0, 104.0)
    assert lease.is_held(109.9)
    assert not lease.is_held(110.0)
    lease.written(spec("me", "2"), 102.0, 104.0)
    lease.drop()
    assert not lease.is_held(104.0)


def test_response_that_was_overtaken_is_ignored():
    lease = state()
    lease.observe(spec(renewed="2"), 101.0, 102.0)
    lease.observe(spec(renewed="1"), 100.0, 103.0)
    assert (lease.spec, lease.changed_at) == (spec(renewed="2"), 102.0)


def test_deleted_lease_is_free():
    lease = state()
    lease.observe(spec(), 100.0, 100.0)
    lease.observe(None, 101.0, 101.0)
    assert lease.is_free(101.0)


def test_shared_lease_is_held_if_another_process_renews_it_under_the_same_identity():
    lease = state(is_shared=True)
    lease.observe(spec("me"), 100.0, 100.1)
    assert not lease.is_held(100.1)  # it may have been renewed long ago
    lease.observe(spec("me", "2"), 103.0, 103.1)
    assert lease.is_held(109.9)
    assert not lease.is_held(110.0)


def test_own_lease_is_not_held_because_of_an_observed_renewal():
    lease = state()
    lease.observe(spec("me"), 100.0, 100.1)
    lease.observe(spec("me", "2"), 103.0, 103.1)
    assert not lease.is_held(103.1)


def test_shared_lease_of_another_identity_is_not_held():
    lease = state(is_shared=True)
    lease.observe(spec("other"), 100.0, 100.1)
    lease.observe(spec("other", "2"), 103.0, 103.1)
    lease.observe(None, 104.0, 104.1)
    assert not lease.is_held(104.1)
