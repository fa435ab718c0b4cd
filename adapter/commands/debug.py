"""``steadyscale debug --port PORT``: shows the running service's page on this machine, as the user who asks."""

import argparse
import asyncio
import signal
import sys
from typing import TextIO

from adapter.commands.service_client import UNREACHABLE, AskFailed, Service
from adapter.demo.page_proxy import page_door


def run(options: argparse.Namespace) -> int:
    """Show the page until interrupted."""
    try:
        asyncio.run(_show(options, sys.stdout))
    except (AskFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return UNREACHABLE
    return 0


async def _show(options: argparse.Namespace, out: TextIO) -> None:
    """Ask once, so that who may not, or has the wrong address, hears of it here and not in a browser."""
    service = await Service.of(options)
    await service.ask("/debug/picture")
    async with page_door(service.server, service.credentials, service.tls, options.port) as address:
        out.write(f"the page: {address}\nCtrl-C ends this; the service goes on\n")
        out.flush()
        await _interrupted()


async def _interrupted() -> None:
    """Wait for Ctrl-C or a request to end; asked for by name, because who is started in the background ignores one."""
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await stop.wait()
