"""A real Redis on loopback, in a folder of its own: alone, watched by a sentinel, or as a cluster."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from tests.backends.contract import require
from tests.backends.faulty_proxy import LOOPBACK
from tests.control_plane.cluster import free_port
from tests.control_plane.process import Program

READER = "reader"
RIGHTS = "~* +llen +xlen +scard +zcard +hlen +xinfo|groups +exists +scan +ping"
"""What docs/backends/redis.md says that the user needs, of all keys."""


class RedisServer:
    """One node."""

    def __init__(self, folder: Path, *more: str, sentinel: bool = False, port: int = 0) -> None:
        require("Redis", "redis-server", is_there=shutil.which("redis-server") is not None)
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        config = folder / "redis.conf"
        config.write_text("\n".join((f"bind {LOOPBACK}", f"dir {folder}", 'save ""', *more, "")))
        at = ("--port", str(self.port)) if not any("tls-port" in line for line in more) else ()
        command = ("redis-server", config, *at, *(("--sentinel",) if sentinel else ()))
        self.program = Program(command, folder / "server.log", self._is_ready)
        self.ssl: dict[str, Any] = {}

    def start(self) -> None:
        self.program.start()

    def stop(self) -> None:
        self.program.kill()  # nothing is to be kept

    @contextmanager
    def client(self, **more: Any) -> Iterator[Any]:
        """Speak with it ourselves, past everything that is under test."""
        with redis.Redis(host=LOOPBACK, port=self.port, socket_timeout=10, **self.ssl, **more) as client:
            yield client

    def admit(self, password: str, rights: str = RIGHTS) -> None:
        """Believe this password of the reader's from now on, and let nobody stay who came with another."""
        with self.client() as client:
            client.execute_command("ACL", "SETUSER", READER, "on", "resetpass", f">{password}", *rights.split())
            self.throw_out(client)

    def lock(self) -> None:
        with self.client() as client:
            client.execute_command("ACL", "SETUSER", READER, "off")
            self.throw_out(client)

    @staticmethod
    def throw_out(client: Any) -> None:
        client.execute_command("CLIENT", "KILL", "USER", READER)

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
