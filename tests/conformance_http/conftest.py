"""Which server is examined: ``--target URL`` names another one, otherwise ours is started on loopback.

``pytest tests/conformance_http --target https://host:443 --target-ca ca.crt --target-cert fp.crt --target-key fp.key
--target-header 'X-Remote-User: z' --target-header 'X-Remote-Group: system:masters' --target-metric my-metric``
"""

from collections.abc import Iterator

import pytest

from tests.conformance_http.client import Target
from tests.loopback import Loopback, loopback

_OPTIONS = {
    "--target": "address of the server to examine",
    "--target-ca": "who signed its certificate",
    "--target-cert": "our client certificate",
    "--target-key": "our client key",
    "--target-metric": "a metric that it has",
    "--target-namespace": "a namespace where it has it",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, says in _OPTIONS.items():
        parser.addoption(option, default=None, help=says)
    parser.addoption("--target-header", action="append", default=[], help="sent with every request, as 'Name: value'")


@pytest.fixture(scope="session")
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """Our own server, for what cannot be asked of another."""
    if request.config.getoption("--target", default=None):
        pytest.skip("another server does not trust the certificates that this needs")
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        yield running


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    def option(name: str) -> str | None:
        value: str | None = request.config.getoption(name, default=None)
        return value

    url = option("--target")
    if url is None:
        return masters(request.getfixturevalue("ours"))
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
def rehearsing(target: Target) -> Target:
    """The target, if it has the metrics that our own rehearsal fails with."""
    if not target.ours:
        pytest.skip("another server has not the metrics that this needs")
    return target


def masters(running: Loopback) -> Target:
    """Our server, as the API server's front proxy speaks to it for an administrator."""
    cert, key = running.credentials("fp")
    who = (("X-Remote-User", "z"), ("X-Remote-Group", "system:masters"))
    return Target(running.url, ca=str(running.ca), certificate=(str(cert), str(key)), headers=who, ours=True)


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()
