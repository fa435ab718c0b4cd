"""``steadyscale metric NAMESPACE/NAME [-l SELECTOR]``: reads a metric from the running service and prints the trace."""

import argparse
import json
import sys
from typing import Final

from adapter.commands.service_client import ServiceClient, client_command, object_path
from adapter.debug.render import trace_lines

NO_VALUE: Final = 1


@client_command
async def run(options: argparse.Namespace) -> int:
    path = object_path("/debug/metrics", options.metric, "shop/orders-waiting", options.namespace)
    client = await ServiceClient.from_options(options)
    trace = await client.get(path, {"labelSelector": options.selector} if options.selector else {})
    lines = [json.dumps(trace, indent=2)] if options.output == "json" else trace_lines(trace)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0 if trace["error"] is None else NO_VALUE
