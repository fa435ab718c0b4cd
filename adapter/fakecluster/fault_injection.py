"""What an API server does to its clients on a bad day, on demand: refusals, silence, permissions that are missing."""

import asyncio
from dataclasses import dataclass, field

from adapter.fakecluster.api_errors import Refused, on_request


@dataclass
class _Refusal:
    code: int
    times: int
    verb: str
    within: str
    after: int

    def fits(self, verb: str, path: str) -> bool:
        if self.times <= 0 or self.verb not in {"", verb} or self.within not in path:
            return False
        self.after -= 1
        return self.after < 0


@dataclass
class Weather:
    """Fair unless somebody says otherwise."""

    refusing: int = 0
    """While not zero, every request is refused with this code."""

    _refusals: list[_Refusal] = field(default_factory=list)
    _forbidden: set[tuple[str, str]] = field(default_factory=set)
    _moving: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._moving.set()

    def refuse_next(self, code: int, *, times: int = 1, verb: str = "", within: str = "", after: int = 0) -> None:
        """Refuse the next requests with this code: all, or those of a verb, or those with `within` in their path.

        ``after`` so many of them that are let through.
        """
        self._refusals.append(_Refusal(code, times, verb, within, after))

    def relent(self) -> None:
        """Refuse nothing any more."""
        self._refusals.clear()

    def forbid(self, verb: str, resource: str) -> None:
        """Let nobody do this to a resource: ``forbid("list", "pods")``."""
        self._forbidden.add((verb, resource))

    def permit(self, verb: str, resource: str) -> None:
        """Take that back."""
        self._forbidden.discard((verb, resource))

    def freeze(self) -> None:
        """Accept requests and answer none."""
        self._moving.clear()

    def thaw(self) -> None:
        """Answer again, also those who have been waiting."""
        self._moving.set()

    async def let_through(self, verb: str, path: str, resource: str) -> None:
        """Let a request pass, or not; `verb` and `resource` as in a role, such as ``patch`` and ``pods/status``."""
        await self._moving.wait()
        if self.refusing:
            raise on_request(self.refusing)
        for refusal in self._refusals:
            if refusal.fits(verb, path):
                refusal.times -= 1
                raise on_request(refusal.code)
        if (verb, resource) in self._forbidden:
            plural, _, _ = resource.partition("/")
            why = f'User "steadyscale" cannot {verb} resource "{resource}" in this API group'
            raise Refused(403, "Forbidden", f"{plural} is forbidden: {why}")
