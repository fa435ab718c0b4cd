"""Runs the controller: leader election or shards, one `Controller` per term and shard, hand-over at shutdown."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from autoscaler.controller.controller import Controller
from autoscaler.controller.dependencies import Dependencies
from autoscaler.controller.identity import process_identity
from autoscaler.controller.reporting import state_of
from autoscaler.controller.shards import ShardRunner
from autoscaler.controller.watched_cluster import WatchedCluster
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import KubeConnection
from autoscaler.kube.lease import LeaderElector, LeadershipLost
from autoscaler.kube.metrics import KubeMetrics
from autoscaler.ports import Clock, DecisionListener, ExternalMetricsSource
from autoscaler.settings import EMBEDDED, ControllerOptions
from autoscaler.sharding.assignment import shard_of
from autoscaler.sharding.held_shards import HeldShards
from autoscaler.telemetry import AutoscalerState, ControllerTelemetry
from autoscaler.types.decision import Decision

log = logging.getLogger(__name__)


@dataclass
class ControllerProcess:
    """The controller of this process, which runs while the process is the leader or holds shards."""

    connection: KubeConnection
    external: ExternalMetricsSource
    options: ControllerOptions
    telemetry: ControllerTelemetry
    clock: Clock
    identity: str = field(default_factory=process_identity)
    listeners: Sequence[DecisionListener] = ()
    metrics: KubeMetrics = field(default_factory=KubeMetrics)

    controllers: dict[int, Controller] = field(default_factory=dict, init=False)
    """The running controllers by shard; without shards there is at most one."""

    _elector: LeaderElector | None = None
    _runner: ShardRunner | None = None
    _cluster: WatchedCluster | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process controls autoscalers: as the leader, or at least one shard."""
        return bool(self.controllers)

    @property
    def leader(self) -> str:
        """The identity of the observed leader; empty if it is unknown, or there is none or more than one."""
        return "" if self._elector is None else self._elector.holder

    @property
    def shards(self) -> HeldShards:
        """The shards that this process controls."""
        return HeldShards(self.options.shards, tuple(sorted(self.controllers)))

    def controls(self, namespace: str) -> bool:
        """Return whether this process controls the autoscalers of a namespace."""
        return self._shard_of(namespace) in self.controllers

    def holder(self, namespace: str) -> str:
        """Return the identity of the process that controls the autoscalers of a namespace; empty if it is unknown."""
        return self.leader if self._runner is None else self._runner.holder(self._shard_of(namespace))

    def shard_holders(self) -> frozenset[str]:
        """Return the identities of the other processes that control shards; none without shards."""
        known = () if self._runner is None else map(self._runner.holder, range(self.options.shards))
        return frozenset(known) - {"", self.identity}

    def decisions(self) -> dict[str, Decision]:
        """Return the last decision of each autoscaler that this process controls, by key."""
        return {
            key: one for each in self.controllers.values() for key, one in each.reconciler.state.decisions().items()
        }

    def states(self) -> Iterable[AutoscalerState]:
        return [state_of(key, decision) for key, decision in self.decisions().items()]

    async def run(self) -> None:
        """Run the controller whenever this process is the leader or holds a shard, until cancelled; then hand over."""
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(KubeClient.open(self.connection, self.metrics))
            if not self.options.leader_elect:
                await self._lead(kube, lambda: True)
                return
            # Renewals have an HTTP session of their own, so that they never queue behind other requests.
            elector_client = await stack.enter_async_context(KubeClient.open(self.connection, self.metrics))
            if self.options.shards > 1:
                await self._run_shards(kube, elector_client)
                return
            elector = LeaderElector(elector_client, self.options, identity=self.identity, clock=self.clock)
            self._elector = elector
            while True:
                try:
                    await elector.run(lambda: self._lead(kube, lambda: elector.is_leader))
                except LeadershipLost as error:
                    log.warning("leadership lost", extra={"reason": str(error)})

    async def _lead(self, kube: KubeClient, may_write: Callable[[], bool]) -> None:
        """Run the controller for one term as leader, with new state.

        The informers are new, too: what was known before the lease was acquired may be outdated.
        """
        async with WatchedCluster.open(kube, self.clock, self._external, self.identity) as cluster:
            self._cluster = cluster
            await cluster.refresh()
            await self._control(0, cluster.dependencies(may_write))

    async def _run_shards(self, kube: KubeClient, elector_client: KubeClient) -> None:
        accepted: set[int] = set()

        def accepts(namespace: str) -> bool:
            return self._shard_of(namespace) in accepted

        async with WatchedCluster.open(kube, self.clock, self._external, self.identity, accepts) as cluster:

            async def control(shard: int, may_write: Callable[[], bool]) -> None:
                accepted.add(shard)
                try:
                    await cluster.refresh()
                    await self._control(shard, cluster.dependencies(may_write))
                finally:
                    accepted.discard(shard)
                    cluster.remove_unaccepted()

            self._cluster = cluster
            self._runner = ShardRunner(
                elector_client,
                self.options,
                identity=self.identity,
                clock=self.clock,
                telemetry=self.telemetry.shards,
                control=control,
            )
            await self._runner.run()

    async def _control(self, shard: int, dependencies: Dependencies) -> None:
        options = self.options
        controller = self.controllers[shard] = Controller(
            dependencies,
            options.settings,
            options.gates,
            self.telemetry,
            concurrent_syncs=options.concurrent_syncs,
            listeners=self.listeners,
            controls=lambda key: self._shard_of(key.partition("/")[0]) == shard,
        )
        self._report_shards()
        try:
            await controller.run()
        finally:
            del self.controllers[shard]
            self._report_shards()

    def _report_shards(self) -> None:
        """Notify the listeners which autoscalers this process controls from now on."""
        self.telemetry.leader.set(1 if self.controllers else 0)
        self.telemetry.shards.held.set(len(self.controllers))
        keys = () if self._cluster is None else self._cluster.autoscalers.keys()
        controlled = [key for key in keys if self.controls(key.partition("/")[0])]
        for listener in self.listeners:
            if self.controllers:
                listener.on_leadership_acquired(controlled, self.shards)
            else:
                listener.on_leadership_lost()

    @property
    def _external(self) -> ExternalMetricsSource | None:
        return self.external if self.options.external_metrics == EMBEDDED else None

    def _shard_of(self, namespace: str) -> int:
        return shard_of(namespace, self.options.shards)
