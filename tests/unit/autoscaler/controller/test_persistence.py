"""Persisted history: complete enough for equal decisions, and bounded in size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.algorithm.limit import limit
from autoscaler.algorithm.stabilize import stabilize
from autoscaler.controller.persistence import (
    MAX_ENTRIES,
    NOT_PERSISTED,
    UnreadableState,
    decode_history,
    encode_history,
    fingerprint,
    is_outdated,
)
from autoscaler.types.history import History, Recommendation, ScaleEvent, UnknownRescale
from autoscaler.types.spec import Policy
from tests.builders import NOW, SETTINGS, ago, later, make_behavior, make_rules, make_spec

PLAIN = make_spec()
BOTH_WINDOWS = make_spec(behavior=make_behavior(up=make_rules(window=120), down=make_rules(window=300)))


def recommended(*pairs):
    return History(tuple(Recommendation(replicas, ago(age)) for replicas, age in pairs))


def test_empty_history_is_not_encoded():
    assert encode_history(History(), PLAIN, SETTINGS, NOW) is None
    assert decode_history(None, NOW) == History()
    assert decode_history("", NOW) == History()


def test_only_recommendations_higher_than_all_later_ones_are_encoded():
    history = recommended((9, 290), (4, 200), (7, 100), (5, 50), (6, 20), (3, 0))
    text = encode_history(history, PLAIN, SETTINGS, NOW)
    assert text == "v1;at=2026-03-01T12:00:00.000Z;rec=9@290,7@100,6@20,3@0;up=;down="


def test_recommendation_outside_the_window_is_not_encoded():
    assert encode_history(recommended((9, 301)), PLAIN, SETTINGS, NOW) is None


def test_with_a_scale_up_window_the_lowest_recommendations_are_encoded_as_well():
    history = recommended((2, 110), (9, 100), (4, 50), (6, 0))
    text = encode_history(history, BOTH_WINDOWS, SETTINGS, NOW)
    assert text == "v1;at=2026-03-01T12:00:00.000Z;rec=2@110,9@100,4@50,6@0;up=;down="


def test_recommendation_in_effect_is_extended_until_now():
    text = encode_history(recommended((5, 100), (3, 0)), PLAIN, SETTINGS, NOW)
    recommendations = decode_history(text, later(40)).recommendations
    assert recommendations == (
        Recommendation(5, ago(100)),
        Recommendation(3, NOW),
        Recommendation(3, later(40)),
    )


def test_recommendation_not_in_effect_is_not_extended():
    text = encode_history(recommended((5, 100)), PLAIN, SETTINGS, NOW)
    assert decode_history(text, later(40)).recommendations == (Recommendation(5, ago(100)),)


def test_rescales_are_encoded_within_the_longest_policy_period():
    up, down = Policy("Pods", 4, 60), Policy("Pods", 4, 30)
    spec = make_spec(behavior=make_behavior(up=make_rules(up), down=make_rules(down)))
    history = History((), (ScaleEvent(4, ago(59)), ScaleEvent(2, ago(61))), (ScaleEvent(1, ago(45)),))
    text = encode_history(history, spec, SETTINGS, NOW)
    assert decode_history(text, NOW) == History((), (ScaleEvent(4, ago(59)),), (ScaleEvent(1, ago(45)),))


@pytest.mark.parametrize(
    "text",
    [
        "v2;at=x",
        "v1",
        "v1;;",
        "v1;at=yesterday;rec=;up=;down=",
        "v1;at=2026-03-01T12:00:00;rec=;up=;down=",
        "v1;at=0001-01-01T00:00:00+01:00;rec=;up=;down=",
        "v1;at=2026-03-01T12:00:00Z;rec=five@1;up=;down=",
        "v1;at=2026-03-01T12:00:00Z;rec=5@nan;up=;down=",
        "v1;at=2026-03-01T12:00:00Z;rec=5@inf;up=;down=",
        "v1;at=2026-03-01T12:00:00Z;rec=;up=2147483648@1;down=",
        "v1;at=2026-03-01T12:00:00Z;rec=;up=;down=-1@1",
        "v1;at=2026-03-01T12:00:00Z;rec=;up=;down=" + "1@1," * 3000,
    ],
)
def test_text_that_the_controller_did_not_write_is_unreadable(text):
    with pytest.raises(UnreadableState):
        decode_history(text, NOW)


texts = st.text(st.sampled_from("v1;at=rec=up=down=2026-03-01T:00Z@,.-+e95infa"), max_size=80)
numbers = st.integers(-(10**12), 10**12) | st.sampled_from([0, 5, 2**31 - 1, 2**31])
written_ages = st.floats() | st.sampled_from([0, 15.2, 1e300])
entries = st.lists(st.builds(lambda number, age: f"{number}@{age}", numbers, written_ages), max_size=3).map(",".join)
times = st.sampled_from(["2026-03-01T12:00:00Z", "2026-03-01T12:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
forged = st.builds("v1;at={};rec={};up={};down={}".format, times, entries, entries, entries)


@given(texts | forged, st.integers(0, 12), st.booleans())
def test_any_text_is_unreadable_or_a_history_that_can_be_used(text, wanted, has_behavior):
    spec = BOTH_WINDOWS if has_behavior else PLAIN
    try:
        history = decode_history(text, NOW)
    except UnreadableState:
        return
    stabilized = stabilize(wanted, 3, history.recommendations, spec.behavior, SETTINGS, NOW).step
    limited = limit(stabilized.replicas, 3, (0, 12), spec.behavior, history, NOW)
    assert 0 <= limited.replicas <= 12
    encode_history(history, spec, SETTINGS, NOW)


def test_unreadable_text_is_outdated():
    assert is_outdated(NOT_PERSISTED, fingerprint(History(), PLAIN, NOW))


def test_text_with_a_future_time_is_decoded_as_of_now():
    text = encode_history(recommended((5, 0)), PLAIN, SETTINGS, later(3600))
    assert decode_history(text, NOW).recommendations in ((), (Recommendation(5, NOW),))


def test_encoded_size_is_bounded():
    many = tuple(Recommendation(1000 - index, ago(299 - index)) for index in range(300))
    events = tuple(ScaleEvent(1, ago(index / 10)) for index in range(100))
    spec = make_spec(behavior=make_behavior(up=make_rules(window=3600), down=make_rules(window=3600)))
    text = encode_history(History(many, events, events), spec, SETTINGS, NOW)
    assert text is not None
    assert len(text) < 2000
    restored = decode_history(text, NOW)
    assert len(restored.recommendations) <= 2 * MAX_ENTRIES
    assert sum(event.change for event in restored.scale_ups) == 100


def test_persisted_history_is_outdated_by_new_entries_but_not_by_expired_ones():
    spec = BOTH_WINDOWS
    history = History((Recommendation(5, NOW),), (ScaleEvent(2, ago(10)),))
    persisted = fingerprint(history, spec, NOW)
    older = History((Recommendation(5, later(20)),), history.scale_ups)
    assert not is_outdated(persisted, fingerprint(older, spec, later(20)))
    changed = replace(older, recommendations=(Recommendation(4, later(20)),))
    assert is_outdated(persisted, fingerprint(changed, spec, later(20)))
    rescaled = replace(older, scale_ups=(*history.scale_ups, ScaleEvent(1, later(20))))
    assert is_outdated(persisted, fingerprint(rescaled, spec, later(20)))
    no_recommendation = replace(older, recommendations=(Recommendation(5, NOW),))
    assert is_outdated(persisted, fingerprint(no_recommendation, spec, later(20)))
    assert is_outdated(None, persisted)
    assert not is_outdated(None, fingerprint(History(), spec, NOW))


ages = st.floats(0, 400).map(lambda age: round(age, 3))
histories = st.lists(st.tuples(st.integers(0, 12), ages), max_size=20, unique_by=lambda entry: entry[1])
rescales = st.lists(st.tuples(st.integers(1, 5), ages), max_size=8)


@given(histories, rescales, rescales, st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_decisions_are_equal_before_and_after_a_restart(recs, ups, downs, wanted, current, has_behavior):
    spec = BOTH_WINDOWS if has_behavior else PLAIN
    history = History(
        tuple(Recommendation(replicas, ago(age)) for replicas, age in recs),
        tuple(ScaleEvent(change, ago(age)) for change, age in ups),
        tuple(ScaleEvent(change, ago(age)) for change, age in downs),
    )
    restored = decode_history(encode_history(history, spec, SETTINGS, NOW), NOW)
    before = stabilize(wanted, current, history.recommendations, spec.behavior, SETTINGS, NOW).step
    after = stabilize(wanted, current, restored.recommendations, spec.behavior, SETTINGS, NOW).step
    assert after == before
    assert limit(before.replicas, current, (0, 12), spec.behavior, restored, NOW) == limit(
        before.replicas, current, (0, 12), spec.behavior, history, NOW
    )


def test_rescales_with_unknown_outcome_are_encoded():
    first, second = UnknownRescale(4, 8, ago(20), "1234", "reason"), UnknownRescale(8, 0, ago(2.5), "")
    history = History(unknown=(first, second))
    text = encode_history(history, PLAIN, SETTINGS, NOW)
    assert text == "v1;at=2026-03-01T12:00:00.000Z;rec=;up=;down=;unknown=4>8@20@1234,8>0@2.5@"
    restored = decode_history(text, later(60)).unknown
    assert [replace(rescale, reason="") for rescale in restored] == [replace(first, reason=""), second]
    assert is_outdated(fingerprint(History(), PLAIN, NOW), fingerprint(history, PLAIN, NOW))


@pytest.mark.parametrize(
    "entry", ["4>8@20", "4@20@1", "4>8>9@1@1", "-1>8@1@1", "4>8@-1@1", "4>99999999999@1@1", "x>8@1@1"]
)
def test_unreadable_rescale_with_unknown_outcome_makes_the_state_unreadable(entry):
    with pytest.raises(UnreadableState):
        decode_history(f"v1;at=2026-03-01T12:00:00.000Z;rec=;up=;down=;unknown={entry}", NOW)
