"""The server under test: ``--target URL``, or else a server on loopback.

``pytest tests/conformance_http --target https://host:443 --target-ca ca.crt --target-cert fp.crt --target-key fp.key
--target-header 'X-Remote-User: z' --target-header 'X-Remote-Group: system:masters' --target-metric my-metric``
"""

from collections.abc import Iterator

import pytest

from tests.conformance_http.client import Target
from tests.loopback import Loopback, loopback

_OPTIONS = {
    "--target": "URL of the server to test",
    "--target-ca": "CA of its certificate",
    "--target-cert": "client certificate",
    "--target-key": "key of the client certificate",
    "--target-metric": "an existing metric",
    "--target-namespace": "namespace of the metric",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, help_text in _OPTIONS.items():
        parser.addoption(option, default=None, help=help_text)
    parser.addoption("--target-header", action="append", default=[], help="sent with every request, as 'Name: value'")


@pytest.fixture(scope="module")
def loopback_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """The server on loopback, for tests that need its certificates and reviews."""
    if request.config.getoption("--target", default=None):
        pytest.skip("needs client certificates of the loopback server")
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        yield running


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest) -> Target:
    def option(name: str) -> str | None:
        value: str | None = request.config.getoption(name, default=None)
        return value

    url = option("--target")
    if url is None:
        return masters(request.getfixturevalue("loopback_server"))
    cert, key = option("--target-cert"), option("--target-key")
    headers = tuple(_header(text) for text in request.config.getoption("--target-header"))
    return Target(
        url=url,
        ca=option("--target-ca"),
        certificate=(cert, key) if cert and key else None,
        headers=headers,
        namespace=option("--target-namespace") or "default",
        metric=option("--target-metric") or "my-metric",
    )


@pytest.fixture
def own_server(target: Target) -> Target:
    """The target, if it is the loopback server with its failing metrics."""
    if not target.is_loopback:
        pytest.skip("needs metrics of the loopback server")
    return target


def masters(running: Loopback) -> Target:
    """Return the loopback server with requests of the front proxy for a system:masters user."""
    cert, key = running.credentials("fp")
    user = (("X-Remote-User", "z"), ("X-Remote-Group", "system:masters"))
    return Target(running.url, ca=str(running.ca), certificate=(str(cert), str(key)), headers=user, is_loopback=True)


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()
