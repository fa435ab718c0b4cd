"""The controller processes of a real run: started, frozen, stopped and killed, each behind a proxy of its own."""

import os
import signal
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.control_plane.cluster import LOOPBACK, ControlPlane
from tests.control_plane.process import Program
from tests.faults.api import Api, Refused, path_of
from tests.faults.proxy import FaultProxy, serving_tls
from tests.faults.random_run.actions import LEADER, PROCESSES
from tests.faults.random_run.audit import token_id
from tests.faults.random_run.invariants import Violation
from tests.integration.scaling import NAMESPACE

LEASE: Final = "steadyscale"
_FLAGS: Final = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=10s",
    "--fallback-floor=2s",
    f"--leader-elect-resource-name={LEASE}",
)


class Processes:
    """The running processes by name; a restarted process has a new token, log and identity."""

    def __init__(self, plane: ControlPlane, config: Path, proxies: dict[str, FaultProxy]) -> None:
        self.proxies = proxies
        self.identities: dict[str, str] = {}
        """The identity of every process that was started, by the id of its token."""
        self.problems: list[Violation] = []
        self._plane = plane
        self._api = Api(plane)
        self._config = config
        self._running: dict[str, Program] = {}
        self._logs: list[Path] = []

    def start(self, name: str) -> None:
        identity = f"{name}-{len(self.identities) + 1}"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAMESPACE}/token"
        token = str(self._api.request("POST", path, body)["status"]["token"])
        self.identities[token_id(token)] = identity
        kubeconfig = self._plane.kubeconfig_with_token(identity, token)
        if name in self.proxies:
            kubeconfig.write_text(kubeconfig.read_text().replace(self._plane.server, self.proxies[name].url))
        log = self._plane.folder / f"{identity}.log"
        command = [sys.executable, "-m", "adapter", "serve", "--no-adapter", f"--config={self._config}"]
        program = Program([*command, f"--kubeconfig={kubeconfig}", *_FLAGS], log, lambda: True)
        program.start()
        self._running[name] = program
        self._logs.append(log)

    def stop(self, name: str, *, is_killed: bool = False) -> bool:
        """Stop a process with SIGTERM or SIGKILL; return False if it is not running."""
        program = self._running.pop(name, None)
        if program is None:
            return False
        if not program.is_running:
            self._report("process", f"{name} has ended: {program.tail(5)}")
        self._signal(program, signal.SIGCONT)
        if is_killed:
            program.kill()
        else:
            program.stop()
        return True

    def freeze(self, name: str) -> Program | None:
        """Suspend a process; return it."""
        program = self._running.get(name)
        if program is not None:
            self._signal(program, signal.SIGSTOP)
        return program

    def thaw(self, program: Program) -> None:
        """Resume a process that may have been stopped meanwhile."""
        if program in self._running.values():
            self._signal(program, signal.SIGCONT)

    def resolve(self, subject: str) -> str:
        """Return the name of the process that an action is about."""
        return subject if subject != LEADER else self._leader() or PROCESSES[0]

    def wait_for_leader(self, names: Sequence[str], seconds: float) -> None:
        """Wait until one of the processes holds the lease; report it otherwise."""
        deadline = time.monotonic() + seconds
        while self._leader() not in names:
            if time.monotonic() > deadline:
                self._report("leadership", f"none of {', '.join(names)} is leader after {seconds:g} s")
                self.check_running()
                return
            time.sleep(0.2)

    def check_running(self) -> None:
        """Report processes that have ended by themselves."""
        for name, program in self._running.items():
            if not program.is_running:
                self._report("process", f"{name} has ended: {program.tail(5)}")

    def close(self) -> None:
        """Kill all processes."""
        for name in tuple(self._running):
            self.stop(name, is_killed=True)

    def check_logs(self) -> None:
        """Report unexpected errors."""
        for log in self._logs:
            if "Traceback" in (text := log.read_text(errors="replace")):
                self._report("process", f"{log.stem} logged {text[text.index('Traceback') :][:1500]}")

    def _report(self, invariant: str, text: str) -> None:
        self.problems.append(Violation(time.time(), invariant, text))  # noqa: TID251 - the times of the audit log

    def _leader(self) -> str:
        """Return the name of the running process that holds the lease; empty if there is none."""
        with suppress(Refused, OSError):
            holder = self._api.get(path_of("Lease", NAMESPACE, LEASE))["spec"].get("holderIdentity") or ""
            running = self._running.items()
            return next((name for name, program in running if f"_{program.pid}_" in holder), "")
        return ""

    @staticmethod
    def _signal(program: Program, number: int) -> None:
        if program.pid:
            with suppress(ProcessLookupError):
                os.kill(program.pid, number)


@contextmanager
def running_processes(plane: ControlPlane, config: Path) -> Iterator[Processes]:
    """Run the proxies, and end all processes at the end of the block."""
    with ExitStack() as stack:
        proxies = {name: stack.enter_context(_proxy(plane, name).serving()) for name in PROCESSES}
        processes = Processes(plane, config, proxies)
        stack.callback(processes.close)
        yield processes


def _proxy(plane: ControlPlane, name: str) -> FaultProxy:
    certificate, key = plane.authority.server(LOOPBACK).save(plane.folder, f"proxy-{name}")
    upstream = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    return FaultProxy(plane.server, upstream, serving_tls(certificate, key))
