"""A real NATS server with JetStream on loopback, and an administrator for it."""

import asyncio
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import nats
from nats.js import JetStreamContext

from tests.backends.faulty_proxy import LOOPBACK
from tests.control_plane.cluster import free_port
from tests.control_plane.process import Program
from tests.missing_programs import require

T = TypeVar("T")
SERVER: Final = Path("/usr/sbin/nats-server")
ADMIN: Final = ("admin", "admin-password")
PERMISSIONS: Final = """\
{ publish: ["$JS.API.STREAM.INFO.*", "$JS.API.STREAM.LIST", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.LIST.*"]
  subscribe: "_INBOX.>" }"""
"""The permissions that docs/backends/nats.md documents."""


class NatsServer:
    """A server whose users and further configuration can be changed with a reload."""

    def __init__(self, folder: Path, users: str = "", more: str = "") -> None:
        is_installed = SERVER.exists() or shutil.which("nats-server") is not None
        require("nats-server", "apt install nats-server", is_installed=is_installed)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.write(users, more)
        executable = SERVER if SERVER.exists() else Path(shutil.which("nats-server") or "")
        self.program = Program((executable, "-c", folder / "nats.conf"), folder / "server.log", self._is_ready)

    def write(self, users: str, more: str = "") -> None:
        admin = f"{{ user: {ADMIN[0]}, password: {ADMIN[1]} }}"
        all_users = ", ".join(each for each in (admin, users) if each)
        if "authorization" not in more and "accounts" not in more:
            more += f"\nauthorization {{ users: [{all_users}] }}"
        (self.folder / "nats.conf").write_text(
            f"listen: {LOOPBACK}:{self.port}\njetstream {{ store_dir: {self.folder / 'store'} }}\n{more}\n"
        )

    def reload(self, users: str, more: str = "") -> None:
        """Change the users; connections of users that became invalid are closed."""
        before = self._log_count("Reloaded server configuration")
        self.write(users, more)
        os.kill(self.program.pid, signal.SIGHUP)
        while self._log_count("Reloaded server configuration") == before:
            time.sleep(0.01)

    def start(self) -> None:
        self.program.start()

    def stop(self) -> None:
        self.program.kill()  # no data has to be kept

    def _log_count(self, text: str) -> int:
        return self.program.log.read_text(errors="replace").count(text)

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), 1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


class Admin:
    """A client with all permissions, in a thread with its own event loop, independent of the code under test."""

    def __init__(self, server: NatsServer, **options: Any) -> None:
        self._server = server
        self._options = options or {"user": ADMIN[0], "password": ADMIN[1]}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="peer nats")
        self._thread.start()
        self.client: Any = None

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def connect(self) -> None:
        async def connect() -> None:
            self.client = await nats.connect(f"nats://{LOOPBACK}:{self._server.port}", **self._options)

        self.do(connect())

    def close(self) -> None:
        if self.client is not None:
            self.do(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def js(self) -> JetStreamContext:
        context: JetStreamContext = self.client.jetstream()
        return context

    def set_values(self, numbers: Mapping[str, int]) -> None:
        """Create these streams with these numbers of messages, and delete all others."""

        async def create() -> None:
            for stream in await self.js.streams_info():
                await self.js.delete_stream(str(stream.config.name))
            for name, number in numbers.items():
                await self.js.add_stream(name=name, subjects=[f"in.{name}"], storage="memory")
                for _ in range(number):
                    await self.js.publish(f"in.{name}", b"work")

        self.do(create())
