"""The generator of actions: what happens when, for a seed. Pure, so that a seed always gives the same actions."""

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.faults.random_run.actions import EDITED, LEADER, PROCESSES, RATED, TARGETS, Action, Profile, metric_of_target
from tests.faults.random_run.record import Json
from tests.faults.random_run.scenarios import scenarios

_SUBJECTS: Final = (LEADER, LEADER, LEADER, *PROCESSES)
_WRITES: Final = ("PUT", "PATCH", "POST")
_PLACES: Final = ("/leases", "/podautoscalers", "/status", "/scale", "/deployments", "/horizontalpodautoscalers", "")
_CODES: Final = (403, 404, 409, 429, 500, 503, 504)
_JUMPS: Final = (-3600, -90, 90, 3600)


def generate(seed: int, profile: Profile) -> list[Action]:
    """Return the actions of a run in their order."""
    generator = _Generator(seed, profile)
    return sorted((*generator.actions(), *generator.scenarios()), key=lambda action: action.at)


class _Generator:
    def __init__(self, seed: int, profile: Profile) -> None:
        self._random = random.Random(seed)  # noqa: S311 - must be reproducible
        self._profile = profile
        self._metrics = self._random.choice((EDITED, (*EDITED, RATED)))
        # With many faults no process leads for long; with few, one leads long enough to act on outdated objects.
        faults = self._random.choice((0.1, 0.3, 1))
        self._choices: dict[Callable[[float], Action], float] = {
            self._metric: 16,
            self._edit: 6,
            self._pause: 6,
            self._delete: 3,
            self._create: 6,
            self._rival: 0.7,
            self._resize: 2,
            self._target: 2,
            self._fault: 14 * faults,
            self._freeze: 2 * faults,
            self._stop: 2 * faults,
            self._watches: faults,
            self._jump: 1,
        }

    def scenarios(self) -> Iterator[Action]:
        return scenarios(self._random, self._profile, self._spec)

    def actions(self) -> Iterator[Action]:
        for name in TARGETS:
            yield Action(0, "create target", name, detail={"replicas": self._random.randint(0, 6)})
            yield Action(0, "metric", metric_of_target(name), detail={"value": self._random.randint(0, 60)})
            yield Action(0, "create", name, detail=self._spec(name))
        choices, weights = list(self._choices), list(self._choices.values())
        at = self._random.expovariate(1 / self._profile.gap)
        while at < self._profile.duration:
            action = self._random.choices(choices, weights)[0](at)
            yield action
            if action.kind in {"edit", "delete"} and action.subject in EDITED and self._random.random() < 0.6:
                # A new value makes a rescale necessary that the change may have forbidden.
                at += self._random.uniform(0, self._profile.fault / 2)
                yield self._metric(at, metric_of_target(action.subject))
            at += self._random.expovariate(1 / self._profile.gap)

    # --- objects and metrics -----------------------------------------------------------------------------------------

    def _metric(self, at: float, name: str = "") -> Action:
        name = name or metric_of_target(self._random.choice(self._metrics))
        values = (0, self._random.randint(1, 30), self._random.randint(1, 60), self._random.randint(1, 120), None)
        value = self._random.choice(values)
        return Action(at, "metric", name, detail={"value": value})

    def _edit(self, at: float) -> Action:
        name = self._random.choice(EDITED)
        spec = self._spec(name)
        part = self._random.choice(("bounds", "behavior", "metrics"))
        fields = ("minReplicas", "maxReplicas") if part == "bounds" else (part,)
        return Action(at, "edit", name, detail={one: spec[one] for one in fields})

    def _pause(self, at: float) -> Action:
        mode = self._random.choice(("Paused", "Paused", "DryRun", "Active", "Active", "Active"))
        detail: Json = {"mode": mode, "pausedUntil": None}
        if mode == "Paused" and self._random.random() < 0.3:
            detail["pausedFor"] = self._random.uniform(0.1, 3) * self._profile.fault
        return Action(at, "edit", self._random.choice(EDITED), detail=detail)

    def _delete(self, at: float) -> Action:
        return Action(at, "delete", self._random.choice(EDITED))

    def _create(self, at: float) -> Action:
        name = self._random.choice(EDITED)
        return Action(at, "create", name, detail=self._spec(name))

    def _rival(self, at: float) -> Action:
        """Create or delete a second autoscaler of a target, which is a conflict."""
        target = self._random.choice(EDITED)
        if self._random.random() < 0.7:
            return Action(at, "delete", f"rival-{target}")
        return Action(at, "create", f"rival-{target}", detail=self._spec(target))

    def _resize(self, at: float) -> Action:
        return Action(at, "resize", self._random.choice(EDITED), detail={"replicas": self._random.randint(0, 25)})

    def _target(self, at: float) -> Action:
        kind = self._random.choice(("delete target", "create target", "create target"))
        return Action(at, kind, self._random.choice(EDITED), detail={"replicas": self._random.randint(0, 6)})

    def _spec(self, target: str) -> Json:
        draw = self._random
        external: Json = {
            "metric": {"name": metric_of_target(target)},
            "target": {"type": "AverageValue", "averageValue": str(draw.randint(1, 4 if target == RATED else 10))},
        }
        if draw.random() < 0.4:
            seconds = self._profile.fallback + draw.randint(0, self._profile.fallback // 3)
            external["fallback"] = {"replicas": draw.randint(1, 10), "failureDurationSeconds": seconds}
        is_rated = target == RATED or draw.random() < 0.7
        behavior = {"scaleUp": self._rules(), "scaleDown": self._rules()} if is_rated else None
        return {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": draw.choice((0, 0, 1, draw.randint(1, 5))),
            "maxReplicas": draw.randint(16 if target == RATED else 5, 20),
            "metrics": [{"type": "External", "external": external}],
            "behavior": behavior,
        }

    def _rules(self) -> Json:
        """Return rules that allow every change within the settle time."""
        draw, rules = self._random, Json()
        rules["stabilizationWindowSeconds"] = draw.choice((0, 0, draw.randint(1, self._profile.window)))
        policies = [{"type": "Pods", "value": draw.randint(4, 8), "periodSeconds": self._profile.period}]
        rules["selectPolicy"] = draw.choice(("Max", "Max", "Min"))
        if rules["selectPolicy"] == "Max":  # the minimum with a percentage never leaves zero
            percent = {"type": "Percent", "value": draw.randint(100, 200), "periodSeconds": self._profile.period}
            policies.append(percent)
        return {**rules, "policies": policies}

    # --- faults ------------------------------------------------------------------------------------------------------

    def _fault(self, at: float) -> Action:
        draw = self._random
        seconds = min(draw.expovariate(1 / self._profile.fault), 6 * self._profile.fault)
        place, method = draw.choice(_PLACES), draw.choice(("", "", "GET", *_WRITES))
        detail: Json = {"within": place, "method": method, "chance": draw.choice((1.0, 1.0, 0.5, 0.2))}
        kind, settings = draw.choice(
            (
                ("error", {"status": draw.choice(_CODES)}),
                ("error", {"status": draw.choice(_CODES)}),
                ("drop", {"drop": True}),
                ("lost answer", {"drop_answer": True}),
                ("late answer", {"answer_delay": draw.uniform(0.5, 15)}),
                ("slow", {"delay": draw.uniform(0.1, 9.8)}),
                ("truncate", {"truncate": draw.randint(0, 400)}),
                ("stalled watch", {"stall": True, "within": "watch=1", "method": "", "chance": 1.0}),
                ("stalled watch", {"stall": True, "within": "watch=1", "method": "", "chance": 1.0}),
                ("partition", {"stall": True, "within": "", "method": "", "chance": 1.0}),
            )
        )
        if kind == "stalled watch":  # must last longer than the maximum age of watched objects
            seconds = draw.uniform(0.5, 10) * self._profile.fault
        return Action(at, kind, draw.choice(_SUBJECTS), seconds, {**detail, **settings})

    def _freeze(self, at: float) -> Action:
        """Stop a process from running for up to some lease durations."""
        return Action(at, "freeze", self._random.choice(_SUBJECTS), self._random.uniform(1, 45))

    def _stop(self, at: float) -> Action:
        """Stop or kill a process, and start another one in its place."""
        kind = self._random.choice(("stop", "kill", "kill"))
        return Action(at, kind, self._random.choice(_SUBJECTS), self._random.uniform(0.1, 30))

    def _watches(self, at: float) -> Action:
        return Action(at, self._random.choice(("close watches", "expire watches")))

    def _jump(self, at: float) -> Action:
        """Change the wall clock of the machine of a process."""
        return Action(at, "clock jump", self._random.choice(_SUBJECTS), detail={"seconds": self._random.choice(_JUMPS)})
