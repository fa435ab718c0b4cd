"""/version, /metrics and /: what we are, how we fare, what there is."""

import platform
from collections.abc import Awaitable, Callable, Iterable
from importlib import metadata

from aiohttp import web

from adapter.server import serialization
from adapter.server.content_negotiation import JSON, YAML
from adapter.server.request_context import RequestContext

_DISTRIBUTION = "steadyscale"


def _version() -> dict[str, str]:
    """Say our version in the shape of Kubernetes' version.Info, where every field is a text."""
    try:
        release = metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        release = "0.0.0"
    major, minor = release.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{release}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


_VERSION = _version()


async def version(exchange: RequestContext) -> web.Response:
    """Answer ``/version``."""
    media = exchange.wants((JSON, YAML)).media
    return web.Response(body=serialization.to_bytes(_VERSION, media, pretty=exchange.pretty()), content_type=media)


def metrics(figures: Callable[[], tuple[bytes, str]]) -> Callable[[RequestContext], Awaitable[web.Response]]:
    """Make the handler of ``/metrics``."""

    async def answer(_: RequestContext) -> web.Response:
        body, content_type = figures()
        return web.Response(body=body, headers={"Content-Type": content_type})

    return answer


def paths(known: Iterable[str]) -> Callable[[RequestContext], Awaitable[web.Response]]:
    """Make the handler of ``/``: the list of what there is."""
    body = serialization.to_bytes({"paths": sorted(known)}, JSON.media)

    async def answer(exchange: RequestContext) -> web.Response:
        return web.Response(body=body, content_type=exchange.wants((JSON,)).media)

    return answer
