"""A fake of the Datadog API, by its reference, with one metric, ``queue.depth``, by queue."""

import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_QUERY = re.compile(r"(avg|sum|min|max):([\w.]+)\{([^{}]*)\}( by \{([\w,]+)\})?")
_FORMULA = re.compile(r"(\w+)|default_zero\((\w+)\)|(\w+) / (\w+)")
Response = tuple[int, dict[str, str], Any]


class DatadogServer:
    """Serves values by queue, records requests, and fails as configured."""

    def __init__(self) -> None:
        self.values: Mapping[str, float | None] = {}
        self.keys = {"DD-API-KEY": "", "DD-APPLICATION-KEY": ""}
        self.requests: list[dict[str, Any]] = []
        """The attributes of every valid request."""

        self.rate_limit_headers: dict[str, str] = {}
        """Headers of every response."""

        self.points: list[list[float | None]] | None = None
        """Points of every series, instead of its value."""

        self.response: Any = None
        """Body of all successful responses."""

        self.status = 0
        """Status of all responses, if not zero."""

        self.request_count = 0
        """Number of requests, including rejected ones."""

        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._respond(*server.query(self.path, dict(self.headers), body))

            def do_GET(self) -> None:
                self._respond(*server.validate(self.path, dict(self.headers)))

            def _respond(self, status: int, headers: Mapping[str, str], document: object) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                all_headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
                for key, value in all_headers.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Suppress the log."""

        ThreadingHTTPServer.daemon_threads = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="peer datadog")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # ---- responses

    def validate(self, path: str, headers: Mapping[str, str]) -> Response:
        if path != "/api/v1/validate":
            return 404, {}, {"errors": ["Not Found"]}
        if headers.get("DD-API-KEY") != self.keys["DD-API-KEY"]:
            return 403, {}, {"errors": ["Forbidden"]}
        return 200, {}, {"valid": True}

    def query(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        self.request_count += 1
        if self.status:
            return self.status, self.rate_limit_headers, {"errors": ["reason"]}
        if path != "/api/v2/query/timeseries":
            return 404, {}, {"errors": ["Not Found"]}
        if any(headers.get(name) != key for name, key in self.keys.items()):
            return 403, {}, {"errors": ["Forbidden"]}
        if headers.get("Content-Type") != "application/json":
            return 415, {}, {"errors": ["Unsupported Media Type"]}
        try:
            attributes = self._validated(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            return 400, self.rate_limit_headers, {"errors": [f"Bad Request: {error}"]}
        self.requests.append(attributes)
        return 200, self.rate_limit_headers, self.response if self.response is not None else self._result(attributes)

    @staticmethod
    def _validated(document: dict[str, Any]) -> dict[str, Any]:
        data = document["data"]
        attributes: dict[str, Any] = data["attributes"]
        if data["type"] != "timeseries_request" or not 0 < attributes["from"] < attributes["to"]:
            raise ValueError("unknown request type or time range")
        if len(str(attributes["to"])) != 13:
            raise ValueError("not in milliseconds")
        names = [query["name"] for query in attributes["queries"]]
        if len(names) != len(set(names)) or any(query["data_source"] != "metrics" for query in attributes["queries"]):
            raise ValueError("names must be unique, and of metrics")
        for query in attributes["queries"]:
            if not _QUERY.fullmatch(query["query"]):
                raise ValueError(f"Error parsing query: {query['query']}")
        for formula in attributes["formulas"]:
            used = _FORMULA.fullmatch(formula["formula"])
            if not used or not {name for name in used.groups() if name} <= set(names):
                raise ValueError(f"Error parsing formula: {formula['formula']}")
        return attributes

    def _result(self, attributes: dict[str, Any]) -> dict[str, Any]:
        queries = {query["name"]: self._run(query["query"]) for query in attributes["queries"]}
        series, values = [], []
        for index, formula in enumerate(attributes["formulas"]):
            for tags, numbers in self._formula(formula["formula"], queries).items():
                series.append({"group_tags": list(tags), "query_index": index, "unit": [None, None]})
                values.append(numbers)
        now = int(time.time() * 1000)  # noqa: TID251 - the server's clock
        points = max(map(len, values), default=0)
        times = [now - 20_000 * (points - position) for position in range(points)]
        return {
            "data": {
                "type": "timeseries_response",
                "attributes": {"series": series, "times": times, "values": values},
            }
        }

    def _formula(self, formula: str, queries: dict[str, dict[Any, Any]]) -> dict[Any, Any]:
        single, zeroed, numerator, denominator = _FORMULA.fullmatch(formula).groups()  # type: ignore[union-attr]
        if single or zeroed:
            return {tags: [n or 0 if zeroed else n for n in each] for tags, each in queries[single or zeroed].items()}
        return {
            tags: [n and n / m for n, m in zip(each, queries[denominator][tags], strict=True)]
            for tags, each in queries[numerator].items()
        }

    def _run(self, query: str) -> dict[tuple[str, ...], list[float | None]]:
        _, metric, scope, by, tags = _QUERY.fullmatch(query).groups()  # type: ignore[union-attr]
        if metric != "queue.depth":
            return {}
        scope_tags = dict(tag.split(":", 1) for tag in scope.split(",") if tag != "*")
        values = {name: number for name, number in self.values.items() if scope_tags.get("queue", name) == name}
        if by and tags == "queue":
            return {(f"queue:{name}",): self._points(number) for name, number in values.items()}
        return {(): self._points(sum(number or 0 for number in values.values()))} if values else {}

    def _points(self, number: float | None) -> list[float | None]:
        return self.points[0] if self.points else [number, number, None]
