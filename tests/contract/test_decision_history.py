"""Segments of the decision history: metadata-only lists, immutable segments, deletion."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from adapter.history.records import DecisionRecord, encode
from adapter.history.segments import MAX_RAW_BYTES, SegmentInfo, compress, encode_entry, pack_keys, records_in
from adapter.history.store import SegmentStore
from autoscaler.kube.errors import BadRequest, NotFound
from tests.contract.api import Api

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def segment(**changes: object) -> SegmentInfo:
    info = SegmentInfo(
        uuid.uuid4().hex, 1, "pod-1", START, START + timedelta(minutes=1), keys=pack_keys(["shop/orders"])
    )
    return replace(info, **changes)


def content(*replicas: int) -> bytes:
    records = [DecisionRecord(at=START + timedelta(seconds=count), replicas=count) for count in replicas]
    return compress([encode_entry("shop/orders", encode(record)) for record in records])


async def test_segment_is_created_replaced_listed_fetched_and_deleted(api: Api):
    store, info = SegmentStore(api.client, "default"), segment(records=1)
    await store.write(info, content(1), exists=False)
    await store.write(replace(info, records=2), content(1, 2), exists=True)
    listed = {one.name: one for one in await store.list()}
    assert listed[info.name] == replace(info, records=2)
    stored = records_in(await store.fetch(info.name), "shop/orders")
    assert [record.replicas for record in stored] == [1, 2]
    await store.delete(info.name)
    await store.delete(info.name)
    assert info.name not in {one.name for one in await store.list()}
    with pytest.raises(NotFound):
        await store.fetch(info.name)


async def test_create_and_replace_succeed_whether_the_segment_exists_or_not(api: Api):
    store = SegmentStore(api.client, "default")
    missing, existing = segment(), segment()
    await store.write(missing, content(1), exists=True)
    await store.write(existing, content(1), exists=False)
    await store.write(existing, content(1, 2), exists=False)
    assert len(records_in(await store.fetch(existing.name), "shop/orders")) == 2
    for info in (missing, existing):
        await store.delete(info.name)


async def test_list_contains_no_records(api: Api):
    store, info = SegmentStore(api.client, "default"), segment()
    await store.write(info, content(1), exists=False)
    path = "/api/v1/namespaces/default/configmaps"
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    body = await api.client.get_bytes(path, {}, accept=accept)
    await store.delete(info.name)
    assert info.name.encode() in body
    assert b'"binaryData"' not in body


async def test_sealed_segment_cannot_be_replaced_by_a_delayed_request(api: Api):
    store, info = SegmentStore(api.client, "default"), segment()
    await store.write(info, content(1), exists=False)
    await store.write(replace(info, is_sealed=True), content(1, 2), exists=True)
    with pytest.raises(BadRequest):
        await store.write(info, content(1), exists=True)
    assert len(records_in(await store.fetch(info.name), "shop/orders")) == 2
    await store.delete(info.name)


async def test_largest_segment_is_accepted(api: Api):
    store, info = SegmentStore(api.client, "default"), segment()
    random_text = "".join(chr(33 + byte % 90) for byte in uuid.uuid4().bytes * 100)
    entries = [
        encode_entry("shop/orders", encode(DecisionRecord(at=START, uid=f"{uuid.uuid4().hex * 4}{random_text[:8]}")))
        for _ in range(MAX_RAW_BYTES // 170)
    ]
    await store.write(info, compress(entries), exists=False)
    assert len(records_in(await store.fetch(info.name), "shop/orders")) == len(entries)
    await store.delete(info.name)
