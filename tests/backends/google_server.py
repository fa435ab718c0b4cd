"""Google as its REST documentation has it: time series, PromQL, and tokens of every kind.

What is asked must fit Google's own definition of its API (``google-cloud-monitoring``), and answers are made by it.
"""

import base64
import json
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
Answer = tuple[int, dict[str, Any]]


class ServiceAccount:
    """A key, as it stands in a file and as Google knows it."""

    def __init__(self, name: str) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.name = name
        form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        self.pem = self.key.private_bytes(serialization.Encoding.PEM, form, none).decode()

    def file(self, token_uri: str) -> str:
        email = f"{self.name}@{PROJECT}.iam.gserviceaccount.com"
        said = {"type": "service_account", "project_id": PROJECT, "private_key_id": self.name, "private_key": self.pem}
        return json.dumps({**said, "client_email": email, "client_id": "1", "token_uri": token_uri})


class Refused(Exception):
    """A status, and the words that go with it."""

    def __init__(self, code: int, status: str, words: str = "") -> None:
        super().__init__(words)
        self.answer: Answer = code, {"error": {"code": code, "status": status, "message": words}}


class GoogleServer:
    """Holds numbers by the name of a subscription."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.account = ServiceAccount("first")
        self.subject_token = "a-token-of-our-cluster"  # noqa: S105
        self.series: list[dict[str, Any]] | None = None
        """In place of those of the numbers."""

        self.said: bytes | None = None
        """An answer in place of any other."""

        self.errors: list[dict[str, Any]] = []
        self.asked: list[ListTimeSeriesRequest] = []
        self.headers: list[Mapping[str, str]] = []
        self.logins: list[str] = []
        self.queries: list[str] = []
        self.vector: list[dict[str, Any]] | None = None
        self.token_status = 200
        self.token = ""
        """The last that was given out."""

        self._tokens: set[str] = set()
        self._numbered = count(1)
        self._http = self._web()
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="peer google")
        self._thread.start()

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def web(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def key_file(self) -> str:
        return self.account.file(f"{self.web}/token")

    def external_file(self, subject: str) -> str:
        """How to log in from elsewhere, by a token in a file."""
        pool = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k"
        said = {"type": "external_account", "audience": pool, "token_url": f"{self.web}/sts"}
        kind = "urn:ietf:params:oauth:token-type:jwt"
        return json.dumps({**said, "subject_token_type": kind, "credential_source": {"file": subject}})

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def revoke(self) -> None:
        """Believe no token that was given out so far."""
        self._tokens.clear()

    # ---- time series

    def _time_series(self, asked: Mapping[str, list[str]], headers: Mapping[str, str]) -> Answer:
        self._admit(headers)
        request = _request(asked)
        self.asked.append(request)
        self.headers.append(dict(headers))
        _check(request)
        found = self.series if self.series is not None else self._found(request)
        first = int(request.page_token or 0)
        page = found[first : first + request.page_size]
        following = str(first + len(page)) if first + len(page) < len(found) else ""
        told = ListTimeSeriesResponse(time_series=page, next_page_token=following, execution_errors=self.errors)
        return 200, json_format.MessageToDict(ListTimeSeriesResponse.pb(told))

    def _admit(self, headers: Mapping[str, str]) -> None:
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self._tokens:
            raise Refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")

    def _found(self, request: ListTimeSeriesRequest) -> list[dict[str, Any]]:
        wanted = {field.replace(".label.", ".labels."): value for field, value in _TERM.findall(request.filter)}
        if wanted["metric.type"] != TYPE:
            words = f'Cannot find metric(s) that match type = "{wanted["metric.type"]}"'
            raise Refused(404, "NOT_FOUND", words)
        name = wanted.get("resource.labels.subscription_id")
        names = [each for each in self.numbers if name in (None, each)]
        if request.aggregation.cross_series_reducer == Aggregation.Reducer.REDUCE_SUM:
            return [series({}, sum(self.numbers[each] for each in names), request.interval.end_time)]
        end = request.interval.end_time
        return [series({"project_id": PROJECT, "subscription_id": each}, self.numbers[each], end) for each in names]

    # ---- what is HTTP

    def _web(self) -> ThreadingHTTPServer:
        google = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                said = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self._answer({key: values[0] for key, values in parse_qs(said).items()})

            def _answer(self, form: dict[str, str]) -> None:
                try:
                    status, answer = google.answer(self.command, self.path, self.headers, form)
                except Refused as error:
                    status, answer = error.answer
                said = json.dumps(answer).encode() if google.said is None else google.said
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads = True
        return made

    def answer(self, method: str, path: str, headers: Mapping[str, str], form: dict[str, str]) -> Answer:
        asked = urlsplit(path)
        several = parse_qs(asked.query)
        query = {key: values[0] for key, values in several.items()}
        if asked.path == f"/v3/projects/{PROJECT}/timeSeries" and method == "GET":
            return self._time_series(several, headers)
        if asked.path == f"/v3/projects/{PROJECT}/monitoredResourceDescriptors" and method == "GET":
            self._admit(headers)
            return 200, {}
        if asked.path.startswith("/v3/projects/"):
            raise Refused(
                403, "PERMISSION_DENIED", "Permission monitoring.timeSeries.list denied (or it may not exist)."
            )
        if self.token_status != 200:
            self.logins.append("refused")
            return self.token_status, {"error": "internal_failure"}
        if asked.path == "/token" and method == "POST":
            return self._for_assertion(form)
        if asked.path == "/sts" and method == "POST":
            return self._for_subject(form)
        if asked.path.startswith("/computeMetadata/v1/instance/service-accounts/default/"):
            return self._for_machine(asked.path, query, headers)
        if asked.path == f"/v1/projects/{PROJECT}/location/global/prometheus/api/v1/query" and method == "GET":
            return self._promql(query, headers)
        return 404, {"error": {"code": 404}}

    def _for_assertion(self, form: dict[str, str]) -> Answer:
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return 400, {"error": "unsupported_grant_type"}
        signed, _, signature = form["assertion"].rpartition(".")
        claims = json.loads(_decoded(signed.partition(".")[2]))
        try:
            public = self.account.key.public_key()
            public.verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return 400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
        if (
            claims["aud"] not in (f"{self.web}/token", "https://oauth2.googleapis.com/token")
            or claims["scope"] != SCOPE
        ):
            return 400, {"error": "invalid_scope", "error_description": str(claims)}
        return self._given("key")

    def _for_subject(self, form: dict[str, str]) -> Answer:
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" or form.get("scope") != SCOPE:
            return 400, {"error": "invalid_request"}
        if form.get("subject_token") != self.subject_token:
            return 400, {"error": "invalid_grant", "error_description": "The subject token is not valid."}
        status, answer = self._given("subject")
        return status, {**answer, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}

    def _for_machine(self, path: str, query: dict[str, str], headers: Mapping[str, str]) -> Answer:
        if headers.get("Metadata-Flavor") != "Google":
            return 403, {"error": "Missing Metadata-Flavor:Google header."}
        if path.endswith("/token") and query.get("scopes") == SCOPE:
            return self._given("machine")
        return 200, {"email": f"pod@{PROJECT}.iam.gserviceaccount.com", "aliases": ["default"], "scopes": [SCOPE]}

    def _given(self, by: str) -> Answer:
        self.token = f"a-token-of-google-{next(self._numbered)}"
        self._tokens.add(self.token)
        self.logins.append(by)
        return 200, {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}

    def _promql(self, query: dict[str, str], headers: Mapping[str, str]) -> Answer:
        self._admit(headers)
        if set(query) - {"query", "time", "timeout"} or float(query["time"]) <= 0:
            return 400, {"status": "error", "errorType": "bad_data", "error": "unknown parameter"}
        self.queries.append(query["query"])
        if query["query"].count("(") != query["query"].count(")"):
            return 400, {"status": "error", "errorType": "bad_data", "error": "parse error: unclosed left parenthesis"}
        held = [
            {"metric": {"__name__": "n", "subscription": name}, "value": [float(query["time"]), str(number)]}
            for name, number in self.numbers.items()
        ]
        found = held if self.vector is None else self.vector
        return 200, {"status": "success", "data": {"resultType": "vector", "result": found}}


def series(labels: dict[str, str], number: float, end: datetime, **more: Any) -> dict[str, Any]:
    """Write a series with points of the last minutes, the newest first as Google has them."""
    points = [
        {
            "interval": {"start_time": end - _MINUTE * at, "end_time": end - _MINUTE * at},
            "value": {"double_value": value},
        }
        for at, value in enumerate((number, number + 1, number + 2))
    ]
    resource = {"type": "pubsub_subscription", "labels": labels}
    return {"metric": {"type": TYPE}, "resource": resource, "points": points, **more}


def _check(request: ListTimeSeriesRequest) -> None:
    rest = _TERM.sub("x", request.filter)
    if not re.fullmatch(r"x( AND x)*", rest) or "metric.type" not in request.filter:
        raise Refused(400, "INVALID_ARGUMENT", f"Field filter had an invalid value: {request.filter}")
    start, end = request.interval.start_time, request.interval.end_time
    if not start < end <= datetime.now(UTC) + _MINUTE:  # noqa: TID251 - the server's own time
        raise Refused(400, "INVALID_ARGUMENT", "Field interval had an invalid value")
    how = request.aggregation
    if how.cross_series_reducer and not how.per_series_aligner:
        raise Refused(400, "INVALID_ARGUMENT", "Field aggregation.perSeriesAligner had an invalid value")
    if how.per_series_aligner and how.alignment_period < _MINUTE:
        raise Refused(400, "INVALID_ARGUMENT", "Field aggregation.alignmentPeriod had an invalid value")


def _request(asked: Mapping[str, list[str]]) -> ListTimeSeriesRequest:
    """Read a query as Google's definition has it; whatever is not in there is refused."""
    document: dict[str, Any] = {}
    for key, values in asked.items():
        *parents, last = key.split(".")
        inner = document
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = values if last == "groupByFields" else values[0]
    try:
        made = json_format.ParseDict(document, ListTimeSeriesRequest.pb(ListTimeSeriesRequest()))
    except json_format.ParseError as error:
        raise Refused(400, "INVALID_ARGUMENT", str(error)) from None
    return ListTimeSeriesRequest.wrap(made)


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
