"""``steadyscale history NAMESPACE/NAME``: prints the recorded decisions of a PodAutoscaler."""

import argparse
import json
import sys

from adapter.commands.service_client import ServiceClient, client_command, object_path
from adapter.debug.render import terminal_colors
from adapter.debug.render_history import csv_text, period_lines

PATH = "/debug/history"


@client_command
async def run(options: argparse.Namespace) -> int:
    path = object_path(PATH, options.autoscaler, "shop/orders", options.namespace)
    client = await ServiceClient.from_options(options)
    query = {"since": options.since, "until": options.until}
    if options.output == "json":
        query["steps"] = "true"
    view = await client.get(path, query)
    match options.output:
        case "json":
            sys.stdout.write(f"{json.dumps(view, indent=2, ensure_ascii=False)}\n")
        case "csv":
            sys.stdout.write(csv_text(view))
        case _:
            sys.stdout.writelines(f"{line}\n" for line in period_lines(view, terminal_colors(sys.stdout)))
    return 0
