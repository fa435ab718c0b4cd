"""Persists the history of an autoscaler in its status, so that a restarted controller continues from it.

Only recommendations that can still determine a result are stored: for the scale-down window those higher than all
later ones, for the scale-up window those lower. If there are too many, two of similar size are replaced by the more
restrictive one with the later time. The text is therefore short, and a restarted controller decides as the previous
one would have.

``v1;at=2026-03-01T12:00:00.000Z;rec=5@285.01,3@0;up=4@15.2;down=`` means: relative to that time, 5 replicas were
recommended 285.01 s before and 3 at that time, and a rescale added 4 replicas 15.2 s before. A last recommendation of
age 0 was still in effect when the text was written. A later change would have changed the status, so it stayed in
effect until the restart. A last field ``unknown=4>8@2@1234`` means that the outcome of a rescale from 4 to 8 replicas
2 s before is unknown, and that the write requires the target's resourceVersion 1234.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, TypeAlias

from autoscaler.settings import Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent, UnknownRescale
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior, Spec
from autoscaler.values.arithmetic import MAX_INT32
from autoscaler.values.timestamps import format_rfc3339

MAX_ENTRIES: Final = 24
"""Maximum number of entries of each kind; keeps the text below two kilobytes."""

_MAX_LENGTH: Final = 8192
"""A longer text is unreadable."""

_RESTORED: Final = "decided by the previous leader"
"""The reason of a restored rescale; the original one is not persisted."""

_Entry: TypeAlias = tuple[int, datetime]
"""A number of replicas and its time."""


class Fingerprint(Record):
    """The part of a history that a restart would lose; histories with equal fingerprints are not written twice."""

    recommended: int | None
    """The recommendation of the last reconcile; None if there was none."""

    scale_ups: tuple[ScaleEvent, ...]
    scale_downs: tuple[ScaleEvent, ...]
    unknown: tuple[UnknownRescale, ...] = ()


NOT_PERSISTED: Final = Fingerprint(-1, (), ())
"""The fingerprint of an unreadable text: it differs from that of every history, so that the text is replaced."""


def fingerprint(history: History, spec: Spec, now: datetime) -> Fingerprint:
    last = _latest(history.recommendations)
    recommended = last.replicas if last is not None and last.at == now else None
    if not history.scale_ups and not history.scale_downs:
        return Fingerprint(recommended, (), (), history.unknown)
    period = _longest_period(spec.behavior or Behavior())
    ups, downs = _within(history.scale_ups, period, now), _within(history.scale_downs, period, now)
    return Fingerprint(recommended, ups, downs, history.unknown)


def is_outdated(persisted: Fingerprint | None, current: Fingerprint) -> bool:
    """Return whether entries were added since the history was persisted; entries that have expired do not count."""
    if persisted is None:
        return current != Fingerprint(None, (), ())
    return current != persisted and (
        (persisted.recommended, persisted.unknown) != (current.recommended, current.unknown)
        or not set(current.scale_ups) <= set(persisted.scale_ups)
        or not set(current.scale_downs) <= set(persisted.scale_downs)
    )


def encode_history(history: History, spec: Spec, settings: Settings, now: datetime) -> str | None:
    """Serialize a history; None if no window or policy needs it."""
    behavior = spec.behavior or Behavior()
    since = now - _longest_window(behavior, settings)
    recent = sorted((entry.at, entry.replicas) for entry in history.recommendations if entry.at >= since)
    entries = [(replicas, at) for at, replicas in recent]
    lowest = list(_extremes(entries, highest=False)) if _up_window(behavior) else []
    extremes = {
        *_merge_similar(list(_extremes(entries, highest=True)), highest=True),
        *_merge_similar(lowest, highest=False),
    }
    period = _longest_period(behavior)
    ups = _merge_oldest((event.change, event.at) for event in _within(history.scale_ups, period, now))
    downs = _merge_oldest((event.change, event.at) for event in _within(history.scale_downs, period, now))
    if not (extremes or ups or downs or history.unknown):
        return None
    recommendations = sorted(extremes, key=lambda entry: entry[1])
    fields = [_encode("rec", recommendations, now), _encode("up", ups, now), _encode("down", downs, now)]
    if history.unknown:
        fields.append("unknown=" + ",".join(_encode_unknown(rescale, now) for rescale in history.unknown))
    return ";".join(("v1", f"at={format_rfc3339(now, 'milliseconds')}", *fields))


class UnreadableState(Exception):
    """The text in status.controllerState was not written by this or an earlier version of the controller."""


def decode_history(text: str | None, now: datetime) -> History:
    """Deserialize a history as of now; an absent text is an empty history. Raises UnreadableState."""
    if not text:
        return History()
    if len(text) > _MAX_LENGTH:
        raise UnreadableState(f"{len(text)} characters long")
    try:
        return _decode_history(text, now)
    except (ValueError, OverflowError) as error:
        raise UnreadableState(str(error)) from error


def _decode_history(text: str, now: datetime) -> History:
    version, *fields = text.split(";")
    values = dict(field.split("=", 1) for field in fields)
    if version != "v1" or {"at", "rec", "up", "down"} - values.keys():
        raise ValueError(f"unsupported version: {version[:100]!r}")
    written = datetime.fromisoformat(values["at"])
    if written.tzinfo is None:
        raise ValueError(f"the time {values['at'][:40]!r} has no time zone")
    at = min(written.astimezone(UTC), now)
    recommendations = [Recommendation(replicas, time) for replicas, time in _decode(values["rec"], at)]
    last = _latest(recommendations)
    if last is not None and last.at == at < now:
        recommendations.append(Recommendation(last.replicas, now))
    ups = tuple(ScaleEvent(change, time) for change, time in _decode(values["up"], at))
    downs = tuple(ScaleEvent(change, time) for change, time in _decode(values["down"], at))
    return History(tuple(recommendations), ups, downs, tuple(_decode_unknown(values.get("unknown", ""), at)))


def _extremes(entries: Sequence[_Entry], *, highest: bool) -> Iterator[_Entry]:
    """Yield, newest first, the entries that are higher (or lower) than all later ones."""
    sign = 1 if highest else -1
    best: int | None = None
    for replicas, at in reversed(entries):
        if best is None or sign * replicas > best:
            best = sign * replicas
            yield replicas, at


def _merge_similar(newest_first: list[_Entry], *, highest: bool) -> list[_Entry]:
    """Merge adjacent entries, those with the most similar replicas first, until MAX_ENTRIES are left.

    The merged entry has the more extreme number of replicas and the later time.
    """
    entries = newest_first
    while len(entries) > MAX_ENTRIES:
        gaps = [(abs(newer[0] - older[0]), index) for index, (newer, older) in enumerate(pairwise(entries))]
        _, index = min(gaps[1:])  # the newest entry is in effect and must not change
        newer, older = entries[index], entries[index + 1]
        pick = max if highest else min
        entries = [*entries[:index], (pick(newer[0], older[0]), newer[1]), *entries[index + 2 :]]
    return entries


def _merge_oldest(entries: Iterable[_Entry]) -> list[_Entry]:
    """Merge the oldest rescales into one at the time of the last of them, until MAX_ENTRIES are left."""
    ordered = sorted(entries, key=lambda entry: entry[1])
    surplus = len(ordered) - MAX_ENTRIES
    if surplus <= 0:
        return ordered
    oldest = ordered[: surplus + 1]
    return [(sum(change for change, _ in oldest), oldest[-1][1]), *ordered[surplus + 1 :]]


def _within(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> tuple[ScaleEvent, ...]:
    return tuple(event for event in events if not event.outdated and event.at > now - period)


def _longest_period(behavior: Behavior) -> timedelta:
    """Return the longest period of all policies; policies of each direction consider the rescales of both."""
    rules = [direction for direction in (behavior.scale_up, behavior.scale_down) if direction is not None]
    periods = (policy.period_seconds for direction in rules for policy in direction.policies or ())
    return timedelta(seconds=max(periods, default=0))


def _up_window(behavior: Behavior) -> timedelta:
    seconds = behavior.scale_up.stabilization_window_seconds if behavior.scale_up else None
    return timedelta(seconds=seconds or 0)


def _longest_window(behavior: Behavior, settings: Settings) -> timedelta:
    seconds = behavior.scale_down.stabilization_window_seconds if behavior.scale_down else None
    down = settings.downscale_stabilization if seconds is None else timedelta(seconds=seconds)
    return max(_up_window(behavior), down)


def _latest(recommendations: Iterable[Recommendation]) -> Recommendation | None:
    return max(recommendations, key=lambda recommendation: recommendation.at, default=None)


def _encode(name: str, entries: Iterable[_Entry], now: datetime) -> str:
    return f"{name}=" + ",".join(f"{number}@{_format_age(now - at)}" for number, at in entries)


def _decode(text: str, now: datetime) -> Iterator[_Entry]:
    for entry in filter(None, text.split(",")):
        yield _decode_entry(entry, now)


def _decode_entry(entry: str, now: datetime) -> _Entry:
    number, age = entry.split("@")
    if not 0 <= int(number) <= MAX_INT32 or not float(age) >= 0:
        raise ValueError(f"the entry {entry[:40]!r} is out of range")
    return int(number), now - timedelta(seconds=float(age))


def _encode_unknown(rescale: UnknownRescale, now: datetime) -> str:
    age = _format_age(now - rescale.at)
    return f"{rescale.before}>{rescale.replicas}@{age}@{rescale.resource_version}"


def _decode_unknown(text: str, now: datetime) -> Iterator[UnknownRescale]:
    for entry in filter(None, text.split(",")):
        change, age, resource_version = entry.split("@")
        numbers = [_decode_entry(f"{number}@{age}", now) for number in change.split(">")]
        (before, at), (replicas, _) = numbers
        yield UnknownRescale(before, replicas, at, resource_version, _RESTORED)


def _format_age(age: timedelta) -> str:
    return f"{age.total_seconds():.3f}".rstrip("0").rstrip(".")
