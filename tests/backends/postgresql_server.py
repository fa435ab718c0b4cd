"""A real PostgreSQL on loopback, in a folder of its own, with a certificate and passwords: nothing of it is left."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.backends.contract import require
from tests.control_plane.certificates import Authority
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program

PROGRAMS: Final = Path("/usr/lib/postgresql/15/bin")
ADMIN: Final = "root_of_tests"
_NOBODY: Final = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--")
"""PostgreSQL does not run as root, so whoever is root becomes somebody else for it."""

_WHO_MAY: Final = """\
local   all  all                trust
hostssl all  with_certificate all cert
host    all  all  127.0.0.1/32  scram-sha-256
"""
_QUICK: Final = ("fsync=off", "full_page_writes=off", "autovacuum=off")


class PostgreSqlServer:
    """One server. Its administrator comes by a socket in its folder, past everything that is under test."""

    def __init__(self, folder: Path) -> None:
        require("PostgreSQL", "postgresql", is_there=(PROGRAMS / "postgres").exists())
        self._as: tuple[str, ...] = _NOBODY if os.geteuid() == 0 else ()
        self.port = free_port()
        self.place = Path(tempfile.mkdtemp(prefix="steadyscale-pg-"))  # short: a socket's path has little room
        self.authority, self.clients = Authority.new("servers"), Authority.new("clients")
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_text(self.authority.pem)
        self._certify()
        options = (f"port={self.port}", f"listen_addresses={LOOPBACK}", f"unix_socket_directories={self.place}")
        tls = ("ssl=on", *(f"ssl_{key}_file={self.place / key}" for key in ("cert", "key", "ca")))
        words = [word for option in (*options, *tls, *_QUICK) for word in ("-c", option)]
        command = [*self._as, PROGRAMS / "postgres", "-D", self.place / "data", *words]
        self.program = Program(command, folder / "server.log", self._is_ready)

    def start(self) -> None:
        if not (self.place / "data").exists():
            initdb = [*self._as, PROGRAMS / "initdb", "--pgdata", self.place / "data", "--username", ADMIN]
            _run(*initdb, "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C")
            (self.place / "data" / "pg_hba.conf").write_text(_WHO_MAY)
        self.program.start()

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self.place)

    def end(self) -> None:
        """End it at once, all its sessions with it."""
        if self.program.pid:
            os.kill(self.program.pid, signal.SIGQUIT)
        self.program.stop()

    def run(self, *statements: str, database: str = "postgres") -> str:
        """Run statements as its administrator, and return what they print."""
        words = [word for statement in statements for word in ("--command", statement)]
        place = ("--host", self.place, "--port", str(self.port), "--username", ADMIN, "--dbname", database)
        return _run(PROGRAMS / "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", *place, *words)

    def hold(self, numbers: Mapping[str, int]) -> None:
        """Make the table ``depths`` have these rows and no others."""
        rows = ", ".join(f"('{name}', {number})" for name, number in numbers.items())
        self.run("TRUNCATE depths", *([f"INSERT INTO depths VALUES {rows}"] if rows else []))  # noqa: S608 - our own

    def drop_sessions(self, user: str = "reader") -> None:
        """End somebody's sessions; return when they are gone."""
        theirs = f"FROM pg_stat_activity WHERE usename = '{user}'"
        self.run(f"SELECT pg_terminate_backend(pid, 20000) {theirs}")

    def _certify(self) -> None:
        own = self.authority.server("localhost")  # and not for its address
        for name, text in (("cert", own.certificate_pem), ("key", own.key_pem), ("ca", self.clients.pem)):
            file = self.place / name
            file.write_text(text)
            file.chmod(0o600)
        if self._as:
            for each in (self.place, *self.place.iterdir()):
                shutil.chown(each, "nobody", "nogroup")

    def _is_ready(self) -> bool:
        try:
            return self.run("SELECT 1").strip() == "1"
        except subprocess.CalledProcessError:
            return False


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")  # noqa: S603 - our own words
    return done.stdout
