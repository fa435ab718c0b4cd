"""Metrics in, put together: backends opened, rules in force, and both replaced when the configuration changes."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from adapter.backends.backend import Backend
from adapter.backends.configuration import BackendEntry, price_per_day
from adapter.backends.loader import prepare
from adapter.backends.settings import BackendSettings, Price
from adapter.backends.static import StaticBackend
from adapter.config.loading import Loaded
from adapter.config.model import Config
from adapter.metrics.comparison import Comparisons
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import RuleReader, Sources
from adapter.rules.rule import STATIC, Rule
from adapter.rules.rule_registry import RuleRegistry

_log = logging.getLogger(__name__)
_LIVE = frozenset({"backends", "rules", "prometheus_adapter", "delegate"})

Clock: TypeAlias = Callable[[], datetime]
Opener: TypeAlias = Callable[[str, BackendSettings, Clock], Backend]
"""Opens a backend by its name, its settings and a clock."""


class MetricPipeline:
    """The reader, and what it reads from."""

    def __init__(self, loaded: Loaded, opener: Opener, clock: Clock) -> None:
        self._opener = opener
        self._clock = clock
        self._config = loaded.config
        self.book = RuleRegistry(loaded.config.rules)
        self.book.broken = loaded.broken
        for name, problems in loaded.broken.items():
            _log.error("rule left out", extra={"rule": name, "problems": problems})
        opened = {name: self._open(name, entry) for name, entry in loaded.config.backends.items()}
        self.fetcher = Fetcher({STATIC: StaticBackend(clock), **opened}, clock)
        self.reader = RuleReader(self.book, Sources.of(self.fetcher), clock, price=self._price)
        self.reader.delegate = loaded.config.delegate
        self.comparisons = Comparisons(self.reader)
        self.reader.heard = self.comparisons.heard
        self._listeners: list[Callable[[Mapping[str, BackendEntry]], None]] = []

    @property
    def entries(self) -> Mapping[str, BackendEntry]:
        """The configured backends."""
        return self._config.backends

    def tell(self, listener: Callable[[Mapping[str, BackendEntry]], None]) -> None:
        """Call ``listener`` when other backends are configured."""
        self._listeners.append(listener)

    async def use(self, config: Config) -> None:
        """Go over to a new configuration, as far as that can be done without a restart."""
        before, self._config = self._config, config
        self.book.broken, self.book.trouble = {}, ()
        if config.backends != before.backends:
            await self._use_backends(before.backends, config.backends)
        self.reader.delegate = config.delegate
        self.book.use_file(config.rules)
        later = [part for part in config.__struct_fields__ if part not in _LIVE and _differ(config, before, part)]
        if later:
            _log.warning("a part of the new configuration waits for a restart", extra={"parts": later})

    def refuse(self, problems: tuple[str, ...]) -> None:
        """Note that there is a newer configuration that makes no sense."""
        self.book.trouble = problems

    async def aclose(self) -> None:
        """Stop reading and close all backends."""
        await self.comparisons.aclose()
        await self.reader.sources.aclose()

    async def _use_backends(self, before: Mapping[str, BackendEntry], after: Mapping[str, BackendEntry]) -> None:
        """Open what is new or different and close what is gone; what stays as it was keeps its connections."""
        kept = {name for name, entry in after.items() if before.get(name) == entry}
        for name in after.keys() - kept:
            await asyncio.to_thread(prepare, after[name].settings)
        old = dict(self.fetcher.backends)
        opened = {name: old[name] if name in kept else self._open(name, entry) for name, entry in after.items()}
        self.fetcher.backends = {STATIC: old[STATIC], **opened}
        self.reader.forget_backends(set(before) - kept)
        for name in set(before) - kept:
            await old[name].aclose()
        for listener in self._listeners:
            listener(after)

    def _price(self, rule: Rule) -> Price | None:
        return price_per_day(rule, self._config.backends.get(rule.backend))

    def _open(self, name: str, entry: BackendEntry) -> Backend:
        return self._opener(name, entry.settings, self._clock)


def _differ(one: Config, other: Config, part: str) -> bool:
    return bool(getattr(one, part) != getattr(other, part))
