"""A fixed number of simulated runs; ``python -m tests.sharding.simulation`` runs more."""

import pytest

from autoscaler.sharding.lease_state import LeaseState
from autoscaler.sharding.protocol import ShardProtocol
from tests.sharding.simulation.run import Run, Size, Violation, simulate


@pytest.mark.parametrize("seed", range(1, 11))
def test_invariants_hold_during_churn_partitions_freezes_and_drift(seed):
    assert simulate(seed).writes > 0


def test_invariants_hold_with_50_processes():
    assert Run(20, Size(50, 64)).execute().writes > 1000


def break_expiry(monkeypatch):
    """Acquire a lease that has not been renewed for five seconds."""
    monkeypatch.setattr(LeaseState, "expires_at", property(lambda lease: lease.changed_at + 5))


def break_deadline(monkeypatch):
    """Write after the renew deadline."""
    monkeypatch.setattr(LeaseState, "is_held", lambda lease, now: now < lease.held_until + 10)


def break_gate(monkeypatch):
    """Ignore which number of shards is agreed."""
    monkeypatch.setattr(ShardProtocol, "must_write_gate", lambda _protocol, _now: True)


def break_overdue(monkeypatch):
    """Trust the number of members for ever: a dead one keeps its share."""
    monkeypatch.setattr(ShardProtocol, "_live_members", lambda one, now: one.members.live(now, 10**9))
    monkeypatch.setattr(ShardProtocol, "_free_since", property(lambda _: {}, lambda _, __: None), raising=False)


@pytest.mark.parametrize("mutant", [break_expiry, break_deadline, break_gate, break_overdue])
def test_simulation_finds_a_broken_protocol(monkeypatch, mutant):
    mutant(monkeypatch)
    with pytest.raises(Violation):
        simulate_until_violation(mixed=mutant is break_gate)


def simulate_until_violation(*, mixed):
    for seed in range(30):
        Run(seed, Size(4, 4), mixed=mixed).execute()
