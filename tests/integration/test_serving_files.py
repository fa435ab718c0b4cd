"""A certificate that somebody else keeps in files, replaced while connections are open."""

import ssl
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from tests.control_plane.certificates import Authority, Credentials
from tests.control_plane.cluster import ControlPlane, free_port
from tests.integration.service import process, until

pytestmark = pytest.mark.apiserver


def connected(port: int, authority: Authority) -> HTTPSConnection:
    tls = ssl.create_default_context(cadata=authority.pem)
    connection = HTTPSConnection("localhost", port, timeout=10, context=tls)
    connection.connect()
    return connection


def answers(connection: HTTPSConnection) -> bool:
    connection.request("GET", "/readyz")
    return connection.getresponse().read() == b"ok"


def renewed(folder: Path, credentials: Credentials) -> dict[str, str]:
    certificate, key = credentials.save(folder, "serving")
    return {"certFile": str(certificate), "keyFile": str(key)}


def test_new_files_are_served_to_new_connections_and_old_connections_live_on(
    plane: ControlPlane,
    port: int,  # noqa: ARG001 - the manifests are applied
    tmp_path: Path,
) -> None:
    old, new, ours = Authority.new("old"), Authority.new("new"), free_port()
    program = process(plane, ours, files=renewed(tmp_path, old.server("localhost")))
    program.start()
    try:
        early = connected(ours, old)
        assert answers(early)
        renewed(tmp_path, new.server("localhost"))

        def is_new() -> bool:
            try:
                late = connected(ours, new)
            except ssl.SSLCertVerificationError:
                return False
            served = answers(late)
            late.close()
            return served

        until(is_new, "the new certificate is served", within=30)
        assert answers(early)
        early.close()
    finally:
        program.stop()
