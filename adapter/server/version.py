"""The endpoints /version, /metrics and /."""

import platform
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from adapter.server import serialization
from adapter.server.content_negotiation import JSON
from adapter.server.request_context import RequestContext
from adapter.version import package_version


def _version_info() -> dict[str, str]:
    """Return the version as Kubernetes' version.Info, whose fields are all strings."""
    version = package_version()
    major, minor = version.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


_VERSION_INFO = _version_info()


async def version(context: RequestContext) -> web.Response:
    """Serve ``/version``."""
    return context.respond(_VERSION_INFO)


def metrics(render: Callable[[], tuple[bytes, str]]) -> Callable[[RequestContext], Awaitable[web.Response]]:
    """Return the handler of ``/metrics``."""

    async def handle(_: RequestContext) -> web.Response:
        body, content_type = render()
        return web.Response(body=body, headers={"Content-Type": content_type})

    return handle


def paths(known: Iterable[str]) -> Callable[[RequestContext], Awaitable[web.Response]]:
    """Return the handler of ``/``, which lists the paths."""
    body = serialization.to_bytes({"paths": sorted(known)}, JSON.media)

    async def handle(context: RequestContext) -> web.Response:
        return web.Response(body=body, content_type=context.negotiate((JSON,)).media)

    return handle
