"""``steadyscale explain NAMESPACE/NAME``: prints the steps of the last decision for a PodAutoscaler."""

import argparse
import json
import os
import sys

from adapter.commands.service_client import ServiceClient, client_command, object_path
from adapter.debug.render import ANSI_COLORS, NO_COLORS, explanation_lines


@client_command
async def run(options: argparse.Namespace) -> int:
    path = object_path("/debug/autoscalers", options.autoscaler, "shop/orders")
    client = await ServiceClient.from_options(options)
    view = await client.get(path)
    has_colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    lines = explanation_lines(view, ANSI_COLORS if has_colors else NO_COLORS)
    text = json.dumps(view, indent=2, ensure_ascii=False) if options.output == "json" else "\n".join(lines)
    sys.stdout.write(f"{text}\n")
    return 0
