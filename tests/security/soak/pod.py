"""One pod of the manifest: the process with its memory limit and liveness probe, restarted as by the kubelet."""

import asyncio
import os
import ssl
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tests.integration.service import ROOT
from tests.security.soak.memory_limit import MemoryLimit, parse_bytes

_POLL: Final = 0.1
_PROBE_DEFAULTS: Final = {"initialDelaySeconds": 0, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}


def container() -> dict[str, Any]:
    """Return the container of the Deployment in manifests/base."""
    deployment = yaml.safe_load((ROOT / "manifests" / "base" / "deployment.yaml").read_text())
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def manifest_limit() -> int:
    """Return the memory limit of the container in bytes."""
    return parse_bytes(container()["resources"]["limits"]["memory"])


@dataclass
class Pod:
    """The supervised process and what was observed of it."""

    command: list[str]
    log: Path
    url: str
    limit: MemoryLimit
    limit_bytes: int
    restarts: Counter[str] = field(default_factory=Counter)
    """How often the process was started again, by reason."""
    peak: int = 0
    slowest_probe: float = 0
    failed_probes: int = 0
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(  # noqa: S603 - the command of the manifest
                [*self.limit.prefix(), *self.command], stdout=log, stderr=log, cwd=ROOT, env=environment
            )

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def supervise(self) -> None:
        """Measure memory and restart the process when it ends, until cancelled."""
        while True:
            await asyncio.sleep(_POLL)
            process = self._running()
            if (code := process.poll()) is not None:
                killed = "out of memory" if self.limit.kills() else f"exit code {code}"
                await self._restart(killed)
                continue
            used = self.limit.used(process.pid)
            self.peak = max(self.peak, used)
            if used > self.limit_bytes:
                await self._restart("out of memory")

    async def probe(self) -> None:
        """Send the liveness probe of the manifest; kill the process after too many failures, until cancelled."""
        settings = {**_PROBE_DEFAULTS, **container()["livenessProbe"]}
        unverified = ssl._create_unverified_context()  # noqa: S323 - as the kubelet
        failures = 0
        await asyncio.sleep(settings["initialDelaySeconds"])
        while True:
            started = time.monotonic()
            if await self._is_alive(unverified, settings["timeoutSeconds"]):
                failures = 0
            else:
                failures += 1
                self.failed_probes += 1
            self.slowest_probe = max(self.slowest_probe, time.monotonic() - started)
            if failures >= settings["failureThreshold"]:
                failures = 0
                self._running().kill()
                self.restarts["liveness probe failed"] += 1
            await asyncio.sleep(settings["periodSeconds"])

    async def _is_alive(self, tls: ssl.SSLContext, seconds: float) -> bool:
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.get(f"{self.url}/livez", ssl=tls) as response,
            ):
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _restart(self, reason: str) -> None:
        process = self._running()
        if process.poll() is None:
            process.kill()
        await asyncio.to_thread(process.wait)
        if process.returncode != -9 or "memory" in reason:  # a failed probe was counted when it failed
            self.restarts[reason] += 1
        await asyncio.sleep(1)
        self.start()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process
