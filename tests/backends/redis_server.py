"""A real Redis server on loopback: standalone, a sentinel, or a cluster node."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from tests.backends.faulty_proxy import LOOPBACK
from tests.control_plane.cluster import free_port
from tests.control_plane.process import Program
from tests.missing_programs import require
from tests.waiting import GIVE_UP

READER = "reader"
ACL_RULES = "~* +llen +xlen +scard +zcard +hlen +xinfo|groups +exists +scan +ping"
"""The ACL rules that docs/backends/redis.md documents, for all keys."""


class RedisServer:
    """One Redis process."""

    def __init__(self, folder: Path, *more: str, sentinel: bool = False, port: int = 0) -> None:
        require("redis-server", "apt install redis-server", is_installed=shutil.which("redis-server") is not None)
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        config = folder / "redis.conf"
        config.write_text("\n".join((f"bind {LOOPBACK}", f"dir {folder}", 'save ""', *more, "")))
        port_option = ("--port", str(self.port)) if not any("tls-port" in line for line in more) else ()
        command = ("redis-server", config, *port_option, *(("--sentinel",) if sentinel else ()))
        self.program = Program(command, folder / "server.log", self._is_ready)
        self.ssl: dict[str, Any] = {}

    def start(self) -> None:
        self.program.start()

    def stop(self) -> None:
        self.program.kill()  # no data has to be kept

    @contextmanager
    def client(self, **more: Any) -> Iterator[Any]:
        """Connect as administrator, independently of the code under test."""
        with redis.Redis(host=LOOPBACK, port=self.port, socket_timeout=GIVE_UP, **self.ssl, **more) as client:
            yield client

    def set_password(self, password: str, rules: str = ACL_RULES) -> None:
        """Set password and ACL rules of the reader, and close its connections."""
        with self.client() as client:
            client.execute_command("ACL", "SETUSER", READER, "on", "resetpass", f">{password}", *rules.split())
            self.disconnect_reader(client)

    def disable_user(self) -> None:
        with self.client() as client:
            client.execute_command("ACL", "SETUSER", READER, "off")
            self.disconnect_reader(client)

    @staticmethod
    def disconnect_reader(client: Any) -> None:
        client.execute_command("CLIENT", "KILL", "USER", READER)

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
