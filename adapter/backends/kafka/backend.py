"""The Kafka backend: who leads, what the group committed, where partitions end; in that order, under one deadline."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from adapter.backends.connection.address import Address, address
from adapter.backends.connection.secret_file import SecretFile
from adapter.backends.connection.tls import TlsFiles
from adapter.backends.kafka import parse
from adapter.backends.kafka.client import Shown, Wires
from adapter.backends.kafka.lag import Offsets, Progress, lag, samples, wanted
from adapter.backends.kafka.parse import BEGINNING, END, Place
from adapter.backends.kafka.settings import PORT, Kafka, KafkaParameters
from adapter.backends.parameters import parameters
from adapter.backends.resilience.protected_call import Guard
from adapter.rules.query_builder import Query
from adapter.sample import RawSample

_PING: Final = timedelta(seconds=5)
Leaders = Mapping[Place, Address | None]


class KafkaBackend:
    """A client of one cluster."""

    def __init__(self, name: str, settings: Kafka, clock: Callable[[], datetime]) -> None:
        self.name = name
        self._sasl = settings.sasl
        self._clock = clock
        self._tls = TlsFiles(settings.tls) if settings.tls else None
        self._password = SecretFile(settings.sasl.password_file, "sasl.passwordFile") if settings.sasl else None
        self._guard = Guard(settings.breaker, clock, (self._password,) if self._password else ())
        self._wires = Wires([address(text, PORT) for text in settings.bootstrap_servers], self._shown)
        self._progress = Progress()

    async def fetch(self, query: Query, deadline: timedelta) -> tuple[RawSample, ...]:
        """Return how far behind the group is; of topics that do not exist, nothing."""
        asked, now = parameters(query, KafkaParameters), self._clock()

        async def ask() -> tuple[RawSample, ...]:
            known = await self._known(asked)
            lags = {place: self._counted(asked, place, offsets, now) for place, offsets in known.items()}
            return tuple(samples(asked, lags, now))

        return await self._guard.ask(query.text, deadline, ask)

    async def ping(self) -> None:
        """Ask who the brokers are."""

        async def ask() -> tuple[RawSample, ...]:
            await self._wires.ask_any(parse.about_topics(()))
            return ()

        await self._guard.ask("ping", _PING, ask)

    async def aclose(self) -> None:
        """End what is under way, and let go of connections."""
        await self._guard.aclose()
        await self._wires.aclose()

    async def _known(self, asked: KafkaParameters) -> dict[Place, Offsets]:
        """Find out what was committed and then where partitions end: in the other order a group could be ahead."""
        coordinator = parse.coordinator(await self._wires.ask_any(parse.about_coordinator(asked.group)))
        committed = parse.offsets(await self._wires.ask(coordinator, parse.about_offsets(asked.group)))
        topics = asked.topics or {place.topic for place in committed}
        if not topics:
            return {}
        layout = parse.layout(await self._wires.ask_any(parse.about_topics(topics)), topics)
        places = wanted(asked, layout.leaders)
        ends = await self._ends(layout.leaders, places, END)
        known = {place: Offsets(committed.get(place), ends.get(place)) for place in places}
        if asked.offset_reset == "earliest":
            unread = [place for place, offsets in known.items() if offsets.is_without_commit]
            begins = await self._ends(layout.leaders, unread, BEGINNING)
            known |= {place: known[place]._replace(beginning=begins.get(place)) for place in unread}
        return known

    async def _ends(self, leaders: Leaders, places: Iterable[Place], which: int) -> dict[Place, int]:
        """Ask each broker about the partitions that it leads."""
        by_leader: dict[Address, list[Place]] = defaultdict(list)
        for place in places:
            if (leader := leaders[place]) is not None:
                by_leader[leader].append(place)
        asking = (self._wires.ask(leader, parse.about_ends(led, which)) for leader, led in by_leader.items())
        found: dict[Place, int] = {}
        for said in await asyncio.gather(*asking, return_exceptions=True):  # or some would be left behind
            if isinstance(said, BaseException):
                raise said
            found |= parse.ends(said)
        return found

    def _counted(self, asked: KafkaParameters, place: Place, offsets: Offsets, now: datetime) -> float:
        """Say what a partition counts for: its lag, unless it is stuck."""
        behind = lag(asked, offsets)
        if not asked.stuck_after:
            return behind
        stands = self._progress.standing(asked.group, place, offsets, now)
        return min(behind, 1) if stands >= asked.stuck_after else behind

    async def _shown(self) -> Shown:
        return await asyncio.to_thread(self._show)

    def _show(self) -> Shown:
        """Put together what we show; in a thread, because secrets and certificates are files."""
        shown = Shown(self._tls.context() if self._tls else None)
        if self._sasl is None or self._password is None:
            return shown
        return shown._replace(
            mechanism=self._sasl.mechanism, username=self._sasl.username, password=self._password.read_now()
        )
