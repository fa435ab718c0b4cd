"""Which decisions are recorded, and the limits per autoscaler and namespace."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from adapter.history.recorder import BURST, RECOVERY, REPEAT_INTERVAL, DecisionRecorder, NamespaceShares
from adapter.history.records import DecisionRecord, decode, encode, record_of
from adapter.history.segments import MAX_RAW_BYTES
from adapter.history.write_buffer import WriteBuffer
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from autoscaler.types.steps import MetricFallbackStep, MetricUnavailableStep
from tests.builders import (
    NOW,
    ReconcileInput,
    external_reading,
    later,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_spec,
    run_reconciles,
    unavailable_reading,
)

SPEC = make_spec(make_external_metric("orders", average="10", fallback=make_fallback(6, 180)))
ROOMY = 10**9


class Recording:
    """A recorder with a term, and its buffer."""

    def __init__(self, bytes_per_day: int = ROOMY) -> None:
        self.now = NOW
        self.buffer = WriteBuffer(lambda: "term")
        shares = NamespaceShares(bytes_per_day)
        self.recorder = DecisionRecorder(self.buffer, shares, lambda: self.now, "pod_1_abc")
        self.recorder.on_leadership_acquired(())

    def decide(self, decision: Decision, key: str = "shop/orders", spec: Autoscaler | None = None) -> None:
        self.now = decision.at
        namespace, _, name = key.partition("/")
        autoscaler = spec or replace(make_autoscaler(SPEC), metadata=Metadata(name, namespace, uid=key))
        self.recorder.on_decision(key, autoscaler, decision)

    def records(self, key: str = "shop/orders") -> list[DecisionRecord]:
        return [record for segment in self.buffer.segments() for record in segment.records_of(key)]


def decisions(values: list[float | None], replicas: int = 3) -> list[Decision]:
    """Return the decisions for the values of a metric, 15 seconds apart; None is a failure to read it."""
    readings = [unavailable_reading() if value is None else external_reading(value) for value in values]
    inputs = [ReconcileInput(15 * index, (reading,)) for index, reading in enumerate(readings)]
    return list(run_reconciles(SPEC, inputs, replicas=replicas))


def test_unchanged_decisions_are_recorded_once():
    recording = Recording()
    for decision in decisions([30] * 40):
        recording.decide(decision)
    assert len(recording.records()) == 1


def test_values_within_tolerance_cause_no_records():
    recording = Recording()
    for decision in decisions([30 + index % 3 * 0.5 for index in range(40)]):
        recording.decide(decision)
    assert len(recording.records()) == 1


def test_rescale_failure_fallback_and_recovery_are_recorded_with_their_steps():
    recording = Recording()
    for decision in decisions([30, 30, 60, 60, *[None] * 16, 30, 30]):
        recording.decide(decision)
    records = recording.records()
    assert [record.replicas for record in records if record.scale_to is not None] == [6]
    first_failure = next(record for record in records if isinstance(record.steps[1], MetricUnavailableStep))
    fallback = next(record for record in records if isinstance(record.steps[1], MetricFallbackStep))
    assert (first_failure.at, fallback.at) == (later(60), later(60 + 180))
    assert 5 <= len(records) <= 10


def test_changed_spec_is_recorded():
    recording = Recording()
    (decision,) = decisions([30])
    for generation in (1, 1, 2):
        metadata = Metadata("orders", "shop", uid="it", generation=generation)
        recording.decide(decision, spec=replace(make_autoscaler(SPEC), metadata=metadata))
    assert [record.generation for record in recording.records()] == [1, 2]


def test_unchanged_decision_is_recorded_again_after_the_repeat_interval():
    recording = Recording()
    (decision,) = decisions([30])
    for hours in range(25):
        recording.decide(replace(decision, at=NOW + timedelta(hours=hours)))
    assert [record.at for record in recording.records()] == [NOW, NOW + REPEAT_INTERVAL, NOW + 2 * REPEAT_INTERVAL]


def test_new_term_records_every_autoscaler_again():
    recording = Recording()
    (decision,) = decisions([30])
    recording.decide(decision)
    recording.recorder.on_leadership_lost()
    recording.recorder.on_leadership_acquired(("shop/orders",))
    recording.decide(decision)
    assert len(recording.records()) == 2


def test_deletion_is_recorded():
    recording = Recording()
    (decision,) = decisions([30])
    recording.decide(decision)
    recording.recorder.on_deleted("shop/orders")
    assert [record.deleted for record in recording.records()] == [False, True]


def test_deletion_of_an_autoscaler_without_a_record_is_not_recorded():
    recording = Recording(bytes_per_day=1)
    (decision,) = decisions([30])
    recording.decide(decision)
    recording.recorder.on_deleted("shop/orders")
    assert recording.records() == []


def test_namespace_that_creates_and_deletes_autoscalers_uses_at_most_half_of_the_bytes_of_a_day():
    recording = Recording(bytes_per_day=100_000)
    for index in range(3000):
        key = f"hostile/{index:0200}"
        recording.decide(flapping(NOW, 0), key=key)
        recording.recorder.on_deleted(key)
    (segment,) = recording.buffer.segments()
    assert 0 < len(segment) <= 50_000 / 100


def test_segment_of_short_records_with_long_keys_is_sealed_before_it_is_too_large():
    recording = Recording()
    for index in range(3 * MAX_RAW_BYTES // 253):
        key = f"{'n' * 63}/{index:0253}"
        recording.buffer.add(key, DecisionRecord(at=NOW, deleted=True), NOW)
    largest = max(sum(map(len, segment.entries())) for segment in recording.buffer.segments())
    assert largest <= MAX_RAW_BYTES * 1.1


def flapping(at: datetime, index: int) -> Decision:
    low, high = decisions([30, 60])
    return replace((low, high)[index % 2], at=at)


def test_flapping_autoscaler_is_limited_and_the_number_of_omitted_changes_is_recorded():
    recording = Recording()
    total = 4 * BURST
    for index in range(total):
        recording.decide(flapping(NOW + timedelta(seconds=15 * index), index))
    records = recording.records()
    elapsed = timedelta(seconds=15 * total)
    assert len(records) <= BURST + elapsed / RECOVERY + 1
    assert recording.recorder.omitted > BURST / 2
    assert sum(record.omitted for record in records) >= recording.recorder.omitted - 4


def test_last_change_of_a_flapping_autoscaler_is_recorded_later():
    recording = Recording()
    for index in range(2 * BURST):
        recording.decide(flapping(NOW + timedelta(seconds=index), index))
    steady = flapping(NOW, 1)
    for index in range(10):
        recording.decide(replace(steady, at=NOW + timedelta(seconds=2 * BURST + 15 * index)))
    assert recording.records()[-1].replicas == steady.replicas


def test_hostile_namespace_uses_at_most_half_of_the_bytes_of_a_day():
    recording = Recording(bytes_per_day=100_000)
    for index in range(3000):
        recording.decide(flapping(NOW, 0), key=f"hostile/{index}")
    for index in range(300):
        recording.decide(flapping(NOW, 0), key=f"shop/{index}")
    hostile = sum(bool(recording.records(f"hostile/{index}")) for index in range(3000))
    shop = sum(bool(recording.records(f"shop/{index}")) for index in range(300))
    assert 100 < hostile <= 50_000 / 64
    assert shop >= hostile / 2 - 1


def test_failure_with_a_text_that_differs_in_every_reconcile_is_recorded_once_per_class():
    recording = Recording()
    texts = [f"no response within 5s (request {index})" for index in range(20)]
    inputs = [ReconcileInput(15 * index, (unavailable_reading(text),)) for index, text in enumerate(texts)]
    for decision in run_reconciles(SPEC, inputs, replicas=3):
        recording.decide(decision)
    failing, fallback, *rest = recording.records()
    assert (failing.at, fallback.at) == (NOW, later(180))
    assert len(rest) <= 2  # the rescale to the fallback


def test_varying_messages_cost_their_length():
    varying, constant = Recording(bytes_per_day=40_000), Recording(bytes_per_day=40_000)
    for index in range(100):
        readings = [unavailable_reading(f"{index} {'x' * 1000}"), unavailable_reading(f"0 {'x' * 1000}")]
        for recording, reading in zip((varying, constant), readings, strict=True):
            (decision,) = run_reconciles(SPEC, [ReconcileInput(0, (reading,))], replicas=3 + index % 2)
            recording.decide(replace(decision, at=later(60 * index)))
    assert len(varying.records()) < 20
    assert len(constant.records()) == 100


def test_decision_that_cannot_be_recorded_raises_nothing_and_is_counted():
    recording = Recording()
    reading = unavailable_reading("\ud800 is not valid in UTF-8")
    (decision,) = run_reconciles(SPEC, [ReconcileInput(0, (reading,))], replicas=3)
    recording.decide(decision)
    recording.decide(replace(decision, at=later(15)))
    assert (recording.records(), recording.recorder.omitted) == ([], 2)
    (valid,) = decisions([30])
    recording.decide(valid)
    assert len(recording.records()) == 1


def test_long_record_is_abridged():
    (decision,) = run_reconciles(SPEC, [ReconcileInput(0, (unavailable_reading("x" * 100_000),))], replicas=3)
    encoded = encode(record_of(make_autoscaler(SPEC), decision))
    abridged = decode(encoded)
    assert len(encoded) < 4096
    assert abridged is not None
    assert abridged.replicas == decision.replicas
    assert [type(step) for step in abridged.steps] == [type(step) for step in decision.steps]


def test_record_of_a_newer_version_is_left_out():
    assert decode(b"\x81\xa2at\xa3soon") is None
    assert decode(b"not a record") is None
