"""What must outlive this process: the past, as far as windows and policies still look at it, as one line in status.

Of the recommendations only the extremes are kept: one that a later one exceeds never decides a scale-down again, and
likewise upwards. Where even those are too many, neighbours become one that holds at least as long as either did. So a
line is short whatever happened, and a controller that starts with it decides as the one before it would have.

``v1;at=2026-03-01T12:00:00.000Z;rec=5@285.01,3@0;up=4@15.2;down=`` says: at that time, 5 were recommended 285.01 s
before and 3 just then, and 4 were added 15.2 s before. A last recommendation of age 0 still stood when the line was
written, and since all that could have changed it would have changed the status as well, it stood to the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, TypeAlias

from autoscaler.settings import Settings
from autoscaler.types.history import History, Recommendation, ScaleEvent
from autoscaler.types.record import Record
from autoscaler.types.spec import Behavior, ScalingRules, Spec

MOST_KEPT: Final = 24
"""Of each kind; a line stays under two kilobytes."""

Noted: TypeAlias = tuple[int, datetime]
"""A number of replicas and when."""


class Fingerprint(Record):
    """What of the past would be missed: two pasts with the same essence need not both be written down."""

    recommended: int | None
    """What the last pass recommended; None: it came to no recommendation."""

    scale_ups: tuple[ScaleEvent, ...]
    scale_downs: tuple[ScaleEvent, ...]


def essence(past: History, spec: Spec, now: datetime) -> Fingerprint:
    """Say what would be missed if the process ended now."""
    last = _latest(past.recommendations)
    behavior = spec.behavior or Behavior()
    return Fingerprint(
        last.replicas if last is not None and last.at == now else None,
        _within(past.scale_ups, _longest_period(behavior), now),
        _within(past.scale_downs, _longest_period(behavior), now),
    )


def would_miss(kept: Fingerprint | None, now: Fingerprint) -> bool:
    """Tell whether a restart would forget something; what has merely grown old since it was kept is not missed."""
    if kept is None:
        return now != Fingerprint(None, (), ())
    return (
        kept.recommended != now.recommended
        or not set(now.scale_ups) <= set(kept.scale_ups)
        or not set(now.scale_downs) <= set(kept.scale_downs)
    )


def write_down(past: History, spec: Spec, settings: Settings, now: datetime) -> str | None:
    """Put the past into a line; None: nothing that anyone will ask for."""
    behavior = spec.behavior or Behavior()
    since = now - _longest_window(behavior, settings)
    recent = sorted((one.at, one.replicas) for one in past.recommendations if one.at >= since)
    noted = [(replicas, at) for at, replicas in recent]
    lowest = list(_extremes(noted, highest=False)) if _up_window(behavior) else []
    kept = {*_thinned(list(_extremes(noted, highest=True)), highest=True), *_thinned(lowest, highest=False)}
    ups = _merged((one.change, one.at) for one in _within(past.scale_ups, _longest_period(behavior), now))
    downs = _merged((one.change, one.at) for one in _within(past.scale_downs, _longest_period(behavior), now))
    if not (kept or ups or downs):
        return None
    recommendations = sorted(kept, key=lambda one: one[1])
    parts = (_line("rec", recommendations, now), _line("up", ups, now), _line("down", downs, now))
    return ";".join(("v1", f"at={_print_time(now)}", *parts))


def recall(line: str | None, now: datetime) -> History:
    """Read the past back, as it would be now; a line that does not read as ours is no past."""
    try:
        return _recall(line, now) if line else History()
    except ValueError:
        return History()


def _recall(line: str, now: datetime) -> History:
    version, *fields = line.split(";")
    said = dict(field.split("=", 1) for field in fields)
    if version != "v1" or {"at", "rec", "up", "down"} - said.keys():
        raise ValueError(f"a memory of another version: {version[:20]}")
    at = min(datetime.fromisoformat(said["at"]), now)
    recommendations = [Recommendation(replicas, when) for replicas, when in _read(said["rec"], at)]
    last = _latest(recommendations)
    if last is not None and last.at == at < now:
        recommendations.append(Recommendation(last.replicas, now))
    ups = tuple(ScaleEvent(change, when) for change, when in _read(said["up"], at))
    downs = tuple(ScaleEvent(change, when) for change, when in _read(said["down"], at))
    return History(tuple(recommendations), ups, downs)


def _extremes(noted: Sequence[Noted], *, highest: bool) -> Iterator[Noted]:
    """Walk back from the newest and keep what exceeds all that came after it; oldest last."""
    sign = 1 if highest else -1
    best: int | None = None
    for replicas, at in reversed(noted):
        if best is None or sign * replicas > best:
            best = sign * replicas
            yield replicas, at


def _thinned(newest_first: list[Noted], *, highest: bool) -> list[Noted]:
    """Make two neighbours one, with the stronger number and the later time, until there are few enough."""
    kept = newest_first
    while len(kept) > MOST_KEPT:
        gaps = [(abs(newer[0] - older[0]), index) for index, (newer, older) in enumerate(pairwise(kept))]
        _, index = min(gaps[1:])  # never the newest: it is the one that stands
        newer, older = kept[index], kept[index + 1]
        pick = max if highest else min
        kept = [*kept[:index], (pick(newer[0], older[0]), newer[1]), *kept[index + 2 :]]
    return kept


def _merged(noted: Iterable[Noted]) -> list[Noted]:
    """Add up the oldest rescales, as if all had happened when the last of them did, until there are few enough."""
    kept = sorted(noted, key=lambda one: one[1])
    surplus = len(kept) - MOST_KEPT
    if surplus <= 0:
        return kept
    oldest = kept[: surplus + 1]
    return [(sum(change for change, _ in oldest), oldest[-1][1]), *kept[surplus + 1 :]]


def _within(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> tuple[ScaleEvent, ...]:
    return tuple(one for one in events if not one.outdated and one.at > now - period)


def _longest_period(behavior: Behavior) -> timedelta:
    """Give the longest period of any policy: each direction's policies look at the rescales of both."""
    rules = (behavior.scale_up, behavior.scale_down)
    return max((_period(one) for one in rules if one is not None), default=timedelta(0))


def _period(rules: ScalingRules) -> timedelta:
    return timedelta(seconds=max((policy.period_seconds for policy in rules.policies or ()), default=0))


def _up_window(behavior: Behavior) -> timedelta:
    seconds = behavior.scale_up.stabilization_window_seconds if behavior.scale_up else None
    return timedelta(seconds=seconds or 0)


def _longest_window(behavior: Behavior, settings: Settings) -> timedelta:
    seconds = behavior.scale_down.stabilization_window_seconds if behavior.scale_down else None
    down = settings.downscale_stabilization if seconds is None else timedelta(seconds=seconds)
    return max(_up_window(behavior), down)


def _latest(recommendations: Iterable[Recommendation]) -> Recommendation | None:
    return max(recommendations, key=lambda one: one.at, default=None)


def _line(name: str, noted: Iterable[Noted], now: datetime) -> str:
    return f"{name}=" + ",".join(f"{number}@{_print_age(now - at)}" for number, at in noted)


def _read(text: str, now: datetime) -> Iterator[Noted]:
    for one in filter(None, text.split(",")):
        number, age = one.split("@")
        yield int(number), now - timedelta(seconds=float(age))


def _print_age(age: timedelta) -> str:
    return f"{age.total_seconds():.3f}".rstrip("0").rstrip(".")


def _print_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
