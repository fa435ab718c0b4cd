"""Moments, segments and gaps, with generated inputs."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.history.coverage import gaps
from adapter.history.moments import parse_moment
from adapter.history.records import DecisionRecord, encode
from adapter.history.segments import (
    MAX_RAW_BYTES,
    SegmentInfo,
    compress,
    encode_entry,
    expired,
    pack_keys,
    records_in,
)

NOW = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)
TIMES = st.integers(0, 10_000).map(lambda seconds: NOW + timedelta(seconds=seconds))
KEYS = st.sampled_from(["shop/orders", "shop/mails", "bank/orders", "a/b"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("03:12", datetime(2026, 11, 17, 3, 12, tzinfo=UTC)),
        ("23:50:07", datetime(2026, 11, 16, 23, 50, 7, tzinfo=UTC)),
        ("03:12+02:00", datetime(2026, 11, 17, 1, 12, tzinfo=UTC)),
        ("2h ago", datetime(2026, 11, 17, 7, 30, tzinfo=UTC)),
        ("90m", datetime(2026, 11, 17, 8, 0, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 10, 9, 30, tzinfo=UTC)),
        ("now", NOW),
        ("2026-11-16T03:12:00Z", datetime(2026, 11, 16, 3, 12, tzinfo=UTC)),
        ("2026-11-16 03:12", datetime(2026, 11, 16, 3, 12, tzinfo=UTC)),
        ("2026-11-16T03:12:00+01:00", datetime(2026, 11, 16, 2, 12, tzinfo=UTC)),
    ],
)
def test_moment_is_parsed(text: str, expected: datetime):
    assert parse_moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "25:00", "03", "-1h", "9999999999d", "1" * 200, "2026-13-01"])
def test_text_that_is_no_moment_is_rejected(text: str):
    with pytest.raises(ValueError, match=r"03:12"):
        parse_moment(text, NOW)


@given(st.text(max_size=80))
@settings(deadline=None)
def test_any_text_is_parsed_or_rejected(text: str):
    with contextlib.suppress(ValueError):
        assert parse_moment(text, NOW).tzinfo is UTC


@given(st.lists(st.tuples(KEYS, TIMES, st.text(max_size=50), st.integers(0, 100)), max_size=40))
@settings(deadline=None)
def test_records_of_a_key_are_read_as_they_were_written(written: list[tuple[str, datetime, str, int]]):
    records = [(key, DecisionRecord(at=at, uid=text, replicas=count)) for key, at, text, count in written]
    content = compress([encode_entry(key, encode(record)) for key, record in records])
    segment = SegmentInfo("t", 1, "one", NOW, NOW, keys=pack_keys(key for key, _ in records))
    for key in {key for key, _ in records}:
        expected = sorted((one for other, one in records if other == key), key=lambda one: one.at)
        assert list(records_in(content, key)) == expected
        assert segment.may_contain(key)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_damaged_content_raises_only_value_error(content: bytes):
    with pytest.raises(ValueError, match="damaged segment"):
        records_in(content, "shop/orders")


@given(st.text(st.characters(codec="utf-8"), max_size=400))
@settings(deadline=None)
def test_full_segment_fits_into_a_config_map(text: str):
    entry = encode_entry("shop/orders", encode(DecisionRecord(at=NOW, uid=text)))
    entries = [entry] * (MAX_RAW_BYTES // len(entry) + 1)
    assert len(compress(entries)) < MAX_RAW_BYTES


def info(term: str, start: datetime, until: datetime, size: int = 0) -> SegmentInfo:
    return SegmentInfo(term, 1, term, start, until, size=size)


PERIODS = st.lists(st.tuples(st.sampled_from("ab"), TIMES, st.integers(0, 500)), max_size=12)


@given(PERIODS, TIMES)
@settings(deadline=None)
def test_moment_is_in_a_gap_exactly_if_no_segment_covers_it(periods: list[tuple[str, datetime, int]], moment: datetime):
    segments = [info(term, start, start + timedelta(seconds=length)) for term, start, length in periods]
    covered = any(one.start <= moment <= one.until for one in segments)
    inside = any(one.until < moment for one in segments) and any(one.start > moment for one in segments)
    assert any(gap.contains(moment) for gap in gaps(segments)) == (inside and not covered)


@given(PERIODS, st.integers(1, 300))
@settings(deadline=None)
def test_newest_segments_are_kept_within_the_limit(periods: list[tuple[str, datetime, int]], limit: int):
    segments = [info(term, start, start + timedelta(seconds=size), size) for term, start, size in periods]
    deleted = expired(segments, NOW, limit, timedelta(days=1))
    kept = [one for one in segments if one not in deleted]
    assert sum(one.size for one in kept) <= limit
    assert all(old.until <= new.until for old in deleted for new in kept)


def test_segments_without_records_count_against_the_limit():
    """Each change of the leader creates a segment: a Lease that is lost every minute must not fill etcd."""
    segments = [info("a", NOW, NOW + timedelta(seconds=index)) for index in range(10_000)]
    assert len(segments) - len(expired(segments, NOW, 2**20, timedelta(days=1))) <= 1024
