"""``steadyscale explain NAMESPACE/NAME``: asks the running service why an autoscaler has the size that it has."""

import argparse
import asyncio
import json
import os
import sys
from typing import TextIO
from urllib.parse import quote

from adapter.commands.service_client import UNREACHABLE, AskFailed, Service
from adapter.debug.render import COLOURS, PLAIN, told


def run(options: argparse.Namespace) -> int:
    """Ask, and write the answer; return 0 if there was one."""
    try:
        return asyncio.run(_explain(options, sys.stdout))
    except (AskFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return UNREACHABLE


async def _explain(options: argparse.Namespace, out: TextIO) -> int:
    namespace, _, name = options.autoscaler.partition("/")
    if not namespace or not name or "/" in name:
        raise AskFailed(f"{options.autoscaler!r} is not NAMESPACE/NAME, such as shop/orders")
    service = await Service.of(options)
    found = await service.ask(f"/debug/autoscalers/{quote(namespace, safe='')}/{quote(name, safe='')}")
    if options.output == "json":
        out.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    else:
        out.writelines(f"{line}\n" for line in told(found, COLOURS if _is_coloured(out) else PLAIN))
    return 0


def _is_coloured(out: TextIO) -> bool:
    """Tell whether colour helps: only a terminal shows it, and who sets NO_COLOR wants none."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
