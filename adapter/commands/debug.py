"""``steadyscale debug --port PORT``: serves the debugging page of the running service on this machine."""

import argparse
import sys

from adapter.commands.service_client import ServiceClient, client_command
from adapter.debug.page_proxy import PageTarget, page_proxy
from adapter.process import stop_event


@client_command
async def run(options: argparse.Namespace) -> int:
    client = await ServiceClient.from_options(options)
    await client.get("/debug/overview")  # report a wrong address or missing permissions here, not in the browser
    target = PageTarget(
        client.server, client.credentials, client.tls, client.server_name, client.proxy, client.api_path
    )
    async with page_proxy(target, options.port) as address:
        stop = stop_event()
        sys.stdout.write(
            f"Debugging page: {address}\n"
            "The address can be used once, by one browser. Press Ctrl-C to stop; the service keeps running.\n"
        )
        sys.stdout.flush()
        await stop.wait()
    return 0
