"""Attack as a file says, with the attacks whose names start with a word, and write the counts every second.

python -m tests.security.soak.attacks FILE WORD
"""

import asyncio
import json
import logging
import os
import random
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.security.soak.api import Api, Endpoint
from tests.security.soak.attacks import connections, objects, reads
from tests.security.soak.attacks.attacker import Attack, Attacker, HostileTenant

ATTACKS: Final[dict[str, tuple[Attack, int, float]]] = {
    # kind: (attack, number at once, longest pause in seconds)
    **{
        f"object: {kind}": (partial(objects.hostile_objects, kind=kind), 1, 2.0)
        for kind in ("depth", "deep list", "xpath", "jmespath", "regex", "many keys")
    },
    "object: 16 KB, changed": (objects.change_large_object, 3, 0.1),
    "object: labels changed": (objects.change_labels, 1, 0.1),
    "object: huge names": (objects.huge_names, 1, 3.0),
    "object: autoscaler": (objects.hostile_autoscaler, 2, 1.0),
    "object: workload": (objects.hostile_workload, 1, 1.0),
    "query: escape": (reads.escape, 3, 0.5),
    **{
        f"query: {kind}": (partial(reads.query_of_a_kind, kind=kind), 3, 0.5)
        for kind in ("slow", "invalid", "slow-http")
    },
    "read: long selector": (reads.long_selector, 3, 0.2),
    "read: random token": (reads.random_token, 10, 0.2),
    "connection: bare": (connections.bare_connection, 1500, 1.0),
    "connection: half handshake": (connections.half_handshake, 100, 1.0),
    "connection: slow second request": (connections.slow_second_request, 30, 1.0),
    "connection: unread responses": (connections.unread_response, 3, 3.0),
}


GROUPS: Final = sorted({kind.partition(":")[0] for kind in ATTACKS})
"""The first words; each group has its own process, so that none is slowed down by the others."""


async def attack(config: dict[str, Any], group: str, counts: Path) -> None:
    """Run all attacks of a group at once, started in a random order, until cancelled."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        tenants = [
            HostileTenant(
                one["namespace"],
                await stack.enter_async_context(Api(Endpoint(**one["endpoint"]), timeout=15)),
                one["token"],
            )
            for one in config["tenants"]
        ]
        attacker = Attacker(tenants, config["host"], config["port"], random.Random(f"{config['seed']} {group}"))  # noqa: S311
        tasks.create_task(_write(attacker, counts))
        copies = [kind for kind, (_, number, _) in ATTACKS.items() if kind.startswith(group) for _ in range(number)]
        attacker.random.shuffle(copies)
        for kind in copies:
            function, _, pause = ATTACKS[kind]
            tasks.create_task(attacker.repeat(kind, function, pause))
            await asyncio.sleep(config["start"] / len(copies))


async def _write(attacker: Attacker, counts: Path) -> None:
    while True:
        new = counts.with_suffix(f"{counts.suffix}-new")
        new.write_text(json.dumps(attacker.counts))
        new.replace(counts)
        await asyncio.sleep(1)


if __name__ == "__main__":
    os.nice(19)  # the attackers have machines of their own; here they share one with the attacked process
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it warns about writes to connections that were reset
    source = Path(sys.argv[1])
    asyncio.run(attack(json.loads(source.read_text()), sys.argv[2], source.with_suffix(f".{sys.argv[2]}")))
