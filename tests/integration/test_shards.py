"""Processes with shards beside a real API server: 2 and 4 processes, a join, a kill and a leave under load.

The record of all writes at the API server decides, so the results do not depend on the load of the machine.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests.control_plane import programs
from tests.integration.service import until
from tests.integration.shard_fleet import HIGHEST, LOADS, ShardFleet, Timing, shard_fleet, size_of
from tests.integration.write_record import Write, violations

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

SHARDS = 8
PER_SHARD = 2
TIMING = Timing()


@dataclass
class Story:
    """What was seen while the processes ran."""

    writes: list[Write] = field(default_factory=list)
    times: dict[str, datetime] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    overviews: list[int] = field(default_factory=list)

    def between(self, first: str, last: str) -> list[Write]:
        return [write for write in self.writes if self.times[first] < write.received < self.times[last]]

    def leases(self, first: str, last: str) -> list[Write]:
        return [write for write in self.between(first, last) if write.is_shard_lease]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("shards")
    with shard_fleet(folder, programs.require(), shards=SHARDS, per_shard=PER_SHARD, timing=TIMING) as fleet:
        return run(fleet)


def run(fleet: ShardFleet) -> Story:
    """Start two processes, then under a changing load two more; kill one, stop another."""
    story = Story()

    def note(moment: str) -> datetime:
        story.times[moment] = datetime.now(UTC)  # noqa: TID251 - compared with the audit log
        return story.times[moment]

    note("start")
    fleet.start("one", "two")
    fleet.wait_for_shares(one=4, two=4)
    for name in ("follow", "hold"):
        fleet.wait_for_sizes(name, size_of(HIGHEST))
    with fleet.changing_load(2):
        fleet.wait_for_reconciles(note("two"))
        note("join")
        fleet.start("three", "four")
        fleet.wait_for_shares(one=2, two=2, three=2, four=2)
        fleet.wait_for_reconciles(note("four"))
        story.overviews = [replica.overview()["total"] for replica in fleet.replicas.values()]
        story.addresses = {name: replica.address for name, replica in fleet.replicas.items()}
        note("kill")
        fleet.kill("four")
        until(lambda: sorted(fleet.shares().values()) == [2, 3, 3], "the shards of the killed process are divided")
        fleet.wait_for_reconciles(note("leave"))
        fleet.stop("three")
        fleet.wait_for_shares(one=4, two=4)
        fleet.wait_for_reconciles(note("left"))
    fleet.set_load(LOADS[0])
    fleet.wait_for_sizes("follow", size_of(LOADS[0]))
    note("end")
    story.writes = fleet.record.read()
    return story


def test_every_write_is_made_once_and_by_the_holder_of_the_shard(story: Story) -> None:
    assert violations(story.writes, SHARDS) == []
    assert {write.name for write in story.writes if write.is_scale} == {"follow", "hold"}


@pytest.mark.parametrize(("first", "last", "processes"), [("two", "join", 2), ("four", "kill", 4)])
def test_work_is_divided_evenly(story: Story, first: str, last: str, processes: int) -> None:
    written = {(write.writer, write.key) for write in story.between(first, last) if write.is_status}
    assert (
        sorted(Counter(writer for writer, _ in written).values()) == [2 * SHARDS * PER_SHARD // processes] * processes
    )


def test_every_replica_shows_the_autoscalers_of_all_shards(story: Story) -> None:
    assert story.overviews == [2 * SHARDS * PER_SHARD] * 4


def test_stabilization_windows_continue_with_the_next_holder(story: Story) -> None:
    sizes = {write.size for write in story.writes if write.is_scale and write.name == "hold"}
    assert sizes == {size_of(HIGHEST)}


def test_a_joining_process_gets_only_shards_that_were_released(story: Story) -> None:
    assert {before for before, _ in moves(story.leases("start", "kill"))} == {""}


def test_a_leaving_process_releases_its_shards(story: Story) -> None:
    assert {before for before, _ in moves(story.leases("leave", "end"))} == {""}


def test_shards_of_a_killed_process_are_taken_after_the_lease_has_expired(story: Story) -> None:
    killed, leases = story.addresses["four"], story.leases("four", "end")
    renewed = max(write.received for write in leases if write.holder.endswith(killed))
    taken = [write for before, write in moves(leases) if before.endswith(killed)]
    assert len(taken) == SHARDS // 4
    # Survivors renew every retry period; renewals that are late show that the machine is overloaded.
    late = lateness(leases, killed)
    for write in taken:
        waited = write.received - story.times["kill"]
        assert write.received - renewed > timedelta(seconds=TIMING.lease - TIMING.retry)
        assert waited < timedelta(seconds=TIMING.lease + 5) + 3 * late


def moves(leases: list[Write]) -> list[tuple[str, Write]]:
    """Return the acquisitions, each with the holder before."""
    holders: dict[int, str] = {}
    found = []
    for write in leases:
        if write.holder and holders.get(write.shard, write.holder) != write.holder:
            found.append((holders[write.shard], write))
        holders[write.shard] = write.holder
    return found


def lateness(leases: list[Write], killed: str) -> timedelta:
    """Return the longest time by which the renewal of a Lease by a survivor came too late."""
    latest = timedelta()
    for shard in range(SHARDS):
        own = [write for write in leases if write.shard == shard and not write.holder.endswith(killed)]
        gaps = [b.received - a.received for a, b in pairwise(own) if a.holder == b.holder]
        latest = max([latest, *(gap - timedelta(seconds=TIMING.retry) for gap in gaps)])
    return latest
