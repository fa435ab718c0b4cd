"""/livez: are we stuck. /readyz: could we answer. /healthz: both. In the words of Kubernetes' own servers."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from adapter.errors import PathNotFound
from adapter.server.request_context import RequestContext

Check = Callable[[], bool]
"""Whether one thing is as it should be, from memory: a check that waits would be the outage it looks for."""

OPEN = frozenset({"/healthz", "/livez", "/readyz"})
"""Paths that anyone may ask, because a kubelet has no credentials."""

_TEXT = "text/plain"


class Lifecycle:
    """Whether we are on our way out. The first thing to turn when told to stop, so that no new request is sent here."""

    def __init__(self) -> None:
        self.stopping = False

    def is_staying(self) -> bool:
        """Say whether new requests are welcome."""
        return not self.stopping


class Health:
    """The three health paths, and each check by its own name below them."""

    def __init__(self, *, live: Mapping[str, Check], ready: Mapping[str, Check]) -> None:
        live = {"ping": lambda: True, **live}
        ready = {"ping": lambda: True, **ready}
        self._checks = {"livez": live, "readyz": ready, "healthz": {**live, **ready}}

    def handler(self, name: str) -> Callable[[RequestContext], Awaitable[web.Response]]:
        """Make the handler of one of the three."""

        async def answer(exchange: RequestContext) -> web.Response:
            return self._answer(exchange, name, self._checks[name])

        return answer

    async def one(self, exchange: RequestContext) -> web.Response:
        """Answer ``/readyz/<check>``: this check alone."""
        name, _, check = exchange.path.strip("/").partition("/")
        if check not in self._checks.get(name, {}):
            raise PathNotFound
        return self._answer(exchange, name, {check: self._checks[name][check]})

    def _answer(self, exchange: RequestContext, name: str, checks: Mapping[str, Check]) -> web.Response:
        excluded = set(exchange.query.getall("exclude", ()))
        failed = {each for each, check in checks.items() if each not in excluded and not check()}
        if not failed and "verbose" not in exchange.query:
            return web.Response(text="ok", content_type=_TEXT)
        lines = [_line(each, excluded=each in excluded, failed=each in failed) for each in checks]
        if unknown := sorted(excluded - checks.keys()):
            listed = ",".join(f'"{each}"' for each in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
        lines.append(f"{name} check {'failed' if failed else 'passed'}\n")
        return web.Response(status=500 if failed else 200, text="\n".join(lines), content_type=_TEXT)


def _line(check: str, *, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    return f"[-]{check} failed: reason withheld" if failed else f"[+]{check} ok"
