"""A real RabbitMQ node on loopback, with the management plugin."""

import json
import shutil
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pika

from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program
from tests.missing_programs import require
from tests.waiting import GIVE_UP

SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
ADMIN: Final = ("admin", "admin-password")
_PLUGINS: Final = "[rabbitmq_management]."
_FREQUENT_SAMPLES: Final = """\
[{rabbitmq_management_agent, [{sample_retention_policies,
  [{global, [{605, 1}]}, {basic, [{605, 1}]}, {detailed, [{10, 1}]}]}]}].
"""
"""Samples statistics every second instead of every five seconds."""


class RabbitMqServer:
    """One node."""

    def __init__(self, folder: Path) -> None:
        is_installed = SERVER.exists() and shutil.which("epmd") is not None
        require("rabbitmq-server", "apt install rabbitmq-server", is_installed=is_installed)
        self.folder = folder
        self.port, self.management_port, epmd_port, distribution_port = (free_port() for _ in range(4))
        home = folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        (folder / "plugins").write_text(_PLUGINS)
        (folder / "advanced.config").write_text(_FREQUENT_SAMPLES)
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {LOOPBACK}:{self.port}\n"
            f"management.tcp.ip = {LOOPBACK}\n"
            f"management.tcp.port = {self.management_port}\n"
            f"default_user = {ADMIN[0]}\ndefault_pass = {ADMIN[1]}\n"
            "collect_statistics_interval = 100\n"
        )
        environment = {
            "HOME": home,
            "ERL_EPMD_PORT": epmd_port,
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "RUNNING_UNDER_SYSTEMD": "true",  # the process is the node itself, so that it can be killed
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": folder / "mnesia",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq",
            "RABBITMQ_ADVANCED_CONFIG_FILE": folder / "advanced.config",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_DIST_PORT": distribution_port,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        command: list[str | Path] = ["env", *(f"{key}={value}" for key, value in environment.items()), SERVER]
        self.program = Program(command, folder / "server.log", self._is_ready)
        self._epmd = Program(["epmd", "-port", str(epmd_port), "-address", LOOPBACK], folder / "epmd.log", lambda: True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.management_port}"

    def start(self) -> None:
        self._epmd.start()
        self.program.start(within=120)

    def stop(self) -> None:
        self.program.kill()  # a regular shutdown takes six seconds, and no data has to be kept
        self._epmd.stop()

    # ---- content

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to the management API as administrator, independently of the code under test."""
        request = urllib.request.Request(f"{self.url}/api{path}", method=method)  # noqa: S310 - loopback
        request.add_header("Authorization", f"Basic {b64encode(':'.join(ADMIN).encode()).decode()}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=GIVE_UP) as response:  # noqa: S310
            content = response.read()
        return json.loads(content) if content else None

    def add_user(self, name: str, password: str, *vhosts: str) -> None:
        """Create a user with read permissions, or change the password of a user."""
        self.api("PUT", f"/users/{name}", {"password": password, "tags": "monitoring"})
        for vhost in vhosts:
            read_only = {"configure": "", "write": "", "read": ".*"}
            self.api("PUT", f"/permissions/{quote(vhost, safe='')}/{name}", read_only)

    def add_vhost(self, vhost: str) -> None:
        self.api("PUT", f"/vhosts/{quote(vhost, safe='')}")

    @contextmanager
    def channel(self, vhost: str = "/") -> Iterator[Any]:
        """Open an AMQP channel for the duration of the block."""
        credentials = pika.PlainCredentials(*ADMIN)
        connection = pika.BlockingConnection(
            pika.ConnectionParameters(LOOPBACK, self.port, vhost, credentials, heartbeat=0)
        )
        try:
            yield connection.channel()
        finally:
            connection.close()

    def fill(self, queue: str, messages: int, vhost: str = "/") -> None:
        """Create or purge a queue and publish this number of messages."""
        with self.channel(vhost) as channel:
            channel.queue_declare(queue)
            channel.queue_purge(queue)
            channel.confirm_delivery()
            for _ in range(messages):
                channel.basic_publish("", queue, b"work")

    def set_values(self, numbers: Mapping[str, int], vhost: str = "/") -> None:
        """Create queues of these lengths and delete all others; return when the management API reports them."""
        for queue in self.queues(vhost):
            if queue["name"] not in numbers:
                self.api("DELETE", f"/queues/{quote(vhost, safe='')}/{quote(queue['name'], safe='')}")
        for name, number in numbers.items():
            self.fill(name, number, vhost)
        self.wait_for(dict(numbers), vhost)

    def wait_for(self, numbers: Mapping[str, int], vhost: str = "/") -> None:
        end = time.monotonic() + GIVE_UP
        while True:
            totals = {queue["name"]: queue.get("messages") for queue in self.queues(vhost, totals=True)}
            full = {queue["name"]: queue.get("messages") for queue in self.queues(vhost)}
            if totals == full == numbers:
                return
            assert time.monotonic() < end, (totals, full, numbers)
            time.sleep(0.03)

    def queues(self, vhost: str = "/", *, totals: bool = False) -> list[Any]:
        query = "?disable_stats=true&enable_queue_totals=true" if totals else ""
        queues: list[Any] = self.api("GET", f"/queues/{quote(vhost, safe='')}{query}")
        return queues

    def _is_ready(self) -> bool:
        try:
            return bool(self.api("GET", "/whoami")) and isinstance(self.queues(), list)
        except (OSError, urllib.error.HTTPError):
            return False
