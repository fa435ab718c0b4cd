"""``steadyscale serve``: loads the configuration and runs the service until a signal stops it."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Final

from adapter import app, log
from adapter.config.loading import DEFAULT_PATH, ConfigFile
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import CannotListen
from autoscaler.flags import FLAGS, InvalidFlags, parse_flags
from autoscaler.kube.errors import KubeError

NO_CLUSTER: Final = 1
CANNOT_LISTEN: Final = 1
INVALID_CONFIG: Final = 2
_OTHER_PORT: Final = "stop the other process, or change serving.address or serving.port (--address, --port)"


def run(options: argparse.Namespace) -> int:
    overrides = {
        "serving": {"port": options.port, "address": options.address},
        "auth": {"kubeconfig": options.kubeconfig},
    }
    try:
        components = _components(options)
        file = ConfigFile(options.config or DEFAULT_PATH, overrides, is_optional=options.config is None)
        loaded = file.start()
        log.configure(loaded.config.log.format, loaded.config.log.level)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(app.serve(file, loaded, components))
    except (ConfigInvalid, InvalidFlags, KubeError, ExceptionGroup) as raised:
        match _first(raised):
            case ConfigInvalid() | InvalidFlags() as error:
                sys.stderr.writelines(f"{problem}\n" for problem in error.problems)
                return INVALID_CONFIG
            case KubeError() as error:
                sys.stderr.write(f"{error}\n")
                return NO_CLUSTER
            case CannotListen() as error:
                sys.stderr.write(f"{error}; {_OTHER_PORT}\n")
                return CANNOT_LISTEN
            case _:
                raise
    return 0


def _first(error: Exception) -> Exception:
    """Return the first error of the nested groups that the task groups of the service raise."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory, which saves about a sixth of the CPU time; None, the default, on Windows."""
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415 - not available on Windows

    return uvloop.new_event_loop


def _components(options: argparse.Namespace) -> app.Components:
    values = {flag.name: getattr(options, flag.name.replace("-", "_")) for flag in FLAGS}
    autoscaler = parse_flags({name: value for name, value in values.items() if value is not None})
    return app.Components(
        adapter=not options.no_adapter,
        autoscaler=None if options.no_autoscaler else autoscaler,
        namespace=autoscaler.lease_namespace,
    )
