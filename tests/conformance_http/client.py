"""An HTTP client that adds no headers except Host, and can repeat headers and send any method."""

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from tests.waiting import GIVE_UP

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Response:
    """A received response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def media(self) -> str:
        return str(self.headers.get("Content-Type", "")).partition(";")[0].strip()


@dataclass(frozen=True)
class Target:
    """A server to test, the credentials for it, and the name of one of its metrics."""

    url: str
    ca: str | None = None
    certificate: tuple[str, str] | None = None
    headers: Headers = ()
    namespace: str = "default"
    metric: str = "my-metric"
    is_loopback: bool = False
    """Whether it is the loopback server, with its failing metrics."""

    @property
    def metrics(self) -> str:
        return f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{quote(self.namespace)}"

    @property
    def path(self) -> str:
        return f"{self.metrics}/{quote(self.metric)}"

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        return context

    def connect(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        if address.scheme == "http":
            return http.client.HTTPConnection(address.hostname or "", address.port, timeout=GIVE_UP)
        return http.client.HTTPSConnection(address.hostname or "", address.port, timeout=GIVE_UP, context=self.tls())

    def request(self, path: str, *headers: tuple[str, str], method: str = "GET", body: bytes | None = None) -> Response:
        """Send one request on a new connection."""
        connection = self.connect()
        try:
            return send(connection, urlsplit(self.url).path.rstrip("/") + path, self.headers + headers, method, body)
        finally:
            connection.close()

    def get(self, path: str, accept: str | None = None) -> Response:
        return self.request(path, *([("Accept", accept)] if accept else []))


def send(
    connection: http.client.HTTPConnection, path: str, headers: Headers, method: str = "GET", body: bytes | None = None
) -> Response:
    """Send one request on this connection and read the response."""
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(body)
    received = connection.getresponse()
    return Response(received.status, received.headers, received.read())
