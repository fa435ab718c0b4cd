"""``steadyscale metric NAMESPACE/NAME [-l SELECTOR]``: asks the running service what a metric is now, and why."""

import argparse
import asyncio
import json
import sys
from typing import Final, TextIO
from urllib.parse import quote

from adapter.commands.service_client import UNREACHABLE, AskFailed, Service
from adapter.debug.trace_text import lines

UNREADABLE: Final = 1


def run(options: argparse.Namespace) -> int:
    """Ask, and write the answer; return 0 if the metric has a value now."""
    try:
        return asyncio.run(_metric(options, sys.stdout))
    except (AskFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return UNREACHABLE


async def _metric(options: argparse.Namespace, out: TextIO) -> int:
    namespace, _, name = options.metric.partition("/")
    if not namespace or not name:
        raise AskFailed(f"{options.metric!r} is not NAMESPACE/NAME, such as shop/queue-depth")
    path = f"/debug/metrics/{quote(namespace, safe='')}/{quote(name, safe='')}"
    service = await Service.of(options)
    told = await service.ask(path, {"labelSelector": options.selector} if options.selector else {})
    if options.output == "json":
        out.write(json.dumps(told, indent=2) + "\n")
    else:
        out.writelines(f"{line}\n" for line in lines(told))
    return 0 if told["error"] is None else UNREADABLE
