"""A server that answers as NerdGraph is documented, and is as strict: one event type, ``Queue``, with a depth each."""

import json
import re
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_DOCUMENT = re.compile(r"query\((?P<declared>[^()]*)\) \{ actor \{ (?P<questions>.*) \} \}")
_QUESTION = re.compile(
    r"(\w+): account\(id: \$(\w+)\) \{ nrql\(query: \$(\w+), timeout: (\d+)\) "
    r"\{ results metadata \{ facets timeWindow \{ end \} \} \} \}"
)
_NRQL = re.compile(r"SELECT latest\(depth\) FROM (\w+)( WHERE queue = '([^']*)')?( FACET queue LIMIT MAX)?")
Answer = tuple[int, Any]


class NewRelicServer:
    """What it holds, what it was asked, and in which trouble it is."""

    def __init__(self, account: int) -> None:
        self.numbers: Mapping[str, float | None] = {}
        self.key = ""
        self.accounts = {account}
        self.asked: list[dict[str, Any]] = []
        """The variables of every call."""

        self.patience: set[int] = set()
        """Seconds that queries were given."""

        self.calls = 0
        self.says: Any = None
        """A document to answer with instead."""

        self.found: Any = None
        """What every query finds instead: ``{results, metadata}``."""

        self.fails: dict[str, Any] = {}
        """By query: the error that it has."""

        self.coerces = True
        """Whether a query is looked at before any is run, as of a scalar; then a bad one is everyone's."""

        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, document = server.answer(self.path, dict(self.headers), body)
                said = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

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

    # ---- what it answers

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.calls += 1
        if path != "/graphql" or headers.get("Content-Type") != "application/json":
            return 404, {"errors": [{"message": "not found"}]}
        if headers.get("API-Key") != self.key:
            return 401, _error("Bad API Key or no API Key provided", error_code="BAD_API_KEY")
        document = json.loads(body)
        if self.says is not None:
            return 200, self.says
        if document["query"] == "{ actor { user { id } } }":
            return 200, {"data": {"actor": {"user": {"id": 1}}}}
        return 200, self._run(document)

    def _run(self, document: dict[str, Any]) -> Any:
        parsed, variables = _DOCUMENT.fullmatch(document["query"]), document.get("variables") or {}
        if parsed is None or _QUESTION.sub("", parsed["questions"]).strip():
            return _error("Syntax error before: ...", errorClass="GRAPHQL_VALIDATION_FAILED")
        declared = dict(each.split(": ") for each in parsed["declared"].split(", "))
        if {name.removeprefix("$") for name in declared} != set(variables):
            return _error("Variable is not used or not declared")
        if not all(isinstance(variables[name[1:]], int if kind == "Int!" else str) for name, kind in declared.items()):
            return _error('Argument "id" has invalid value')
        self.asked.append(variables)
        asked = _QUESTION.findall(parsed["questions"])
        if self.coerces and any(self._is_bad(variables[query]) for _, _, query, _ in asked):
            return _error('Argument "query" has invalid value $q.')
        return self._all(asked, variables)

    def _all(self, asked: list[tuple[str, str, str, str]], variables: dict[str, Any]) -> Any:
        actor, errors = {}, []
        for alias, account, query, patience in asked:
            self.patience.add(int(patience))
            actor[alias], error = self._one(variables[account], variables[query])
            if error is not None:
                errors.append({"path": ["actor", alias, *(["nrql"] if actor[alias] else [])], **error})
        return {"data": {"actor": actor}, **({"errors": errors} if errors else {})}

    def _one(self, account: int, nrql: str) -> tuple[Any, Any]:
        if account not in self.accounts:
            return None, {"message": "Access denied.", "extensions": {"errorClass": "ACCESS_DENIED"}}
        if nrql in self.fails:
            return {"nrql": None}, self.fails[nrql]
        if self._is_bad(nrql):
            message = "NRQL Syntax Error: Error at line 1 position 8, unexpected 'FORM'"
            return {"nrql": None}, {"message": message, "extensions": {"errorClass": "SERVER_ERROR"}}
        return {"nrql": self.found if self.found is not None else self._found(nrql)}, None

    @staticmethod
    def _is_bad(nrql: str) -> bool:
        return _NRQL.match(nrql) is None and "SELECT 1" not in nrql

    def _found(self, nrql: str) -> Any:
        parsed = _NRQL.match(nrql)
        event, _, queue, faceted = parsed.groups() if parsed else ("", "", None, "")
        found = {name: number for name, number in self.numbers.items() if queue in {None, name} and event == "Queue"}
        if faceted:
            results = [{"facet": name, "queue": name, "latest.depth": number} for name, number in found.items()]
        else:
            results = [{"latest.depth": next(iter(found.values()), None)}]
        end = int(time.time() * 1000)  # noqa: TID251 - a server has a clock of its own
        return {
            "results": results,
            "metadata": {"facets": ["queue"] if faceted else None, "timeWindow": {"begin": end - 60_000, "end": end}},
        }


def _error(message: str, **extensions: str) -> Any:
    return {"errors": [{"message": message, "extensions": extensions}]}
