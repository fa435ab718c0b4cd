"""Azure as its REST documentation has it: ``metrics:getBatch``, Microsoft Entra ID's tokens, a machine's own identity.

Metrics and the machine are plain HTTP, so that the hop can make trouble; tokens are had by TLS, as the library insists.
"""

import json
import re
import ssl
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
_GRAINS = {"PT1M": 1, "PT5M": 5, "PT15M": 15, "PT30M": 30, "PT60M": 60, "PT1H": 60, "P1D": 1440}
_AGGREGATIONS = {"average", "minimum", "maximum", "total", "count"}
_KNOWN = {"api-version", "starttime", "endtime", "interval", "metricnamespace", "metricnames", "aggregation", "top"}
_KNOWN |= {"orderby", "filter", "rollupby"}
_TERM = r"([\w %]+?) eq '((?:[^']|'')*)'"
_FILTER = re.compile(rf"{_TERM}(?: (?:and|or) {_TERM})*")
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
Answer = tuple[int, dict[str, Any]]


def resource(name: str, group: str = "shop", kind: str = TYPE) -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"


class Refused(Exception):
    """A status, and the words that go with it."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.answer: Answer = status, {"error": {"code": code, "message": message}}


class AzureServer:
    """Holds numbers by the name of a resource; the resource ``all`` has them by the dimension ``EntityName``."""

    def __init__(self, folder: Path) -> None:
        self.numbers: dict[str, float] = {}
        self.secret = "first-secret-of-ours"  # noqa: S105
        self.assertion = "a-token-of-our-service-account"
        self.calls: list[list[str]] = []
        """The resources of each call."""

        self.logins: list[str] = []
        """How each token was had."""

        self.points: list[dict[str, Any]] | None = None
        """What every series has, in place of its number."""

        self.missing: set[str] = set()
        """Names of resources for which Azure refuses the whole call."""

        self.targets: list[str] = []
        self.said: bytes | None = None
        """An answer in place of any other."""

        self.token = ""
        """The last that was given out."""

        self._tokens: set[str] = set()
        self._numbered = count(1)
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
        """Believe no token that was given out so far."""
        self._tokens.clear()

    def _server(self) -> ThreadingHTTPServer:
        azure = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    status, answer = azure.answer(self.command, self.path, self.headers, body)
                except Refused as error:
                    status, answer = error.answer
                said = azure.said if azure.said is not None and status == 200 else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads = True
        return made

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        asked = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(asked.query, strict_parsing=bool(asked.query)).items()}
        if asked.path == f"/{TENANT}/oauth2/v2.0/token" and method == "POST":
            return self._token({key: values[0] for key, values in parse_qs(body.decode()).items()})
        if asked.path == "/metadata/identity/oauth2/token" and method == "GET":
            return self._identity(query, headers)
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise Refused(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if asked.path != f"/subscriptions/{SUBSCRIPTION}/metrics:getBatch" or method != "POST":
            raise Refused(404, "ResourceNotFound")
        if headers.get("Content-Type", "").partition(";")[0] != "application/json":
            raise Refused(415, "UnsupportedMediaType")
        self.targets.append(path)
        return self._batch(query, json.loads(body))

    # ---- tokens

    def _token(self, form: Mapping[str, str]) -> Answer:
        if form.get("grant_type") != "client_credentials" or form.get("scope") != f"{AUDIENCE}/.default":
            return 400, {"error": "invalid_request", "error_description": "AADSTS900144"}
        if form.get("client_id") != CLIENT:
            return 400, {"error": "unauthorized_client", "error_description": "AADSTS700016"}
        if form.get("client_assertion_type") == _ASSERTION and form.get("client_assertion") == self.assertion:
            return self._given("assertion", {"expires_in": 3599})
        if form.get("client_secret") == self.secret:
            return self._given("secret", {"expires_in": 3599})
        return 401, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}

    def _identity(self, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        if headers.get("Metadata") != "true" or query.get("api-version") != "2018-02-01":
            return 400, {"error": "invalid_request", "error_description": "Required metadata header not specified"}
        if query.get("resource") != AUDIENCE or query.get("client_id", CLIENT) != CLIENT:
            return 400, {"error": "invalid_request", "error_description": "Identity not found"}
        then = int((datetime.now(UTC) + timedelta(hours=1)).timestamp())  # noqa: TID251 - the server's own time
        return self._given("machine", {"expires_on": str(then), "resource": AUDIENCE})

    def _given(self, by: str, more: dict[str, Any]) -> Answer:
        self.token = f"a-token-of-azure-{next(self._numbered)}"
        self._tokens.add(self.token)
        self.logins.append(by)
        return 200, {"token_type": "Bearer", "access_token": self.token, **more}

    # ---- metrics

    def _batch(self, query: dict[str, str], body: dict[str, Any]) -> Answer:
        if query.get("api-version") != "2024-02-01" or not set(query) <= _KNOWN:
            raise Refused(400, "BadRequest", f"parameters {sorted(set(query) - _KNOWN)}")
        ids = body["resourceids"]
        if not 1 <= len(ids) <= 50 or len({each.lower() for each in ids}) < len(ids):
            raise Refused(400, "BadRequest", "between 1 and 50 resources")
        if any(not each.startswith(f"/subscriptions/{SUBSCRIPTION}/") for each in ids):
            raise Refused(400, "BadRequest", "all resources must be of the subscription")
        self.calls.append([each.rpartition("/")[2] for each in ids])
        if self.missing & set(self.calls[-1]):
            raise Refused(404, "ResourceNotFound", "The resource was not found.")
        start, end = (datetime.strptime(query[key], _TIME).replace(tzinfo=UTC) for key in ("starttime", "endtime"))
        if start >= end or query["aggregation"] not in _AGGREGATIONS or query["interval"] not in _GRAINS:
            raise Refused(400, "BadRequest", "time, aggregation or interval")
        if "top" in query and ("filter" not in query or not query["top"].isdecimal()):
            raise Refused(400, "BadRequest", "Detected invalid TopN value")
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
            raise Refused(400, "BadRequest", f"Failed to find metric configuration for {query['metricnames']}")
        if name == "all":
            metric["timeseries"] = self._by_dimension(query, start, end)
        elif name in self.numbers:
            metric["timeseries"] = [self._series(self.numbers[name], query, start, end, [])]
        else:
            metric |= {"errorCode": "ResourceNotFound", "errorMessage": f"{name} is not there"}
        return {
            "starttime": query["starttime"],
            "endtime": query["endtime"],
            "interval": query["interval"],
            "namespace": query["metricnamespace"],
            "resourceregion": "westeurope",
            "resourceid": each.lower(),  # it need not come back as it was written
            "value": [metric],
        }

    def _by_dimension(self, query: dict[str, str], start: datetime, end: datetime) -> list[dict[str, Any]]:
        if "filter" not in query:
            return [self._series(sum(self.numbers.values()), query, start, end, [])]
        if not _FILTER.fullmatch(query["filter"]):
            raise Refused(400, "BadRequest", "Invalid metric filter")
        terms = [(name.strip(), value.replace("''", "'")) for name, value in re.findall(_TERM, query["filter"])]
        wanted = {value for name, value in terms if name.removeprefix("or ").strip() == "EntityName"}
        found = [name for name in self.numbers if "*" in wanted or name in wanted]
        if query.get("rollupby") == "EntityName":
            return [self._series(sum(self.numbers[name] for name in found), query, start, end, [])]
        return [
            self._series(self.numbers[name], query, start, end, [_dimension("entityname", name)])
            for name in found[: int(query.get("top", 10))]
        ]

    def _series(
        self, number: float, query: dict[str, str], start: datetime, end: datetime, dimensions: list[dict[str, Any]]
    ) -> dict[str, Any]:
        step = timedelta(minutes=_GRAINS[query["interval"]])
        times = [start + step * at for at in range((end - start) // step)]
        points = [{"timeStamp": f"{each:%Y-%m-%dT%H:%M:%SZ}", query["aggregation"]: number} for each in times]
        return {"metadatavalues": dimensions, "data": points if self.points is None else self.points}


def _dimension(name: str, value: str) -> dict[str, Any]:
    return {"name": {"value": name, "localizedValue": name}, "value": value}
