"""``steadyscale debug --port PORT``: serves the debugging page of the running service on this machine."""

import argparse
import asyncio
import signal
import sys

from adapter.commands.service_client import ServiceClient, run_client
from adapter.debug.page_proxy import page_proxy


def run(options: argparse.Namespace) -> int:
    return run_client(_debug, options)


async def _debug(options: argparse.Namespace) -> int:
    client = await ServiceClient.from_options(options)
    await client.get("/debug/overview")  # report a wrong address or missing permissions here, not in the browser
    async with page_proxy(client.server, client.credentials, client.tls, options.port) as address:
        sys.stdout.write(f"Debugging page: {address}\nPress Ctrl-C to stop; the service keeps running.\n")
        sys.stdout.flush()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):  # a background process of a shell ignores SIGINT by default
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await stop.wait()
    return 0
