"""``steadyscale metrics [-n NAMESPACE]``: lists the metrics that can be read, with value, age and health."""

import argparse
import json
import sys
from urllib.parse import quote

from adapter.commands.service_client import ServiceClient, client_command
from adapter.debug.render_metrics import metric_list_lines


@client_command
async def run(options: argparse.Namespace) -> int:
    client = await ServiceClient.from_options(options)
    view = await client.get("/debug/metrics" + (f"/{quote(options.namespace, safe='')}" if options.namespace else ""))
    lines = [json.dumps(view, indent=2)] if options.output == "json" else metric_list_lines(view)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0
