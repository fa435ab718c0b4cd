"""A server that answers as Datadog's API reference says, and is as strict: one metric, ``queue.depth``, by queue."""

import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_QUERY = re.compile(r"(avg|sum|min|max):([\w.]+)\{([^{}]*)\}( by \{([\w,]+)\})?")
_FORMULA = re.compile(r"(\w+)|default_zero\((\w+)\)|(\w+) / (\w+)")
Answer = tuple[int, dict[str, str], Any]


class DatadogServer:
    """What it holds, what it was asked, and in which trouble it is."""

    def __init__(self) -> None:
        self.numbers: Mapping[str, float | None] = {}
        self.keys = {"DD-API-KEY": "", "DD-APPLICATION-KEY": ""}
        self.asked: list[dict[str, Any]] = []
        """The attributes of every call."""

        self.limit: dict[str, str] = {}
        """Headers of every answer."""

        self.points: list[list[float | None]] | None = None
        """Values to answer with instead of the numbers, for one series."""

        self.says: Any = None
        """A document to answer with instead."""

        self.refuses = 0
        """A status to answer with instead."""

        self.calls = 0
        """How many there were, also in vain."""

        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(*server.answer(self.path, dict(self.headers), body))

            def do_GET(self) -> None:
                self._answer(*server.validate(self.path, dict(self.headers)))

            def _answer(self, status: int, headers: Mapping[str, str], document: object) -> None:
                said = json.dumps(document).encode()
                self.send_response(status)
                sent = {"Content-Type": "application/json", "Content-Length": str(len(said)), **headers}
                for key, value in sent.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

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

    # ---- what it answers

    def validate(self, path: str, headers: Mapping[str, str]) -> Answer:
        if path != "/api/v1/validate":
            return 404, {}, {"errors": ["Not Found"]}
        if headers.get("DD-API-KEY") != self.keys["DD-API-KEY"]:
            return 403, {}, {"errors": ["Forbidden"]}
        return 200, {}, {"valid": True}

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.calls += 1
        if self.refuses:
            return self.refuses, self.limit, {"errors": ["because"]}
        if path != "/api/v2/query/timeseries":
            return 404, {}, {"errors": ["Not Found"]}
        if any(headers.get(name) != key for name, key in self.keys.items()):
            return 403, {}, {"errors": ["Forbidden"]}
        if headers.get("Content-Type") != "application/json":
            return 415, {}, {"errors": ["Unsupported Media Type"]}
        try:
            attributes = self._checked(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            return 400, self.limit, {"errors": [f"Bad Request: {error}"]}
        self.asked.append(attributes)
        return 200, self.limit, self.says if self.says is not None else self._found(attributes)

    @staticmethod
    def _checked(document: dict[str, Any]) -> dict[str, Any]:
        data = document["data"]
        attributes: dict[str, Any] = data["attributes"]
        if data["type"] != "timeseries_request" or not 0 < attributes["from"] < attributes["to"]:
            raise ValueError("no such request")
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

    def _found(self, attributes: dict[str, Any]) -> dict[str, Any]:
        queries = {query["name"]: self._run(query["query"]) for query in attributes["queries"]}
        series, values = [], []
        for index, formula in enumerate(attributes["formulas"]):
            for tags, numbers in self._formula(formula["formula"], queries).items():
                series.append({"group_tags": list(tags), "query_index": index, "unit": [None, None]})
                values.append(numbers)
        now = int(time.time() * 1000)  # noqa: TID251 - a server has a clock of its own
        points = max(map(len, values), default=0)
        times = [now - 20_000 * (points - place) for place in range(points)]
        return {
            "data": {
                "type": "timeseries_response",
                "attributes": {"series": series, "times": times, "values": values},
            }
        }

    def _formula(self, formula: str, queries: dict[str, dict[Any, Any]]) -> dict[Any, Any]:
        one, zeroed, above, below = _FORMULA.fullmatch(formula).groups()  # type: ignore[union-attr]
        if one or zeroed:
            return {tags: [n or 0 if zeroed else n for n in each] for tags, each in queries[one or zeroed].items()}
        return {
            tags: [n and n / m for n, m in zip(each, queries[below][tags], strict=True)]
            for tags, each in queries[above].items()
        }

    def _run(self, query: str) -> dict[tuple[str, ...], list[float | None]]:
        _, metric, scope, by, tags = _QUERY.fullmatch(query).groups()  # type: ignore[union-attr]
        if metric != "queue.depth":
            return {}
        wanted = dict(tag.split(":", 1) for tag in scope.split(",") if tag != "*")
        found = {name: number for name, number in self.numbers.items() if wanted.get("queue", name) == name}
        if by and tags == "queue":
            return {(f"queue:{name}",): self._points(number) for name, number in found.items()}
        return {(): self._points(sum(number or 0 for number in found.values()))} if found else {}

    def _points(self, number: float | None) -> list[float | None]:
        return self.points[0] if self.points else [number, number, None]
