"""The records of the decision history, and which decisions are recorded. Pure.

A decision is recorded if its result or its explanation differs from that of the last record: another replica count,
limiting factor, condition, failing metric, class of a failure or spec. Decisions that differ only in the values of
metrics or in the texts of failures are not recorded.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from autoscaler.types import steps
from autoscaler.types.autoscaler import Autoscaler, Metadata
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.record import Record
from autoscaler.types.spec import ObjectReference, Spec
from autoscaler.types.status import Condition, Status
from autoscaler.types.steps import Step

_MAX_RECORD_BYTES: Final = 4096
"""Longer records are abridged: messages come from other systems, and a target can have thousands of pods."""

_MAX_TEXT: Final = 256
_MAX_ITEMS: Final = 16


class DecisionRecord(Record):
    """One recorded decision of an autoscaler, or its deletion."""

    at: datetime
    uid: str = ""
    generation: int = 0
    target: ObjectReference = ObjectReference()
    current: int = 0
    replicas: int = 0
    scale_to: int | None = None
    last_scale_time: datetime | None = None
    steps: tuple[Step, ...] = ()
    conditions: tuple[Condition, ...] = ()
    omitted: int = 0
    """Number of changes since the previous record that were not recorded, because of a limit."""

    deleted: bool = False
    """Whether the autoscaler was deleted at this time; there is no decision then."""

    @property
    def decision(self) -> Decision:
        status = Status(
            desired_replicas=self.replicas,
            current_replicas=self.current,
            last_scale_time=self.last_scale_time,
            conditions=self.conditions,
        )
        return Decision(
            self.at, self.replicas, self.scale_to, status, status_changed=False, history=History(), steps=self.steps
        )

    def autoscaler(self, key: str) -> Autoscaler:
        """Return the part of the object that is recorded."""
        namespace, _, name = key.partition("/")
        return Autoscaler(Metadata(name, namespace, uid=self.uid), Spec(scale_target_ref=self.target))


def record_of(autoscaler: Autoscaler, decision: Decision, omitted: int = 0) -> DecisionRecord:
    status = decision.status
    return DecisionRecord(
        at=decision.at,
        uid=autoscaler.metadata.uid,
        generation=autoscaler.metadata.generation,
        target=autoscaler.spec.scale_target_ref,
        current=status.current_replicas,
        replicas=decision.replicas,
        scale_to=decision.scale_to,
        last_scale_time=status.last_scale_time,
        steps=decision.steps,
        conditions=status.conditions,
        omitted=omitted,
    )


def fingerprint(autoscaler: Autoscaler, decision: Decision) -> int:
    """Return a hash of everything in a decision whose change is recorded; it is valid only in this process."""
    status = decision.status
    conditions = tuple((one.type, one.status, one.reason) for one in status.conditions)
    outline = tuple(_outline(step) for step in decision.steps)
    metadata = autoscaler.metadata
    replicas = (status.current_replicas, decision.replicas, decision.scale_to)
    return hash((metadata.uid, metadata.generation, replicas, conditions, outline))


def _outline(step: Step) -> object:
    """Return a step without the values that vary from reconcile to reconcile."""
    match step:
        case steps.MetricProposalStep(calculation=calculation):
            return step.metric, step.replicas, calculation.rule, calculation.target
        case steps.TargetStep():
            return step.replicas, step.minimum, step.maximum
        case _ if hasattr(step, "message"):  # the text may differ in every reconcile, unlike the class of a failure
            return replace(step, message="")
        case _:
            return step


def texts(decision: Decision) -> Iterator[str]:
    """Yield the messages of a decision: text of other systems, which compresses badly if it varies."""
    for condition in decision.status.conditions:
        yield condition.message
    for step in decision.steps:
        yield getattr(step, "message", "")


def encode(record: DecisionRecord) -> bytes:
    """Return a record as MessagePack, abridged if it is too long."""
    encoded = msgspec.msgpack.encode(record)
    if len(encoded) > _MAX_RECORD_BYTES:
        encoded = msgspec.msgpack.encode(_abridged(msgspec.to_builtins(record)))
    return encoded


def decode(encoded: bytes | msgspec.Raw) -> DecisionRecord | None:
    """Return a record; None if this version cannot decode it, for example because a newer one has written it."""
    try:
        return _DECODER.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


_DECODER: Final = msgspec.msgpack.Decoder(DecisionRecord)


def _abridged(value: Any) -> Any:  # noqa: ANN401 - JSON
    match value:
        case str() if len(value) > _MAX_TEXT:
            return f"{value[: _MAX_TEXT - 1]}…"
        case list() | tuple():
            return [_abridged(item) for item in value[:_MAX_ITEMS]]
        case dict():
            return {key: _abridged(item) for key, item in value.items()}
        case _:
            return value
