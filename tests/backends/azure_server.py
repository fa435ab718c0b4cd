"""A fake of Azure Monitor (``metrics:getBatch``), Microsoft Entra ID and the managed identity endpoint, by their docs.

Metrics and managed identity use plain HTTP, so that the faulty proxy can interfere; the token endpoint uses TLS, which
azure-identity requires.
"""

import json
import re
import ssl
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.control_plane.certificates import Authority

SUBSCRIPTION = "aaaa0a0a-bb1b-cc2c-dd3d-eeeeee4e4e4e"
TENANT, CLIENT = "bbbb0b0b-cc1c-dd2d-ee3e-ffffff4f4f4f", "cccc0c0c-dd1d-ee2e-ff3f-aaaaaa4a4a4a"
TYPE, METRIC = "Microsoft.ServiceBus/namespaces", "ActiveMessages"
AUDIENCE = "https://metrics.monitor.azure.com"
_INTERVALS = {"PT1M": 1, "PT5M": 5, "PT15M": 15, "PT30M": 30, "PT60M": 60, "PT1H": 60, "P1D": 1440}
_AGGREGATIONS = {"average", "minimum", "maximum", "total", "count"}
_PARAMETERS = {
    "api-version",
    "starttime",
    "endtime",
    "interval",
    "metricnamespace",
    "metricnames",
    "aggregation",
    "top",
}
_PARAMETERS |= {"orderby", "filter", "rollupby"}
_TERM = r"([\w %]+?) eq '((?:[^']|'')*)'"
_FILTER = re.compile(rf"{_TERM}(?: (?:and|or) {_TERM})*")
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
Response = tuple[int, dict[str, Any]]


def resource(name: str, group: str = "shop", kind: str = TYPE) -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"


class AzureApiError(Exception):
    """An error response."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.response: Response = status, {"error": {"code": code, "message": message}}


class AzureServer:
    """Serves one value per resource name; the resource ``all`` has all of them by the dimension ``EntityName``."""

    def __init__(self, folder: Path) -> None:
        self.values: dict[str, float] = {}
        self.secret = "first-client-secret"  # noqa: S105
        self.assertion = "service-account-token"
        self.requests: list[list[str]] = []
        """The resources of each request."""

        self.logins: list[str] = []
        """The login method of each token."""

        self.points: list[dict[str, Any]] | None = None
        """Points of every series, instead of its value."""

        self.missing: set[str] = set()
        """Names of resources for which Azure rejects the whole request."""

        self.targets: list[str] = []
        self.raw_response: bytes | None = None
        """Body of all successful responses."""

        self.token = ""
        """The newest token."""

        self._tokens: set[str] = set()
        self._token_numbers = count(1)
        authority = Authority.new("azure")
        self.ca = folder / "azure-ca.crt"
        self.ca.write_text(authority.pem)
        certificate, key = authority.server("127.0.0.1").save(folder, "login")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self._plain, self._encrypted = self._server(), self._server()
        self._encrypted.socket = tls.wrap_socket(
            self._encrypted.socket, server_side=True, do_handshake_on_connect=False
        )
        self._threads = [
            threading.Thread(target=server.serve_forever, args=(0.02,), name="peer azure")
            for server in (self._plain, self._encrypted)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def port(self) -> int:
        return self._plain.server_port

    @property
    def authority(self) -> str:
        return f"https://127.0.0.1:{self._encrypted.server_port}"

    def stop(self) -> None:
        for server, thread in zip((self._plain, self._encrypted), self._threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()

    def revoke(self) -> None:
        """Reject all tokens issued so far."""
        self._tokens.clear()

    def _server(self) -> ThreadingHTTPServer:
        azure = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond()

            def do_POST(self) -> None:
                self._respond()

            def _respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    status, document = azure.respond(self.command, self.path, self.headers, body)
                except AzureApiError as error:
                    status, document = error.response
                content = (
                    azure.raw_response
                    if azure.raw_response is not None and status == 200
                    else json.dumps(document).encode()
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Suppress the log."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        return server

    def respond(self, method: str, path: str, headers: Message, body: bytes) -> Response:
        target = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(target.query, strict_parsing=bool(target.query)).items()}
        if target.path == f"/{TENANT}/oauth2/v2.0/token" and method == "POST":
            return self._token({key: values[0] for key, values in parse_qs(body.decode()).items()})
        if target.path == "/metadata/identity/oauth2/token" and method == "GET":
            return self._identity(query, headers)
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise AzureApiError(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if target.path != f"/subscriptions/{SUBSCRIPTION}/metrics:getBatch" or method != "POST":
            raise AzureApiError(404, "ResourceNotFound")
        if headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise AzureApiError(415, "UnsupportedMediaType")
        self.targets.append(path)
        return self._batch(query, json.loads(body))

    # ---- tokens

    def _token(self, form: Mapping[str, str]) -> Response:
        if form.get("grant_type") != "client_credentials" or form.get("scope") != f"{AUDIENCE}/.default":
            return 400, {"error": "invalid_request", "error_description": "AADSTS900144"}
        if form.get("client_id") != CLIENT:
            return 400, {"error": "unauthorized_client", "error_description": "AADSTS700016"}
        if form.get("client_assertion_type") == _ASSERTION and form.get("client_assertion") == self.assertion:
            return self._issue("assertion", {"expires_in": 3599})
        if form.get("client_secret") == self.secret:
            return self._issue("secret", {"expires_in": 3599})
        return 401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}

    def _identity(self, query: Mapping[str, str], headers: Message) -> Response:
        if headers.get("Metadata") != "true" or query.get("api-version") != "2018-02-01":
            return 400, {"error": "invalid_request", "error_description": "Required metadata header not specified"}
        if query.get("resource") != AUDIENCE or query.get("client_id", CLIENT) != CLIENT:
            return 400, {"error": "invalid_request", "error_description": "Identity not found"}
        expires_on = int((datetime.now(UTC) + timedelta(hours=1)).timestamp())  # noqa: TID251 - the server's clock
        return self._issue("managedIdentity", {"expires_on": str(expires_on), "resource": AUDIENCE})

    def _issue(self, method: str, more: dict[str, Any]) -> Response:
        self.token = f"azure-token-{next(self._token_numbers)}"
        self._tokens.add(self.token)
        self.logins.append(method)
        return 200, {"token_type": "Bearer", "access_token": self.token, **more}

    # ---- metrics

    def _batch(self, query: dict[str, str], body: dict[str, Any]) -> Response:
        if query.get("api-version") != "2024-02-01" or not set(query) <= _PARAMETERS:
            raise AzureApiError(400, "BadRequest", f"parameters {sorted(set(query) - _PARAMETERS)}")
        ids = body["resourceids"]
        if not 1 <= len(ids) <= 50 or len({each.lower() for each in ids}) < len(ids):
            raise AzureApiError(400, "BadRequest", "between 1 and 50 resources")
        if any(not each.startswith(f"/subscriptions/{SUBSCRIPTION}/") for each in ids):
            raise AzureApiError(400, "BadRequest", "all resources must be of the subscription")
        self.requests.append([each.rpartition("/")[2] for each in ids])
        if self.missing & set(self.requests[-1]):
            raise AzureApiError(404, "ResourceNotFound", "The resource was not found.")
        start, end = (datetime.strptime(query[key], _TIME).replace(tzinfo=UTC) for key in ("starttime", "endtime"))
        if start >= end or query["aggregation"] not in _AGGREGATIONS or query["interval"] not in _INTERVALS:
            raise AzureApiError(400, "BadRequest", "time, aggregation or interval")
        if "top" in query and ("filter" not in query or not query["top"].isdecimal()):
            raise AzureApiError(400, "BadRequest", "Detected invalid TopN value")
        return 200, {"values": [self._result(each, query, start, end) for each in ids]}

    def _result(self, each: str, query: dict[str, str], start: datetime, end: datetime) -> dict[str, Any]:
        name = each.rpartition("/")[2]
        metric: dict[str, Any] = {
            "id": f"{each}/providers/Microsoft.Insights/metrics/{query['metricnames']}",
            "type": "Microsoft.Insights/metrics",
            "name": {"value": query["metricnames"], "localizedValue": query["metricnames"]},
            "unit": "Count",
            "timeseries": [],
            "errorCode": "Success",
        }
        if query["metricnamespace"].lower() != TYPE.lower() or query["metricnames"] != METRIC:
            raise AzureApiError(400, "BadRequest", f"Failed to find metric configuration for {query['metricnames']}")
        if name == "all":
            metric["timeseries"] = self._by_dimension(query, start, end)
        elif name in self.values:
            metric["timeseries"] = [self._series(self.values[name], query, start, end, [])]
        else:
            metric |= {"errorCode": "ResourceNotFound", "errorMessage": f"{name} not found"}
        return {
            "starttime": query["starttime"],
            "endtime": query["endtime"],
            "interval": query["interval"],
            "namespace": query["metricnamespace"],
            "resourceregion": "westeurope",
            "resourceid": each.lower(),  # Azure may return it in a different case
            "value": [metric],
        }

    def _by_dimension(self, query: dict[str, str], start: datetime, end: datetime) -> list[dict[str, Any]]:
        if "filter" not in query:
            return [self._series(sum(self.values.values()), query, start, end, [])]
        if not _FILTER.fullmatch(query["filter"]):
            raise AzureApiError(400, "BadRequest", "Invalid metric filter")
        terms = [(name.strip(), value.replace("''", "'")) for name, value in re.findall(_TERM, query["filter"])]
        values = {value for name, value in terms if name.removeprefix("or ").strip() == "EntityName"}
        names = [name for name in self.values if "*" in values or name in values]
        if query.get("rollupby") == "EntityName":
            return [self._series(sum(self.values[name] for name in names), query, start, end, [])]
        return [
            self._series(self.values[name], query, start, end, [_dimension("entityname", name)])
            for name in names[: int(query.get("top", 10))]
        ]

    def _series(
        self, number: float, query: dict[str, str], start: datetime, end: datetime, dimensions: list[dict[str, Any]]
    ) -> dict[str, Any]:
        step = timedelta(minutes=_INTERVALS[query["interval"]])
        times = [start + step * position for position in range((end - start) // step)]
        points = [{"timeStamp": f"{each:%Y-%m-%dT%H:%M:%SZ}", query["aggregation"]: number} for each in times]
        return {"metadatavalues": dimensions, "data": points if self.points is None else self.points}


def _dimension(name: str, value: str) -> dict[str, Any]:
    return {"name": {"value": name, "localizedValue": name}, "value": value}
