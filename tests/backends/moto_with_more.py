"""A process of its own: moto's server, and added to it what CloudWatch has and moto lacks.

    python tests/backends/moto_with_more.py PORT FOLDER

Added: refusals of what the documentation forbids, SEARCH with dynamic labels, arithmetic, percentiles, pages, the
status of single metrics; and of STS, that a web identity's token must be the one in FOLDER/web-identity-token. Every
GetMetricData is written to FOLDER/calls.jsonl; FOLDER/orders.json says what to make of it: ``points`` (values a page),
``status`` and ``messages`` (by a metric's name), ``all_messages``, ``silent`` (do not say which expression is bad).
"""

import ast
import json
import math
import operator
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from moto.cloudwatch.exceptions import ValidationError
from moto.cloudwatch.models import Statistics
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.responses import ActionResult
from moto.server import main
from moto.sts.exceptions import STSClientError
from moto.sts.responses import TokenResponse

FOLDER = Path(sys.argv[2])
_WRITING = threading.Lock()
_ID = re.compile(r"[a-z][A-Za-z0-9_]{0,254}")
_SEARCH = re.compile(r"""SEARCH\('\{([^}]*)\} MetricName="([^"]+)"', '(\w+)', (\d+)\)""")
_PROPERTY = re.compile(r"\$\{PROP\('Dim\.([^']+)'\)\}")
_STATISTIC = re.compile(r"Average|Sum|Minimum|Maximum|SampleCount|p\d+(\.\d+)?|tm\d+")
_SUMS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Json = dict[str, Any]
_moto_statistic = Statistics.get_statistics_for_type
_moto_web_identity = TokenResponse.assume_role_with_web_identity
_moto_admission = ActionAuthenticatorMixin._authenticate_and_authorize_normal_action


def statistic(self: Statistics, stat: str) -> Any:
    if not stat.startswith("p"):
        return _moto_statistic(self, stat)
    values = sorted(self.metric_single_values_list)
    return values[max(0, math.ceil(float(stat[1:]) / 100 * len(values)) - 1)]


def admission(self: Any, resource: str = "*") -> None:
    """Let through who shows the token of a service account: that request is not signed, which moto expects of all."""
    if not (isinstance(self, TokenResponse) and self._get_action() == "AssumeRoleWithWebIdentity"):
        _moto_admission(self, resource)


def assume_role_with_web_identity(self: TokenResponse) -> ActionResult:
    if self._get_param("WebIdentityToken") != (FOLDER / "web-identity-token").read_text():
        raise InvalidIdentityToken
    return _moto_web_identity(self)


class InvalidIdentityToken(STSClientError):
    code = "InvalidIdentityToken"
    message = "The token is not one of ours"


def get_metric_data(self: CloudWatchResponse) -> ActionResult:
    asked = self._get_params()
    orders = _orders()
    with _WRITING, (FOLDER / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(asked, default=str) + "\n")
    _validate(asked, orders)
    results = list(_Call(self, asked, orders).results())
    for result in results:
        name = result.pop("name", result["label"])
        result["status_code"] = orders.get("status", {}).get(name, "Complete")
        result["messages"] = orders.get("messages", {}).get(name, [])
    page = _page(asked, results, orders.get("points"))
    return ActionResult({**page, "Messages": orders.get("all_messages", [])})


def _orders() -> Json:
    file = FOLDER / "orders.json"
    return json.loads(file.read_text()) if file.exists() else {}


def _validate(asked: Json, orders: Json) -> None:
    queries = asked["MetricDataQueries"]
    ids = [query["Id"] for query in queries]
    if len(queries) > 500:
        raise ValidationError("The collection MetricDataQueries must not have a size greater than 500.")
    if len(set(ids)) < len(ids) or not all(_ID.fullmatch(each) for each in ids):
        raise ValidationError("The values for parameter id in MetricDataQueries are not unique or not valid.")
    if sum(query.get("Expression", "").startswith("SELECT") for query in queries) > 1:
        raise ValidationError("Only one Metrics Insights query is allowed per request.")
    for query in queries:
        if ("MetricStat" in query) == ("Expression" in query):
            raise ValidationError("Either MetricStat or Expression is required, and not both.")
        if "MetricStat" in query:
            period, stat = query["MetricStat"]["Period"], query["MetricStat"]["Stat"]
            if (period not in {1, 5, 10, 20, 30} and period % 60) or not _STATISTIC.fullmatch(stat):
                raise ValidationError("Period or Stat is not valid.")
            if asked["StartTime"].timestamp() % period or asked["EndTime"].timestamp() % period:
                raise ValidationError("Not refused by CloudWatch, but a period would be cut in two.")
        elif not query["Expression"].startswith(("SELECT", "SEARCH")):
            _parsed(query, ids, orders)


def _parsed(query: Json, ids: list[str], orders: Json) -> ast.expr:
    where = "an expression" if orders.get("silent") else f"expression '{query['Id']}'"
    try:
        parsed = ast.parse(query["Expression"], mode="eval").body
    except SyntaxError:
        raise ValidationError(f"Error in {where}: Invalid syntax") from None
    for node in ast.walk(parsed):
        if isinstance(node, ast.Name) and node.id not in ids:
            raise ValidationError(f"Error in {where}: The name {node.id} is not known")
        if isinstance(node, ast.Call):
            raise ValidationError(f"Error in {where}: Unsupported function")
    return parsed


class _Call:
    def __init__(self, response: CloudWatchResponse, asked: Json, orders: Json) -> None:
        self.backend, self.asked, self.orders = response.cloudwatch_backend, asked, orders
        self.queries = asked["MetricDataQueries"]
        self.known = {result["id"]: result for result in self.ask([q for q in self.queries if "MetricStat" in q])}

    def ask(self, queries: list[Json]) -> list[Json]:
        """Ask moto itself."""
        shown = [{**query, "ReturnData": True} for query in queries]
        window = {"start_time": self.asked["StartTime"], "end_time": self.asked["EndTime"]}
        found: list[Json] = self.backend.get_metric_data(**window, queries=shown, scan_by="TimestampDescending")
        return found

    def results(self) -> Iterator[Json]:
        for query in self.queries:
            if query.get("ReturnData", True):
                expression = query.get("Expression", "")
                if "MetricStat" in query:
                    yield {**self.known[query["Id"]], "name": query["MetricStat"]["Metric"]["MetricName"]}
                elif expression.startswith("SELECT"):
                    yield from self.ask([query])
                elif found := _SEARCH.fullmatch(expression):
                    yield from self.searched(query, *found.groups())
                else:
                    yield self.computed(query)

    def searched(self, query: Json, schema: str, metric: str, stat: str, period: str) -> Iterator[Json]:
        namespace, *names = schema.split(",")
        data = [each for each in self.backend.metric_data if (each.namespace, each.name) == (namespace, metric)]
        keys = {tuple(sorted((one.name, one.value) for one in each.dimensions)) for each in data}
        for key in sorted(key for key in keys if {name for name, _ in key} == set(names)):
            dimensions = [{"Name": name, "Value": value} for name, value in key]
            wanted = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
            asked = {"Id": query["Id"], "MetricStat": {"Metric": wanted, "Period": int(period), "Stat": stat}}
            label = _label(query.get("Label"), dict(key))
            yield from ({**found, "label": label, "name": metric} for found in self.ask([asked]))

    def computed(self, query: Json) -> Json:
        parsed = _parsed(query, list(self.known), self.orders)
        used = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
        points = {
            name: dict(zip(self.known[name]["timestamps"], self.known[name]["values"], strict=True)) for name in used
        }
        times = sorted(set.intersection(*(set(each) for each in points.values())), reverse=True)
        values = {}
        for at in times:
            try:
                values[at] = _value(parsed, {name: float(each[at]) for name, each in points.items()})
            except ZeroDivisionError:  # CloudWatch leaves such a value out
                continue
        return {"id": query["Id"], "label": query["Id"], "timestamps": list(values), "values": list(values.values())}


def _label(wanted: str | None, dimensions: dict[str, str]) -> str:
    return _PROPERTY.sub(lambda found: dimensions[found[1]], wanted) if wanted else " ".join(dimensions.values())


def _value(node: ast.expr, names: dict[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name():
            return names[node.id]
        case ast.BinOp():
            return _SUMS[type(node.op)](_value(node.left, names), _value(node.right, names))
    raise ValidationError("Unsupported operand")


def _page(asked: Json, results: list[Json], points: int | None) -> Json:
    """Give so many values of each series, and a token while there are more."""
    if not points:
        return {"MetricDataResults": results}
    first = int(asked.get("NextToken") or 0)
    longest = max((len(result["values"]) for result in results), default=0)
    is_last = first + points >= longest
    shown = [
        {
            **result,
            "values": result["values"][first : first + points],
            "timestamps": result["timestamps"][first : first + points],
            "status_code": result["status_code"] if is_last else "PartialData",
        }
        for result in results
    ]
    return {"MetricDataResults": shown, **({} if is_last else {"NextToken": str(first + points)})}


if __name__ == "__main__":
    ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = admission
    TokenResponse.assume_role_with_web_identity = assume_role_with_web_identity
    Statistics.get_statistics_for_type = statistic
    CloudWatchResponse.get_metric_data = get_metric_data
    main(["--host", "127.0.0.1", "--port", sys.argv[1]])
