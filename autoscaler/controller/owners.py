"""Who scales what: two autoscalers of one target would fight, so each is told of the other.

An autoscaler that only rehearses (``mode: DryRun``) owns nothing: it may stand beside another to be compared with it.
"""

from autoscaler.kube.targets import TargetKey, target_of
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import DRY_RUN

POD_AUTOSCALER = "PodAutoscaler"
NATIVE = "HorizontalPodAutoscaler"


class Owners:
    """The owners of every target, named as in ``HorizontalPodAutoscaler/shop/web``."""

    def __init__(self) -> None:
        self._targets: dict[str, TargetKey] = {}
        """What each owner scales."""
        self._owners: dict[TargetKey, dict[str, None]] = {}
        self._rehearsing: set[str] = set()

    def note(self, kind: str, key: str, autoscaler: Autoscaler | None) -> tuple[str, ...]:
        """Take in what became of an autoscaler; name the PodAutoscalers, by key, whose rivals that changes."""
        owner = f"{kind}/{key}"
        before, rehearsed = self._targets.get(owner), owner in self._rehearsing
        after = None if autoscaler is None else target_of(autoscaler)
        rehearses = autoscaler is not None and autoscaler.spec.mode == DRY_RUN
        if (before, rehearsed) == (after, rehearses):
            return ()
        self._forget(owner, before)
        if after is not None:
            self._targets[owner] = after
            self._owners.setdefault(after, {})[owner] = None
        if rehearses:
            self._rehearsing.add(owner)
        affected = [key for target in (before, after) if target is not None for key in self.keys(target)]
        return tuple(dict.fromkeys(one for one in affected if f"{POD_AUTOSCALER}/{one}" != owner))

    def rivals(self, key: str) -> tuple[str, ...]:
        """Name who else scales the target of a PodAutoscaler."""
        owner = f"{POD_AUTOSCALER}/{key}"
        target = self._targets.get(owner)
        owners = self._owners[target] if target is not None else {}
        if len(owners) < 2 or owner in self._rehearsing:
            return ()
        return tuple(sorted(one for one in owners if one != owner and one not in self._rehearsing))

    def keys(self, target: TargetKey) -> tuple[str, ...]:
        """Give the keys of the PodAutoscalers that have this target."""
        prefix = f"{POD_AUTOSCALER}/"
        return tuple(one.removeprefix(prefix) for one in self._owners.get(target, {}) if one.startswith(prefix))

    def _forget(self, owner: str, target: TargetKey | None) -> None:
        self._rehearsing.discard(owner)
        if target is None:
            return
        del self._targets[owner]
        del self._owners[target][owner]
        if not self._owners[target]:
            del self._owners[target]
