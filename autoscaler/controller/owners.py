"""Finds conflicts: PodAutoscalers and HorizontalPodAutoscalers with the same target.

An autoscaler with ``mode: DryRun`` never scales and therefore conflicts with none.
"""

from autoscaler.kube.targets import TargetKey, target_of
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.types.spec import DRY_RUN

POD_AUTOSCALER = "PodAutoscaler"
HPA = "HorizontalPodAutoscaler"


class TargetOwners:
    """The autoscalers of every target, named as in ``HorizontalPodAutoscaler/shop/web``."""

    def __init__(self) -> None:
        self._targets: dict[str, TargetKey] = {}
        """The target of each autoscaler."""
        self._owners: dict[TargetKey, dict[str, bool]] = {}
        """The autoscalers of each target, and whether each has ``mode: DryRun``."""

    def update(self, kind: str, key: str, autoscaler: Autoscaler | None) -> tuple[str, ...]:
        """Record a changed or deleted (None) autoscaler; return the keys of PodAutoscalers with changed conflicts."""
        owner = f"{kind}/{key}"
        before = self._targets.get(owner)
        was_dry_run = before is not None and self._owners[before][owner]
        after = None if autoscaler is None else target_of(autoscaler)
        is_dry_run = autoscaler is not None and autoscaler.spec.mode == DRY_RUN
        if (before, was_dry_run) == (after, is_dry_run):
            return ()
        if before is not None:
            self._remove(owner, before)
        if after is not None:
            self._targets[owner] = after
            self._owners.setdefault(after, {})[owner] = is_dry_run
        affected = [key for target in (before, after) if target is not None for key in self.keys(target)]
        return tuple(dict.fromkeys(other for other in affected if f"{POD_AUTOSCALER}/{other}" != owner))

    def conflicts(self, key: str) -> tuple[str, ...]:
        """Return the other autoscalers of a PodAutoscaler's target."""
        owner = f"{POD_AUTOSCALER}/{key}"
        target = self._targets.get(owner)
        if target is None or self._owners[target][owner]:
            return ()
        others = self._owners[target].items()
        return tuple(sorted(other for other, is_dry_run in others if other != owner and not is_dry_run))

    def is_dry_run(self, key: str) -> bool:
        """Return whether a PodAutoscaler has ``mode: DryRun``."""
        owner = f"{POD_AUTOSCALER}/{key}"
        target = self._targets.get(owner)
        return target is not None and self._owners[target][owner]

    def keys(self, target: TargetKey) -> tuple[str, ...]:
        """Return the keys of the PodAutoscalers of a target."""
        prefix = f"{POD_AUTOSCALER}/"
        return tuple(owner.removeprefix(prefix) for owner in self._owners.get(target, {}) if owner.startswith(prefix))

    def _remove(self, owner: str, target: TargetKey) -> None:
        del self._targets[owner]
        del self._owners[target][owner]
        if not self._owners[target]:
            del self._owners[target]
