"""Any request gets an HTTP response, a Status or a document, never an internal error or a traceback."""

import json
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance_http.client import Response, Target, send
from tests.conformance_http.conftest import masters
from tests.loopback import loopback

ROOT = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
INTERNAL_ERRORS = {500, 501, 502}
PATHS = [
    "/",
    "/apis",
    "/openapi/v2",
    "/openapi/v3",
    "/version",
    "/metrics",
    "/readyz",
    "/livez/ping",
    f"{ROOT}/my-metric",
]
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

segments = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#?"), max_size=20)
special_segments = st.sampled_from(
    ["apis", "external.metrics.k8s.io", "v1beta1", "namespaces", "default", "status", "..", "%2F", ""]
)
paths = st.lists(segments | special_segments, max_size=9).map(lambda parts: "/" + "/".join(parts)) | st.sampled_from(
    PATHS
)
keys = st.sampled_from(
    [
        "labelSelector",
        "fieldSelector",
        "limit",
        "watch",
        "timeout",
        "pretty",
        "exclude",
        "verbose",
        "hash",
        "includeObject",
    ]
)
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=40)
queries = st.lists(st.tuples(keys | printable, printable), max_size=4).map(
    lambda pairs: "&".join(f"{key}={value}" for key, value in pairs)
)
selectors = st.text(st.sampled_from("abz09-_./=!<>(), in\t\u00e9\U0001f600"), max_size=60) | st.text(max_size=40)
header_names = st.sampled_from(
    [
        "Accept",
        "If-None-Match",
        "User-Agent",
        "Audit-Id",
        "X-Remote-User",
        "X-Remote-Group",
        "Authorization",
        "X-Remote-Extra-A%zz",
    ]
)
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
accepts = st.lists(
    st.sampled_from(
        ["application/json", "*/*", "text/*", "as=Table", "v=v1", "g=meta.k8s.io", "q=0.3", "q=x", ";", ",", "=", '"']
    )
    | printable,
    max_size=8,
).map(";".join)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with loopback(tmp_path_factory.mktemp("fuzz")) as running:
        yield masters(running)


@pytest.fixture(scope="module")
def connection(target: Target) -> Iterator[list]:
    connections = [target.connect()]
    yield connections
    connections[0].close()


def request(target: Target, connections: list, path: str, *headers: tuple[str, str], method: str = "GET") -> Response:
    """Send a request on the kept connection; replace it if the server closes it."""
    response = send(connections[0], path, target.headers + headers, method)
    if response.headers.get("Connection") == "close":
        connections[0].close()
        connections[0] = target.connect()
    return response


def assert_well_formed(response: Response) -> None:
    assert response.status not in INTERNAL_ERRORS
    assert "Retry-After" not in response.headers
    assert b"Traceback" not in response.body
    assert b'File "' not in response.body
    if response.status >= 400 and response.body:
        assert response.media == "application/json"
        status = json.loads(response.body)
        assert (status["kind"], status["code"]) == ("Status", response.status)


@SETTINGS
@given(
    path=paths,
    query=queries,
    method=st.sampled_from(["GET", "GET", "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
)
def test_any_path_query_and_method(target: Target, connection: list, path: str, query: str, method: str):
    assert_well_formed(request(target, connection, f"{path}?{query}" if query else path, method=method))


@SETTINGS
@given(selector=selectors)
def test_any_selector(target: Target, connection: list, selector: str):
    text = quote_plus(selector, errors="surrogatepass")
    response = request(target, connection, f"{ROOT}/my-metric?labelSelector={text}")

    assert response.status in {200, 400, 503}
    if response.status == 503:
        assert response.json["details"]["causes"][0]["reason"] == "NoSeries"
    else:
        assert_well_formed(response)


@SETTINGS
@given(headers=st.lists(st.tuples(header_names, header_values), max_size=5), path=st.sampled_from(PATHS))
def test_any_header(target: Target, connection: list, headers: list[tuple[str, str]], path: str):
    assert_well_formed(request(target, connection, path, *headers))


@SETTINGS
@given(accept=accepts, path=st.sampled_from(PATHS))
def test_any_accept(target: Target, connection: list, accept: str, path: str):
    assert_well_formed(request(target, connection, path, ("Accept", accept)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=2000),
    framing=st.sampled_from(["length", "chunked", "none"]),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    path=st.sampled_from(PATHS),
)
def test_any_body(target: Target, body: bytes, framing: str, method: str, path: str):
    sent: bytes = body
    header: tuple[tuple[str, str], ...] = ()
    if framing == "length":
        header = (("Content-Length", str(len(body))),)
    elif framing == "chunked":
        sent, header = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body), (("Transfer-Encoding", "chunked"),)
    response = target.request(path, *header, ("Content-Type", "application/json"), method=method, body=sent)
    assert_well_formed(response)
    assert response.status in ({200, 400} if method == "GET" else {400, 405})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(min_size=1, max_size=300))
def test_any_bytes(target: Target, noise: bytes):
    host, port = target.url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), 5) as plain,
        target.tls().wrap_socket(plain, server_hostname=host) as tls,
    ):
        tls.sendall(noise + b"\r\n\r\n")
        tls.settimeout(0.2)
        received = b""
        try:
            while chunk := tls.recv(65536):
                received += chunk
        except (TimeoutError, ssl.SSLError, ConnectionError):
            pass

    assert received == b"" or received.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 200", b"HTTP/1.0 200"))
    assert b"Traceback" not in received
