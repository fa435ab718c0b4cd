"""Sequences of actions in which a controller without one of its safeguards breaks an invariant.

Independent random actions rarely form such a sequence: an outdated watch, for example, becomes visible only if an
autoscaler is paused while it cannot be read, stays paused beyond the bound, and its metric changes afterwards.
"""

import random
from collections.abc import Callable, Iterator

from tests.faults.random_run.actions import LEADER, RATED, SCRIPTED, Action, Profile, metric_of_target
from tests.faults.random_run.record import Json

Spec = Callable[[str], Json]
"""Returns a random spec of the autoscaler of a target."""

_HIGH, _LOW = 100, 2
_READS: Json = {"within": "/podautoscalers", "method": "GET"}
_ACTIVE: Json = {"mode": "Active", "pausedUntil": None}


def scenarios(draw: random.Random, profile: Profile, spec: Spec) -> Iterator[Action]:
    """Yield the actions of random scenarios, one after another for the whole run."""
    generator = _Scenarios(draw, profile, spec)
    at = draw.uniform(1, 3) * profile.fault
    while True:
        actions = list(draw.choice(generator.all)(at))
        if max(action.at + action.seconds for action in actions) > profile.duration:
            return
        yield from actions
        at = max(action.at for action in actions) + draw.uniform(0, profile.fault)


class _Scenarios:
    def __init__(self, draw: random.Random, profile: Profile, spec: Spec) -> None:
        self._draw = draw
        self._profile = profile
        self._spec = spec
        self.all = (self._outdated, self._outdated, self._frozen, self._restart, self._lost_zero, self._lost_step)

    def _outdated(self, at: float) -> Iterator[Action]:
        """Pause or delete an autoscaler while the leader cannot read it, and change its metric after the bound."""
        yield from self._active(at)
        fault: Json = self._draw.choice(({"stall": True}, {"status": 503}))
        yield _metric(at, SCRIPTED, self._draw.choice((0, _LOW)))
        at, stale = at + self._profile.fault, self._profile.stale
        yield Action(at, "outdated", LEADER, stale + self._profile.window + self._profile.fault, {**_READS, **fault})
        change = self._draw.choice((("delete", {}), ("edit", {"mode": "Paused", "pausedUntil": None})))
        yield Action(at + 2, change[0], SCRIPTED, detail=change[1])
        yield _metric(at + stale + 5, SCRIPTED, _HIGH)
        yield from self._active(at + stale + self._profile.window + self._profile.fault)

    def _frozen(self, at: float) -> Iterator[Action]:
        """Freeze the leader for longer than the lease while metrics change."""
        seconds = self._draw.uniform(18, 40)
        yield Action(at, "freeze", LEADER, seconds)
        for target in (SCRIPTED, RATED):
            value = self._draw.choice((0, _LOW, _HIGH))
            yield _metric(at + self._draw.uniform(0.1, seconds), target, value)

    def _restart(self, at: float) -> Iterator[Action]:
        """Stop or kill the leader after the first step of a rescale that a rate policy limits."""
        later = self._rated_at(at)
        yield from self._rescale(at, later)
        kind = self._draw.choice(("stop", "stop", "kill"))
        yield Action(later + self._draw.uniform(0.5, 5), kind, LEADER, self._draw.uniform(0.1, 5))

    def _lost_step(self, at: float) -> Iterator[Action]:
        """Lose the responses to the scale writes of a rescale that a rate policy limits."""
        later = self._rated_at(at)
        yield from self._rescale(at, later)
        yield Action(later - 1, "lost answer", LEADER, self._profile.period, self._lost(RATED))

    def _lost_zero(self, at: float) -> Iterator[Action]:
        """Lose the response to a write of zero, and demand replicas afterwards."""
        yield from self._active(at)
        yield Action(at, "edit", SCRIPTED, detail={"minReplicas": 0})
        yield _metric(at, SCRIPTED, _HIGH)
        at += self._profile.fault
        seconds = self._profile.window + self._profile.fault * 2
        yield _metric(at, SCRIPTED, 0)
        yield Action(at, "lost answer", LEADER, seconds, self._lost(SCRIPTED))
        yield _metric(at + seconds + 1, SCRIPTED, _HIGH)

    def _rated_at(self, at: float) -> float:
        """Return when no earlier step counts any more, and the target is old enough for a check of the rate."""
        profile = self._profile
        return max(at + 2 * profile.period, min(profile.stale + 2 * profile.period, profile.duration / 2))

    def _rescale(self, at: float, later: float) -> Iterator[Action]:
        first, second = self._draw.sample((_LOW, _HIGH), 2)
        yield _metric(at, RATED, first)
        yield _metric(later, RATED, second)
        yield _metric(later + self._profile.period, RATED, second)

    def _active(self, at: float) -> Iterator[Action]:
        """Make sure that the autoscaler and its target exist, and that it is active."""
        yield Action(at, "create target", SCRIPTED, detail={"replicas": 2})
        yield Action(at, "create", SCRIPTED, detail=self._spec(SCRIPTED))
        yield Action(at, "edit", SCRIPTED, detail=dict(_ACTIVE))

    def _lost(self, target: str) -> Json:
        kind: Json = self._draw.choice(({"drop_answer": True}, {"answer_delay": 12.0}))
        return {"within": f"/{target}/scale", "method": "PUT", **kind}


def _metric(at: float, target: str, value: int) -> Action:
    return Action(at, "metric", metric_of_target(target), detail={"value": value})
