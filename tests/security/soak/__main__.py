"""Let hostile tenants attack one process, and check that a well-behaved tenant does not notice.

    python -m tests.security.soak --minutes=10

The process runs as in manifests/base, with its memory limit and its liveness probe, beside a real control plane and a
real Prometheus. The exit code is 1 if a read was lost or wrong, a scaling step was missed, or the process restarted.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from tests.integration.service import ROOT
from tests.security.soak.api import Api
from tests.security.soak.attacks.__main__ import GROUPS
from tests.security.soak.environment import HOSTILE, HPA, Environment, environment
from tests.security.soak.outcome import Outcome
from tests.security.soak.stored_objects import store
from tests.security.soak.tenant import NAMESPACE, READ_TIMEOUT, Tenant

STEP = 40.0
"""Seconds between changes of the well-behaved tenant's values; the autoscaler reconciles every 15 s."""


def main() -> int:
    """Run the soak and print its result."""
    parser = argparse.ArgumentParser(prog="python -m tests.security.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="duration of the attacks (default 2)")
    parser.add_argument(
        "--rate", type=float, default=10, help="reads of the well-behaved tenant per second (default 10)"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="seed of the attacks")
    parser.add_argument("--no-attacks", action="store_true", help="measure without attacks, for comparison")
    parser.add_argument("--keep", type=Path, help="copy the log of the process to this file")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, environment(Path(folder)) as running:
        try:
            outcome = asyncio.run(_soak(running, options))
        finally:
            if options.keep is not None:
                options.keep.write_bytes(running.pod.log.read_bytes())
    print("\n".join(outcome.lines()), flush=True)  # noqa: T201
    return 1 if set(outcome.failures()) - ({"no attacks"} if options.no_attacks else set()) else 0


async def _soak(running: Environment, options: argparse.Namespace) -> Outcome:
    async with AsyncExitStack() as stack:
        editor = await stack.enter_async_context(Api(running.endpoint(NAMESPACE), timeout=10))
        reader = await stack.enter_async_context(Api(running.endpoint(HPA), timeout=READ_TIMEOUT))
        admin = await stack.enter_async_context(Api(running.endpoint("admin"), timeout=20))
        tenant = Tenant(editor, reader, running.target, running.documents, options.seed)
        outcome = Outcome(options.seed, options.minutes, running.pod, tenant.measurement)
        tasks = [asyncio.create_task(running.pod.supervise()), asyncio.create_task(running.pod.probe())]
        await _until_served(tenant)
        tasks += [asyncio.create_task(tenant.read_all(options.rate)), asyncio.create_task(tenant.scale_all(STEP))]
        attackers = [] if options.no_attacks else _start_attackers(running, options)
        if attackers:
            tasks.append(asyncio.create_task(_store_later(running, admin, outcome, options.minutes * 60 / 4)))
        await _wait(tasks, options.minutes * 60)
        for process in attackers:
            process.terminate()
            process.wait()
        for group in GROUPS if attackers else ():
            counts = json.loads((running.plane.folder / f"attacks.{group}").read_text())
            outcome.attacks |= {kind: Counter(one) for kind, one in counts.items()}
        outcome.log_errors = _errors(running.pod.log)
        return outcome


async def _until_served(tenant: Tenant) -> None:
    await tenant.create()
    deadline = time.monotonic() + 60
    while not await tenant.is_served():
        if time.monotonic() > deadline:
            raise SystemExit("the metrics of the well-behaved tenant are not served before the attacks")
        await asyncio.sleep(0.5)


def _start_attackers(running: Environment, options: argparse.Namespace) -> list[subprocess.Popen[bytes]]:
    config = running.plane.folder / "attacks.json"
    config.write_text(json.dumps(running.attack_config(options.seed, start=options.minutes * 60 / 8)))
    command = [sys.executable, "-m", "tests.security.soak.attacks", str(config)]
    return [subprocess.Popen([*command, group], cwd=ROOT) for group in GROUPS]  # noqa: S603 - fixed command


async def _store_later(running: Environment, admin: Api, outcome: Outcome, delay: float) -> None:
    await asyncio.sleep(delay)
    outcome.stored = await store(running.plane, admin, HOSTILE[0])


async def _wait(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    """Wait, then cancel the tasks; a task that failed ends the run at once."""
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


def _errors(log: Path) -> Counter[str]:
    """Count log lines with the level error, and tracebacks."""
    found: Counter[str] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if "Traceback (most recent call last)" in line:
            found["Traceback"] += 1
        elif '"level":"error"' in line.replace(" ", "").lower():
            message = re.search(r'"(?:message|msg|event)"\s*:\s*"([^"]*)"', line)
            found[message[1] if message else line[:80]] += 1
    return found


if __name__ == "__main__":
    sys.exit(main())
