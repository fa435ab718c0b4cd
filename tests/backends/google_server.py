"""A fake of Cloud Monitoring (time series, PromQL) and of Google's token endpoints, by their documentation.

Requests are parsed and responses created with the API definition of ``google-cloud-monitoring``.
"""

import base64
import json
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from google.cloud.monitoring_v3 import Aggregation, ListTimeSeriesRequest, ListTimeSeriesResponse
from google.protobuf import json_format

PROJECT = "shop-1"
TYPE = "pubsub.googleapis.com/subscription/num_undelivered_messages"
SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_TERM = re.compile(r'((?:metric|resource)\.(?:type|labels?\.\w+)) ?= ?"([^"]*)"')
_MINUTE = timedelta(minutes=1)
Response = tuple[int, dict[str, Any]]


class ServiceAccount:
    """A service account and its key."""

    def __init__(self, name: str) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.name = name
        form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        self.pem = self.key.private_bytes(serialization.Encoding.PEM, form, none).decode()

    def file(self, token_uri: str) -> str:
        email = f"{self.name}@{PROJECT}.iam.gserviceaccount.com"
        info = {"type": "service_account", "project_id": PROJECT, "private_key_id": self.name, "private_key": self.pem}
        return json.dumps({**info, "client_email": email, "client_id": "1", "token_uri": token_uri})


class GoogleApiError(Exception):
    """An error response."""

    def __init__(self, code: int, status: str, message: str = "") -> None:
        super().__init__(message)
        self.response: Response = code, {"error": {"code": code, "status": status, "message": message}}


class GoogleServer:
    """Serves one value per Pub/Sub subscription."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.account = ServiceAccount("first")
        self.subject_token = "cluster-token"  # noqa: S105
        self.series: list[dict[str, Any]] | None = None
        """All series of responses, instead of those of the values."""

        self.raw_response: bytes | None = None
        """Body of all responses."""

        self.execution_errors: list[dict[str, Any]] = []
        self.requests: list[ListTimeSeriesRequest] = []
        self.headers: list[Mapping[str, str]] = []
        self.logins: list[str] = []
        self.queries: list[str] = []
        self.promql_result: list[dict[str, Any]] | None = None
        self.token_status = 200
        self.token = ""
        """The newest token."""

        self._tokens: set[str] = set()
        self._token_numbers = count(1)
        self._server = self._create_server()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="peer google")
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def key_file(self) -> str:
        return self.account.file(f"{self.url}/token")

    def external_file(self, subject: str) -> str:
        """Return an external_account configuration that reads a token from a file."""
        pool = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k"
        info = {"type": "external_account", "audience": pool, "token_url": f"{self.url}/sts"}
        kind = "urn:ietf:params:oauth:token-type:jwt"
        return json.dumps({**info, "subject_token_type": kind, "credential_source": {"file": subject}})

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def revoke(self) -> None:
        """Reject all tokens issued so far."""
        self._tokens.clear()

    # ---- time series

    def _time_series(self, query: Mapping[str, list[str]], headers: Message) -> Response:
        self._authenticate(headers)
        request = _request(query)
        self.requests.append(request)
        self.headers.append(dict(headers))
        _check(request)
        series = self.series if self.series is not None else self._result(request)
        first = int(request.page_token or 0)
        page = series[first : first + request.page_size]
        next_token = str(first + len(page)) if first + len(page) < len(series) else ""
        response = ListTimeSeriesResponse(
            time_series=page, next_page_token=next_token, execution_errors=self.execution_errors
        )
        return 200, json_format.MessageToDict(ListTimeSeriesResponse.pb(response))

    def _authenticate(self, headers: Message) -> None:
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise GoogleApiError(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")

    def _result(self, request: ListTimeSeriesRequest) -> list[dict[str, Any]]:
        terms = {field.replace(".label.", ".labels."): value for field, value in _TERM.findall(request.filter)}
        if terms["metric.type"] != TYPE:
            message = f'Cannot find metric(s) that match type = "{terms["metric.type"]}"'
            raise GoogleApiError(404, "NOT_FOUND", message)
        name = terms.get("resource.labels.subscription_id")
        names = [each for each in self.values if name in (None, each)]
        if request.aggregation.cross_series_reducer == Aggregation.Reducer.REDUCE_SUM:
            return [series({}, sum(self.values[each] for each in names), request.interval.end_time)]
        end = request.interval.end_time
        return [series({"project_id": PROJECT, "subscription_id": each}, self.values[each], end) for each in names]

    # ---- HTTP

    def _create_server(self) -> ThreadingHTTPServer:
        google = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond({})

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self._respond({key: values[0] for key, values in parse_qs(form).items()})

            def _respond(self, form: dict[str, str]) -> None:
                try:
                    status, document = google.respond(self.command, self.path, self.headers, form)
                except GoogleApiError as error:
                    status, document = error.response
                content = json.dumps(document).encode() if google.raw_response is None else google.raw_response
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Suppress the log."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        return server

    def respond(self, method: str, path: str, headers: Message, form: dict[str, str]) -> Response:
        target = urlsplit(path)
        values = parse_qs(target.query)
        query = {key: values[0] for key, values in values.items()}
        if target.path == f"/v3/projects/{PROJECT}/timeSeries" and method == "GET":
            return self._time_series(values, headers)
        if target.path == f"/v3/projects/{PROJECT}/monitoredResourceDescriptors" and method == "GET":
            self._authenticate(headers)
            return 200, {}
        if target.path.startswith("/v3/projects/"):
            raise GoogleApiError(
                403, "PERMISSION_DENIED", "Permission monitoring.timeSeries.list denied (or it may not exist)."
            )
        if self.token_status != 200:
            self.logins.append("rejected")
            return self.token_status, {"error": "internal_failure"}
        if target.path == "/token" and method == "POST":
            return self._token_for_assertion(form)
        if target.path == "/sts" and method == "POST":
            return self._token_for_subject(form)
        if target.path.startswith("/computeMetadata/v1/instance/service-accounts/default/"):
            return self._token_of_metadata_server(target.path, query, headers)
        if target.path == f"/v1/projects/{PROJECT}/location/global/prometheus/api/v1/query" and method == "GET":
            return self._promql(query, headers)
        return 404, {"error": {"code": 404}}

    def _token_for_assertion(self, form: dict[str, str]) -> Response:
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return 400, {"error": "unsupported_grant_type"}
        signed, _, signature = form["assertion"].rpartition(".")
        claims = json.loads(_decode_base64(signed.partition(".")[2]))
        try:
            public = self.account.key.public_key()
            public.verify(_decode_base64(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return 400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
        if (
            claims["aud"] not in (f"{self.url}/token", "https://oauth2.googleapis.com/token")
            or claims["scope"] != SCOPE
        ):
            return 400, {"error": "invalid_scope", "error_description": str(claims)}
        return self._issue("key")

    def _token_for_subject(self, form: dict[str, str]) -> Response:
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" or form.get("scope") != SCOPE:
            return 400, {"error": "invalid_request"}
        if form.get("subject_token") != self.subject_token:
            return 400, {"error": "invalid_grant", "error_description": "The subject token is not valid."}
        status, document = self._issue("subject")
        return status, {**document, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}

    def _token_of_metadata_server(self, path: str, query: dict[str, str], headers: Message) -> Response:
        if headers.get("Metadata-Flavor") != "Google":
            return 403, {"error": "Missing Metadata-Flavor:Google header."}
        if path.endswith("/token") and query.get("scopes") == SCOPE:
            return self._issue("metadataServer")
        return 200, {"email": f"pod@{PROJECT}.iam.gserviceaccount.com", "aliases": ["default"], "scopes": [SCOPE]}

    def _issue(self, method: str) -> Response:
        self.token = f"google-token-{next(self._token_numbers)}"
        self._tokens.add(self.token)
        self.logins.append(method)
        return 200, {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}

    def _promql(self, query: dict[str, str], headers: Message) -> Response:
        self._authenticate(headers)
        if set(query) - {"query", "time", "timeout"} or float(query["time"]) <= 0:
            return 400, {"status": "error", "errorType": "bad_data", "error": "unknown parameter"}
        self.queries.append(query["query"])
        if query["query"].count("(") != query["query"].count(")"):
            return 400, {"status": "error", "errorType": "bad_data", "error": "parse error: unclosed left parenthesis"}
        default = [
            {"metric": {"__name__": "n", "subscription": name}, "value": [float(query["time"]), str(number)]}
            for name, number in self.values.items()
        ]
        result = default if self.promql_result is None else self.promql_result
        return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


def series(labels: dict[str, str], number: float, end: datetime, **more: Any) -> dict[str, Any]:
    """Return a series with points of the last minutes, the newest first."""
    points = [
        {
            "interval": {"start_time": end - _MINUTE * age, "end_time": end - _MINUTE * age},
            "value": {"double_value": value},
        }
        for age, value in enumerate((number, number + 1, number + 2))
    ]
    resource = {"type": "pubsub_subscription", "labels": labels}
    return {"metric": {"type": TYPE}, "resource": resource, "points": points, **more}


def _check(request: ListTimeSeriesRequest) -> None:
    remainder = _TERM.sub("x", request.filter)
    if not re.fullmatch(r"x( AND x)*", remainder) or "metric.type" not in request.filter:
        raise GoogleApiError(400, "INVALID_ARGUMENT", f"Field filter had an invalid value: {request.filter}")
    start, end = request.interval.start_time, request.interval.end_time
    if not start < end <= datetime.now(UTC) + _MINUTE:  # noqa: TID251 - the server's clock
        raise GoogleApiError(400, "INVALID_ARGUMENT", "Field interval had an invalid value")
    aggregation = request.aggregation
    if aggregation.cross_series_reducer.value and not aggregation.per_series_aligner.value:
        raise GoogleApiError(400, "INVALID_ARGUMENT", "Field aggregation.perSeriesAligner had an invalid value")
    if aggregation.per_series_aligner.value and aggregation.alignment_period < _MINUTE:
        raise GoogleApiError(400, "INVALID_ARGUMENT", "Field aggregation.alignmentPeriod had an invalid value")


def _request(query: Mapping[str, list[str]]) -> ListTimeSeriesRequest:
    """Parse a query string with the API definition, which rejects unknown parameters."""
    document: dict[str, Any] = {}
    for key, values in query.items():
        *parents, last = key.split(".")
        inner = document
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = values if last == "groupByFields" else values[0]
    try:
        request = json_format.ParseDict(document, ListTimeSeriesRequest.pb(ListTimeSeriesRequest()))
    except json_format.ParseError as error:
        raise GoogleApiError(400, "INVALID_ARGUMENT", str(error)) from None
    return ListTimeSeriesRequest.wrap(request)


def _decode_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
