"""The overviews of the other replicas that control shards, fetched at most once per second."""

import asyncio
from datetime import timedelta
from typing import Final

from multidict import MultiMapping

from adapter.debug.formatting import Json
from adapter.debug.overview_merge import merged_overview
from adapter.server.leader_forwarding import LeaderForwarding, NotForwarded
from adapter.ttl_cache import TTLCache

_TTL: Final = timedelta(seconds=0.9)
_TIMEOUT: Final = 2.0
_PARAMETERS: Final = ("text", "state", "selected")


class PeerOverviews:
    """Adds the autoscalers of the other replicas to the overview of this one."""

    def __init__(self, forwarding: LeaderForwarding) -> None:
        self._forwarding = forwarding
        self._cache: TTLCache[tuple[str, str], Json | NotForwarded] = TTLCache(256, _loop_time)

    async def merged(self, own: Json, query: MultiMapping[str]) -> Json:
        """Return the overview for the parameters, with what the other replicas respond; without shards, ``own``."""
        if not (peers := self._forwarding.leadership.peers()):
            return own
        wanted = {name: query[name] for name in _PARAMETERS if name in query}
        responses = await asyncio.gather(*(self._overview(address, wanted) for address in peers))
        others = [response for response in responses if not isinstance(response, NotForwarded)]
        missing = [peer for peer, one in zip(peers, responses, strict=True) if isinstance(one, NotForwarded)]
        return merged_overview(own, others, missing)

    async def _overview(self, address: str, query: dict[str, str]) -> Json | NotForwarded:
        async def load() -> Json | NotForwarded:
            return await self._forwarding.get(address, "/debug/overview", query, _TIMEOUT)

        return await self._cache.get_or_load((address, repr(sorted(query.items()))), load, lambda _: _TTL)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
