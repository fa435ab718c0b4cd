"""/livez, /readyz and /healthz, in the format of Kubernetes' own servers; /healthz has the checks of /readyz."""

from collections.abc import Callable, Mapping

from aiohttp import web

from adapter.errors import PathNotFound
from adapter.server.request_context import RequestContext

Check = Callable[[], bool]
"""Returns whether a component is healthy; from memory, because a probe must not wait."""

UNAUTHENTICATED_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
"""Served without authentication, because the kubelet's probes have no credentials."""

_TEXT = "text/plain"


class Health:
    """The health endpoints: all checks (``/readyz``) and single checks (``/readyz/<check>``)."""

    def __init__(self, ready: Mapping[str, Check]) -> None:
        live: dict[str, Check] = {"ping": lambda: True}
        all_checks = {**live, **ready}
        self._checks = {"livez": live, "readyz": all_checks, "healthz": all_checks}

    async def all_checks(self, context: RequestContext) -> web.Response:
        name = context.path.strip("/")
        return _response(context, name, self._checks[name])

    async def single_check(self, context: RequestContext) -> web.Response:
        name, _, check = context.path.strip("/").partition("/")
        if check not in self._checks.get(name, {}):
            raise PathNotFound
        return _response(context, name, {check: self._checks[name][check]})


def _response(context: RequestContext, name: str, checks: Mapping[str, Check]) -> web.Response:
    excluded = set(context.query.getall("exclude", ()))
    failed = {check for check, is_healthy in checks.items() if check not in excluded and not is_healthy()}
    if not failed and "verbose" not in context.query:
        return web.Response(text="ok", content_type=_TEXT)
    lines = [_line(check, excluded=check in excluded, failed=check in failed) for check in checks]
    if unknown := sorted(excluded - checks.keys()):
        names = ",".join(f'"{check}"' for check in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines.append(f"{name} check {'failed' if failed else 'passed'}\n")
    return web.Response(status=500 if failed else 200, text="\n".join(lines), content_type=_TEXT)


def _line(check: str, *, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    return f"[-]{check} failed: reason withheld" if failed else f"[+]{check} ok"
