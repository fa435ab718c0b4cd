"""A fake of NerdGraph, by its documentation, with one event type, ``Queue``, and a depth for each queue."""

import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_DOCUMENT = re.compile(r"query\((?P<declarations>[^()]*)\) \{ actor \{ (?P<fields>.*) \} \}")
_FIELD = re.compile(
    r"(\w+): account\(id: \$(\w+)\) \{ nrql\(query: \$(\w+), timeout: (\d+)\) "
    r"\{ results metadata \{ facets timeWindow \{ end \} \} \} \}"
)
_NRQL = re.compile(r"SELECT latest\(depth\) FROM (\w+)( WHERE queue = '([^']*)')?( FACET queue LIMIT MAX)?")
Response = tuple[int, Any]


class NewRelicServer:
    """Serves values by queue, records requests, and fails as configured."""

    def __init__(self, account: int) -> None:
        self.values: Mapping[str, float | None] = {}
        self.key = ""
        self.accounts = {account}
        self.requests: list[dict[str, Any]] = []
        """The variables of every request."""

        self.timeouts: set[int] = set()
        """Timeouts of queries in seconds."""

        self.request_count = 0
        self.response: Any = None
        """Body of all successful responses."""

        self.nrql_result: Any = None
        """Result of every query: ``{results, metadata}``."""

        self.errors_by_query: dict[str, Any] = {}

        self.validates_first = True
        """Whether all queries are validated before one runs; then an invalid query fails the request."""

        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, document = server.query(self.path, dict(self.headers), body)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Suppress the log."""

        ThreadingHTTPServer.daemon_threads = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="peer newrelic")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # ---- responses

    def query(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        self.request_count += 1
        if path != "/graphql" or headers.get("Content-Type") != "application/json":
            return 404, {"errors": [{"message": "not found"}]}
        if headers.get("API-Key") != self.key:
            return 401, _error("Bad API Key or no API Key provided", error_code="BAD_API_KEY")
        document = json.loads(body)
        if self.response is not None:
            return 200, self.response
        if document["query"] == "{ actor { user { id } } }":
            return 200, {"data": {"actor": {"user": {"id": 1}}}}
        return 200, self._run(document)

    def _run(self, document: dict[str, Any]) -> Any:
        parsed, variables = _DOCUMENT.fullmatch(document["query"]), document.get("variables") or {}
        if parsed is None or _FIELD.sub("", parsed["fields"]).strip():
            return _error("Syntax error before: ...", errorClass="GRAPHQL_VALIDATION_FAILED")
        declarations = dict(each.split(": ") for each in parsed["declarations"].split(", "))
        if {name.removeprefix("$") for name in declarations} != set(variables):
            return _error("Variable is not used or not declarations")
        if not all(
            isinstance(variables[name[1:]], int if kind == "Int!" else str) for name, kind in declarations.items()
        ):
            return _error('Argument "id" has invalid value')
        self.requests.append(variables)
        fields = _FIELD.findall(parsed["fields"])
        if self.validates_first and any(self._is_invalid(variables[query]) for _, _, query, _ in fields):
            return _error('Argument "query" has invalid value $q.')
        return self._run_all(fields, variables)

    def _run_all(self, fields: list[tuple[str, str, str, str]], variables: dict[str, Any]) -> Any:
        actor, errors = {}, []
        for alias, account, query, timeout in fields:
            self.timeouts.add(int(timeout))
            actor[alias], error = self._run_one(variables[account], variables[query])
            if error is not None:
                errors.append({"path": ["actor", alias, *(["nrql"] if actor[alias] else [])], **error})
        return {"data": {"actor": actor}, **({"errors": errors} if errors else {})}

    def _run_one(self, account: int, nrql: str) -> tuple[Any, Any]:
        if account not in self.accounts:
            return None, {"message": "Access denied.", "extensions": {"errorClass": "ACCESS_DENIED"}}
        if nrql in self.errors_by_query:
            return {"nrql": None}, self.errors_by_query[nrql]
        if self._is_invalid(nrql):
            message = "NRQL Syntax Error: Error at line 1 position 8, unexpected 'FORM'"
            return {"nrql": None}, {"message": message, "extensions": {"errorClass": "SERVER_ERROR"}}
        return {"nrql": self.nrql_result if self.nrql_result is not None else self._result(nrql)}, None

    @staticmethod
    def _is_invalid(nrql: str) -> bool:
        return _NRQL.match(nrql) is None and "SELECT 1" not in nrql

    def _result(self, nrql: str) -> Any:
        parsed = _NRQL.match(nrql)
        event, _, queue, faceted = parsed.groups() if parsed else ("", "", None, "")
        values = {name: number for name, number in self.values.items() if queue in {None, name} and event == "Queue"}
        if faceted:
            results = [{"facet": name, "queue": name, "latest.depth": number} for name, number in values.items()]
        else:
            results = [{"latest.depth": next(iter(values.values()), None)}]
        end = int(time.time() * 1000)  # noqa: TID251 - the server's clock
        return {
            "results": results,
            "metadata": {"facets": ["queue"] if faceted else None, "timeWindow": {"begin": end - 60_000, "end": end}},
        }


def _error(message: str, **extensions: str) -> Any:
    return {"errors": [{"message": message, "extensions": extensions}]}
