"""``steadyscale serve``: load the configuration, run until told to stop."""

import argparse
import asyncio
import sys
from typing import Final

from adapter import app, log
from adapter.config.loading import ConfigFile
from adapter.errors import ConfigInvalid
from autoscaler.kube.errors import KubeError
from autoscaler.settings import FLAGS, FlagsInvalid, operation

BAD_CONFIG: Final = 2


def run(options: argparse.Namespace) -> int:
    """Serve; return the exit code."""
    flags = {"serving": {"port": options.port, "address": options.address}, "auth": {"kubeconfig": options.kubeconfig}}
    try:
        halves = _halves(options)
        file = ConfigFile(options.config, flags)
        loaded = file.start()
        log.configure(loaded.config.log.format, loaded.config.log.level)
        asyncio.run(app.serve(file, loaded, halves))
    except (ConfigInvalid, FlagsInvalid) as error:
        sys.stderr.writelines(f"{problem}\n" for problem in error.problems)
        return BAD_CONFIG
    except KubeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _halves(options: argparse.Namespace) -> app.Components:
    given = {flag.name: getattr(options, flag.name.replace("-", "_")) for flag in FLAGS}
    chosen = operation({name: value for name, value in given.items() if value is not None})
    return app.Components(adapter=not options.no_adapter, operation=None if options.no_autoscaler else chosen)
