"""A serving certificate from files, replaced while connections are open."""

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


def is_ready(connection: HTTPSConnection) -> bool:
    connection.request("GET", "/readyz")
    return connection.getresponse().read() == b"ok"


def save(folder: Path, credentials: Credentials) -> dict[str, str]:
    certificate, key = credentials.save(folder, "serving")
    return {"certFile": str(certificate), "keyFile": str(key)}


def test_new_certificate_is_used_for_new_connections_and_old_connections_stay_open(
    plane: ControlPlane,
    port: int,  # noqa: ARG001 - the manifests are applied
    tmp_path: Path,
) -> None:
    old, new, serving_port = Authority.new("old"), Authority.new("new"), free_port()
    program = process(plane, serving_port, files=save(tmp_path, old.server("localhost")))
    program.start()
    try:
        first = connected(serving_port, old)
        assert is_ready(first)
        save(tmp_path, new.server("localhost"))

        def is_new() -> bool:
            try:
                second = connected(serving_port, new)
            except ssl.SSLCertVerificationError:
                return False
            ready = is_ready(second)
            second.close()
            return ready

        until(is_new, "the new certificate is served")
        assert is_ready(first)
        first.close()
    finally:
        program.stop()
