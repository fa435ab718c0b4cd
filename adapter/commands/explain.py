"""``steadyscale explain NAMESPACE/NAME``: prints the steps of the decision that is or was in force."""

import argparse
import json
import sys

from adapter.commands.service_client import ServiceClient, client_command, object_path
from adapter.debug.render import explanation_lines, terminal_colors
from adapter.debug.render_history import moment_lines

NOT_KNOWN = 1


@client_command
async def run(options: argparse.Namespace) -> int:
    client = await ServiceClient.from_options(options)
    if options.at is None:
        view = await client.get(object_path("/debug/autoscalers", options.autoscaler, "shop/orders", options.namespace))
        lines, is_known = explanation_lines(view, terminal_colors(sys.stdout)), True
    else:
        view = await client.get(
            object_path("/debug/history", options.autoscaler, "shop/orders", options.namespace), {"at": options.at}
        )
        lines, is_known = moment_lines(view, terminal_colors(sys.stdout)), view["status"] in {"decided", "pending"}
    text = json.dumps(view, indent=2, ensure_ascii=False) if options.output == "json" else "\n".join(lines)
    sys.stdout.write(f"{text}\n")
    return 0 if is_known else NOT_KNOWN
