"""A real PostgreSQL server on loopback, with TLS and password authentication."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.control_plane.certificates import Authority
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program
from tests.missing_programs import require

PROGRAMS: Final = Path("/usr/lib/postgresql/15/bin")
ADMIN: Final = "admin"
_AS_NOBODY: Final = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--")
"""PostgreSQL does not run as root."""

_PG_HBA: Final = """\
local   all  all                trust
hostssl all  with_certificate all cert
host    all  all  127.0.0.1/32  scram-sha-256
"""
_FAST: Final = ("fsync=off", "full_page_writes=off", "autovacuum=off")


class PostgreSqlServer:
    """A server. The administrator connects through a Unix socket, independently of the code under test."""

    def __init__(self, folder: Path) -> None:
        require("postgresql", "apt install postgresql", is_installed=(PROGRAMS / "postgres").exists())
        self._run_as: tuple[str, ...] = _AS_NOBODY if os.geteuid() == 0 else ()
        self.port = free_port()
        self.directory = Path(
            tempfile.mkdtemp(prefix="steadyscale-pg-")
        )  # short, because the path of a Unix socket is limited
        self.authority, self.clients = Authority.new("servers"), Authority.new("clients")
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_text(self.authority.pem)
        self._write_certificates()
        options = (f"port={self.port}", f"listen_addresses={LOOPBACK}", f"unix_socket_directories={self.directory}")
        tls = ("ssl=on", *(f"ssl_{key}_file={self.directory / key}" for key in ("cert", "key", "ca")))
        arguments = [argument for option in (*options, *tls, *_FAST) for argument in ("-c", option)]
        command = [*self._run_as, PROGRAMS / "postgres", "-D", self.directory / "data", *arguments]
        self.program = Program(command, folder / "server.log", self._is_ready)

    def start(self) -> None:
        if not (self.directory / "data").exists():
            options = ("--username", ADMIN, "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C")
            _run(*self._run_as, PROGRAMS / "initdb", "--pgdata", self.directory / "data", *options)
            (self.directory / "data" / "pg_hba.conf").write_text(_PG_HBA)
        self.program.start()

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self.directory)

    def end(self) -> None:
        """Stop the server immediately and end all sessions."""
        if self.program.pid:
            os.kill(self.program.pid, signal.SIGQUIT)
        self.program.stop()

    def run(self, *statements: str, database: str = "postgres") -> str:
        """Run statements as administrator and return their output."""
        arguments = [argument for statement in statements for argument in ("--command", statement)]
        target = ("--host", self.directory, "--port", str(self.port), "--username", ADMIN, "--dbname", database)
        return _run(PROGRAMS / "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", *target, *arguments)

    def set_values(self, numbers: Mapping[str, int]) -> None:
        """Replace the rows of the table ``depths``."""
        rows = ", ".join(f"('{name}', {number})" for name, number in numbers.items())
        self.run("TRUNCATE depths", *([f"INSERT INTO depths VALUES {rows}"] if rows else []))  # noqa: S608 - our own

    def drop_sessions(self, user: str = "reader") -> None:
        """End the sessions of a user; return when they have ended."""
        sessions = f"FROM pg_stat_activity WHERE usename = '{user}'"
        self.run(f"SELECT pg_terminate_backend(pid, 20000) {sessions}")

    def _write_certificates(self) -> None:
        own = self.authority.server("localhost")  # not for the IP address
        for name, text in (("cert", own.certificate_pem), ("key", own.key_pem), ("ca", self.clients.pem)):
            file = self.directory / name
            file.write_text(text)
            file.chmod(0o600)
        if self._run_as:
            for each in (self.directory, *self.directory.iterdir()):
                shutil.chown(each, "nobody", "nogroup")

    def _is_ready(self) -> bool:
        try:
            return self.run("SELECT 1").strip() == "1"
        except subprocess.CalledProcessError:
            return False


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")  # noqa: S603 - a constant command
    return done.stdout
