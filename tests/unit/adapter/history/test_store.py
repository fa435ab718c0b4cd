"""Storing and reading segments: faults of the API server, limits, several writers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from adapter.config.model import DecisionHistory
from adapter.history import reader
from adapter.history.records import DecisionRecord
from adapter.history.segments import MAX_RAW_BYTES, records_in
from adapter.history.service import DecisionHistoryService
from adapter.history.store import LABEL
from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import Forbidden
from autoscaler.sharding.assignment import shard_of
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.types.autoscaler import Metadata
from tests.builders import make_autoscaler
from tests.fakes.cluster import Cluster
from tests.unit.adapter.history.test_recorder import SPEC, decisions

pytestmark = pytest.mark.looptime

ROLES = Path(__file__).parents[4] / "manifests" / "base" / "autoscaler-rbac.yaml"
CONFIG_MAPS = "/api/v1/namespaces/steadyscale/configmaps"
LOW, HIGH = decisions([30, 60])
MINUTE = timedelta(minutes=1)


class Replica:
    """The decision history of one replica."""

    def __init__(self, cluster: Cluster, kube: KubeClient, name: str, settings: DecisionHistory) -> None:
        self.registry = CollectorRegistry()
        self.clock = cluster.clock
        self.service = DecisionHistoryService(kube, "steadyscale", settings, self.clock, name, self.registry)
        self.recorder, self.writer, self.reader = self.service.recorder, self.service.writer, self.service.reader

    def lead(self, shards: HeldShards = HeldShards()) -> None:  # noqa: B008 - immutable
        self.recorder.on_leadership_acquired((), shards)

    def decide(self, *, high: bool = False, key: str = "shop/orders", uid: str = "") -> None:
        namespace, _, name = key.partition("/")
        autoscaler = replace(make_autoscaler(SPEC), metadata=Metadata(name, namespace, uid=uid or key))
        self.recorder.on_decision(key, autoscaler, replace(HIGH if high else LOW, at=self.clock()))

    async def replicas(self, key: str = "shop/orders") -> list[int]:
        period = await self.reader.period(key, self.clock() - timedelta(days=1), self.clock())
        return [record.replicas for record in period.records]

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"steadyscale_decision_history_{name}_total", labels) or 0.0


class Replicas:
    """Replicas that share a cluster."""

    def __init__(self, cluster: Cluster, kube: KubeClient) -> None:
        self.cluster = cluster
        self._kube = kube

    def add(self, name: str, **settings: object) -> Replica:
        return Replica(self.cluster, self._kube, name, replace(DecisionHistory(), **settings))

    def segments(self) -> list[dict[str, object]]:
        return self.cluster.list(CONFIG_MAPS)


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with Cluster.serving() as cluster, cluster.client() as kube:
        yield Replicas(cluster, kube)


async def test_other_replica_reads_what_the_leader_has_stored(replicas: Replicas):
    leader, follower = replicas.add("one"), replicas.add("two")
    leader.lead()
    leader.decide()
    await asyncio.sleep(20)
    leader.decide(high=True)
    assert await leader.replicas() == [3, 6]
    assert await follower.replicas() == []
    await leader.writer.write()
    await asyncio.sleep(5)
    assert await follower.replicas() == [3, 6]


async def test_autoscaler_of_another_shard_has_no_gap(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two")
    first.lead(HeldShards(2, (shard_of("shop", 2),)))
    second.lead(HeldShards(2, (1 - shard_of("shop", 2),)))
    first.decide()
    await asyncio.sleep(1200)
    for replica in (first, second):
        await replica.writer.write(force=True)
    moment = await second.reader.moment("shop/orders", second.clock() - timedelta(minutes=1))
    assert moment.record is not None
    assert moment.gap is None


async def test_term_without_a_decision_is_not_stored(replicas: Replicas):
    first = replicas.add("one")
    first.lead(HeldShards(4, (0,)))
    first.lead(HeldShards(4, (0, 1)))
    first.lead(HeldShards(4, (0, 1, 2)))
    await first.writer.write(force=True)
    assert len(replicas.segments()) == 1


async def test_autoscaler_deleted_between_two_leaders_has_a_gap_instead_of_no_change(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two")
    first.lead()
    first.decide()
    first.decide(key="shop/mails")
    await asyncio.sleep(60)
    first.recorder.on_leadership_lost()
    await first.writer.write()
    started_at = second.clock()
    second.lead()
    second.decide(key="shop/mails")
    await asyncio.sleep(3600)
    await second.writer.write(force=True)
    kept = await second.reader.moment("shop/mails", second.clock() - timedelta(minutes=10))
    deleted = await second.reader.moment("shop/orders", second.clock() - timedelta(minutes=10))
    period = await second.reader.period("shop/orders", started_at - timedelta(minutes=5), second.clock())
    before = await second.reader.moment("shop/orders", started_at - timedelta(seconds=30))
    assert kept.gap is before.gap is None
    assert deleted.gap is not None
    assert deleted.gap.start == started_at
    assert deleted.gap.reason.startswith("two, the leader, has no record of the autoscaler")
    assert [gap.start for gap in period.gaps] == [started_at]


async def test_autoscaler_created_again_after_a_change_of_the_leader_has_a_gap_until_then(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two")
    first.lead()
    first.decide()
    await asyncio.sleep(60)
    first.recorder.on_leadership_lost()
    await first.writer.write()
    started_at = second.clock()
    second.lead()
    await asyncio.sleep(3600)
    created_at = second.clock()
    second.decide(uid="another")
    await asyncio.sleep(60)
    await second.writer.write()
    answer = await second.reader.moment("shop/orders", started_at + timedelta(minutes=30))
    period = await second.reader.period("shop/orders", started_at - timedelta(minutes=5), second.clock())
    earlier = await second.reader.period("shop/orders", started_at - timedelta(minutes=5), started_at + 30 * MINUTE)
    assert answer.gap is not None
    assert (answer.gap.start, answer.gap.end) == (started_at, created_at)
    assert period.gaps == earlier.gaps == (answer.gap,)


async def test_slow_first_reconcile_after_a_change_of_the_leader_is_not_a_gap(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two")
    first.lead()
    first.decide()
    await asyncio.sleep(60)
    first.recorder.on_leadership_lost()
    await first.writer.write()
    second.lead()
    await asyncio.sleep(1800)
    second.decide()
    await second.writer.write()
    answer = await second.reader.moment("shop/orders", second.clock() - timedelta(minutes=10))
    assert answer.gap is None


async def test_number_of_requests_does_not_depend_on_the_number_of_records(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    writing = asyncio.create_task(leader.writer.run())
    for second in range(600):
        leader.decide(high=bool(second // 50 % 2), key=f"shop/{second % 50}")
        await asyncio.sleep(1)
    writes = [request for request in replicas.cluster.requests if request.verb in {"create", "update"}]
    writing.cancel()
    await asyncio.wait((writing,))
    assert 30 < len(writes) <= 41
    assert len(replicas.segments()) == 1


async def test_idle_leader_reports_until_when_it_has_recorded(replicas: Replicas):
    leader, follower = replicas.add("one"), replicas.add("two")
    leader.lead()
    leader.decide()
    writing = asyncio.create_task(leader.writer.run())
    await asyncio.sleep(3600)
    writes = len([request for request in replicas.cluster.requests if request.verb in {"create", "update"}])
    answer = await follower.reader.moment("shop/orders", leader.clock() - timedelta(seconds=61))
    writing.cancel()
    await asyncio.wait((writing,))
    assert writes <= 61
    assert answer.gap is None
    assert answer.recorded_until is not None
    assert answer.recorded_until > answer.at


async def test_segment_is_sealed_when_it_is_full(replicas: Replicas):
    leader, follower = replicas.add("one"), replicas.add("two")
    leader.lead()
    for index in range(1500):
        leader.decide(key=f"shop/{index}")
    await leader.writer.write()
    stored = replicas.segments()
    assert len(stored) == 2
    assert {segment["immutable"] for segment in stored} == {False, True}
    assert all(segment["metadata"]["labels"][LABEL] == "segment" for segment in stored)  # type: ignore[index]
    assert max(len(str(segment["binaryData"])) for segment in stored) < MAX_RAW_BYTES / 8
    assert await follower.replicas("shop/0") == await follower.replicas("shop/1499") == [3]


async def test_many_concurrent_reads_use_one_thread_at_a_time(replicas: Replicas, monkeypatch: pytest.MonkeyPatch):
    leader, follower = replicas.add("one"), replicas.add("two")
    leader.lead()
    for index in range(6000):
        leader.decide(key=f"shop/{index}")
    await leader.writer.write()
    running, most = [0], [0]

    def counted(content: bytes, key: str) -> tuple[DecisionRecord, ...]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        try:
            return records_in(content, key)
        finally:
            running[0] -= 1

    monkeypatch.setattr(reader, "records_in", counted)
    await asyncio.gather(*(follower.replicas(f"shop/{index}") for index in range(0, 6000, 250)))
    assert most == [1]


async def test_reader_fetches_only_segments_of_the_autoscaler(replicas: Replicas):
    leader, follower = replicas.add("one"), replicas.add("two")
    leader.lead()
    for index in range(6000):
        leader.decide(key=f"shop/{index}")
    await leader.writer.write()
    assert len(replicas.segments()) > 5
    replicas.cluster.requests.clear()
    await follower.replicas("shop/17")
    assert [request.verb for request in replicas.cluster.requests].count("get") <= 2
    await follower.replicas("shop/17")
    assert len(replicas.cluster.requests) <= 3


async def test_records_are_stored_after_an_outage_of_the_api_server(
    replicas: Replicas, caplog: pytest.LogCaptureFixture
):
    leader = replicas.add("one")
    leader.lead()
    replicas.cluster.faults.fail_all_with = 503
    leader.decide()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert not await leader.writer.write()
    assert "injected fault" in str(leader.writer.problem)
    assert len([line for line in caplog.messages if "decision history" in line]) == 1
    assert leader.metric("writes", result="failed") == 5
    replicas.cluster.faults.fail_all_with = 0
    assert await leader.writer.write()
    assert leader.writer.problem is None
    assert await replicas.add("two").replicas() == [3]


@pytest.mark.parametrize("code", [403, 413, 422, 429, 500, 504])
async def test_buffer_is_bounded_while_nothing_can_be_stored(replicas: Replicas, code: int):
    leader = replicas.add("one")
    leader.lead()
    replicas.cluster.faults.fail_next(code, times=10_000, within="/configmaps")
    for index in range(14_000):
        leader.decide(key=f"shop/{index}")
    await leader.writer.write()
    await leader.writer.write()
    buffered = list(leader.recorder._buffer.segments())
    assert sum(segment._raw_bytes for segment in buffered) < 10 * MAX_RAW_BYTES
    assert leader.metric("lost_records", reason="storage") > 3000


async def test_lost_records_are_a_gap(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    await leader.writer.write()
    before = leader.clock()
    replicas.cluster.faults.fail_next(500, times=10_000, within="/configmaps")
    for index in range(14_000):
        leader.decide(key=f"shop/{index}")
        if index % 1000 == 0:
            await asyncio.sleep(1)
    replicas.cluster.faults.clear()
    await leader.writer.write()
    answer = await replicas.add("two").reader.moment("shop/orders", before + timedelta(seconds=1))
    assert answer.gap is not None
    assert answer.gap.reason == "the records of this period could not be stored"


@pytest.mark.parametrize("code", [413, 422])
async def test_rejected_segment_is_dropped_and_does_not_block_later_ones(
    replicas: Replicas, code: int, caplog: pytest.LogCaptureFixture
):
    leader = replicas.add("one")
    leader.lead()
    for index in range(1500):
        leader.decide(key=f"shop/{index}")
    lost = len(next(leader.recorder._buffer.segments()))
    replicas.cluster.faults.fail_next(code, times=1, within="/configmaps")
    with caplog.at_level(logging.WARNING):
        assert await leader.writer.write()
    follower = replicas.add("two")
    assert leader.writer.problem is None
    assert await follower.replicas("shop/0") == []
    assert await follower.replicas("shop/1499") == [3]
    assert "segment of the decision history dropped, because the API server rejects it" in caplog.messages
    await leader.writer.write()
    assert leader.metric("lost_records", reason="storage") == lost


@pytest.mark.parametrize("code", [401, 403, 409, 429, 500])
async def test_segment_is_kept_after_a_failure_that_may_end(replicas: Replicas, code: int):
    leader = replicas.add("one")
    leader.lead()
    for index in range(1500):
        leader.decide(key=f"shop/{index}")
    replicas.cluster.faults.fail_next(code, times=3, within="/configmaps")
    while not await leader.writer.write():
        pass
    assert await replicas.add("two").replicas("shop/0") == [3]


@pytest.mark.parametrize("verb", ["list", "delete"])
async def test_failed_deletion_of_old_segments_is_not_a_failed_write(
    replicas: Replicas, verb: str, caplog: pytest.LogCaptureFixture
):
    leader = replicas.add("one", max_bytes=1)
    leader.lead()
    replicas.cluster.faults.forbid(verb, "configmaps")
    with caplog.at_level(logging.WARNING):
        assert await leader.writer.write(force=True)
    assert leader.writer.problem is None
    assert leader.metric("writes", result="failed") == 0
    assert caplog.messages == ["old segments of the decision history cannot be deleted"]


async def test_exceeded_quota_does_not_advise_to_apply_the_role(replicas: Replicas, monkeypatch: pytest.MonkeyPatch):
    async def refuse(*_: object, **__: object) -> None:
        raise Forbidden('403: configmaps "decision-history" is forbidden: exceeded quota: small', code=403)

    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    monkeypatch.setattr("adapter.history.store.SegmentStore.write", refuse)
    assert not await leader.writer.write()
    assert leader.writer.problem is not None
    assert "Role" not in leader.writer.problem
    assert leader.writer.problem.endswith("; raise the ResourceQuota, or lower decisionHistory.maxBytes")


async def test_missing_permission_names_the_role(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    replicas.cluster.faults.forbid("create", "configmaps")
    await leader.writer.write()
    assert leader.writer.problem is not None
    assert "steadyscale:decision-history" in leader.writer.problem


async def test_role_grants_exactly_the_permissions_used(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two", max_age=timedelta(seconds=1))
    first.lead()
    first.decide()
    await first.writer.write()
    first.decide(high=True)
    await first.writer.write()
    assert await second.replicas() == [3, 6]
    await asyncio.sleep(5)
    second.lead()
    await second.writer.write(force=True)
    documents = yaml.safe_load_all(await asyncio.to_thread(ROLES.read_text))
    roles = [one for one in documents if one["metadata"]["name"] == "steadyscale:decision-history"]
    ((rule,), namespace) = roles[0]["rules"], roles[0]["metadata"]["namespace"]
    assert (rule["resources"], namespace, roles[0]["kind"]) == (["configmaps"], "steadyscale", "Role")
    assert {request.verb for request in replicas.cluster.requests} == set(rule["verbs"])


async def test_response_that_was_lost_does_not_prevent_later_writes(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    await leader.writer.write()
    (segment,) = leader.recorder._buffer.segments()
    segment.stored_records = -1  # the create was processed, and its response was lost
    leader.decide(high=True)
    assert await leader.writer.write()
    await asyncio.sleep(3)
    assert await replicas.add("two").replicas() == [3, 6]


async def test_segment_deleted_by_another_client_is_created_again(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    await leader.writer.write()
    for segment in replicas.segments():
        replicas.cluster.delete(f"{CONFIG_MAPS}/{segment['metadata']['name']}")  # type: ignore[index]
    leader.decide(high=True)
    assert await leader.writer.write()
    assert await replicas.add("two").replicas() == [3, 6]


async def test_two_leaders_do_not_overwrite_each_other(replicas: Replicas):
    first, second = replicas.add("one"), replicas.add("two")
    first.lead()
    second.lead()
    for index in range(10):
        first.decide(high=bool(index % 2))
        second.decide(high=bool(index % 2), key="shop/mails")
        await asyncio.sleep(1)
        await asyncio.gather(first.writer.write(), second.writer.write())
    third = replicas.add("three")
    assert len(await third.replicas("shop/orders")) == len(await third.replicas("shop/mails")) == 10


async def test_oldest_segments_are_deleted_beyond_the_limit(replicas: Replicas):
    leader = replicas.add("one", max_bytes=100_000)
    leader.lead()
    for _ in range(20):
        for index in range(2000):
            leader.decide(key=f"shop/{index}", high=bool(index % 2))
        leader.recorder._last.clear()
        await asyncio.sleep(700)
        await leader.writer.write()
    await asyncio.sleep(700)
    await leader.writer.write(force=True)
    stored = await leader.service.reader._segments()
    assert sum(segment.size for segment in stored) <= 130_000
    assert await leader.replicas("shop/7")


async def test_segments_are_deleted_after_the_maximum_age(replicas: Replicas):
    first = replicas.add("one")
    first.lead()
    first.decide()
    first.recorder.on_leadership_lost()
    await first.writer.write()
    await asyncio.sleep(3700)
    second = replicas.add("two", max_age=timedelta(hours=1))
    second.lead()
    second.decide(high=True)
    await second.writer.write()
    assert await second.replicas() == [6]
    assert len(replicas.segments()) == 1


async def test_damaged_segments_and_other_config_maps_are_left_out(replicas: Replicas):
    leader = replicas.add("one")
    leader.lead()
    leader.decide()
    await leader.writer.write()
    annotations = {"steadyscale.dev/segment": "{}"}
    labels = {LABEL: "segment"}
    replicas.cluster.create(CONFIG_MAPS, {"metadata": {"name": "x", "labels": labels, "annotations": annotations}})
    replicas.cluster.create(CONFIG_MAPS, {"metadata": {"name": "y", "labels": labels}})
    follower = replicas.add("two")
    assert await follower.replicas() == [3]
    (name,) = [one["metadata"]["name"] for one in replicas.segments() if "binaryData" in one]  # type: ignore[index]
    replicas.cluster.patch(f"{CONFIG_MAPS}/{name}", {"binaryData": {"records": "AAAA"}})
    await asyncio.sleep(3)
    assert await replicas.add("three").replicas() == []
