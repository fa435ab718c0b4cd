"""A client that sends exactly what it is told: repeated headers, odd methods, nothing added but Host."""

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Answer:
    """What came back."""

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
    """A server to examine, who we are to it, and one metric that it has."""

    url: str
    ca: str | None = None
    certificate: tuple[str, str] | None = None
    headers: Headers = ()
    namespace: str = "default"
    metric: str = "my-metric"
    ours: bool = False
    """Whether it is our own, with the rehearsal's metrics."""

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
        where = urlsplit(self.url)
        if where.scheme == "http":
            return http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        return http.client.HTTPSConnection(where.hostname or "", where.port, timeout=20, context=self.tls())

    def ask(self, path: str, *headers: tuple[str, str], method: str = "GET", body: bytes | None = None) -> Answer:
        """Send one request on a connection of its own."""
        connection = self.connect()
        try:
            return send(connection, urlsplit(self.url).path.rstrip("/") + path, self.headers + headers, method, body)
        finally:
            connection.close()

    def get(self, path: str, accept: str | None = None) -> Answer:
        return self.ask(path, *([("Accept", accept)] if accept else []))


def send(
    connection: http.client.HTTPConnection, path: str, headers: Headers, method: str = "GET", body: bytes | None = None
) -> Answer:
    """Send one request on this connection and read the whole answer."""
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read())
