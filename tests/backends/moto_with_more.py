"""A program that runs moto's server with additional features of CloudWatch and STS.

    python tests/backends/moto_with_more.py PORT FOLDER

Added to GetMetricData: validation by the documentation, SEARCH with dynamic labels, arithmetic, percentiles, pages and
the status of single metrics. Added to STS: the token of a web identity must be that of FOLDER/web-identity-token. Every
GetMetricData request is appended to FOLDER/requests.jsonl. FOLDER/behaviour.json changes the responses: ``points``
(values per page), ``status`` and ``messages`` (by metric name), ``all_messages``, ``anonymous_errors`` (do not name the
invalid expression).
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
_WRITE_LOCK = threading.Lock()
_ID = re.compile(r"[a-z][A-Za-z0-9_]{0,254}")
_SEARCH = re.compile(r"""SEARCH\('\{([^}]*)\} MetricName="([^"]+)"', '(\w+)', (\d+)\)""")
_PROPERTY = re.compile(r"\$\{PROP\('Dim\.([^']+)'\)\}")
_STATISTIC = re.compile(r"Average|Sum|Minimum|Maximum|SampleCount|p\d+(\.\d+)?|tm\d+")
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Json = dict[str, Any]
_moto_statistic = Statistics.get_statistics_for_type
_moto_web_identity = TokenResponse.assume_role_with_web_identity
_moto_authenticate = ActionAuthenticatorMixin._authenticate_and_authorize_normal_action


def statistic(self: Statistics, stat: str) -> Any:
    if not stat.startswith("p"):
        return _moto_statistic(self, stat)
    values = sorted(self.metric_single_values_list)
    return values[max(0, math.ceil(float(stat[1:]) / 100 * len(values)) - 1)]


def authenticate(self: Any, resource: str = "*") -> None:
    """Skip the signature check for AssumeRoleWithWebIdentity, whose requests are not signed."""
    if not (isinstance(self, TokenResponse) and self._get_action() == "AssumeRoleWithWebIdentity"):
        _moto_authenticate(self, resource)


def assume_role_with_web_identity(self: TokenResponse) -> ActionResult:
    if self._get_param("WebIdentityToken") != (FOLDER / "web-identity-token").read_text():
        raise InvalidIdentityToken
    return _moto_web_identity(self)


class InvalidIdentityToken(STSClientError):
    code = "InvalidIdentityToken"
    message = "The token is not valid"


def get_metric_data(self: CloudWatchResponse) -> ActionResult:
    request = self._get_params()
    behaviour = _behaviour()
    with _WRITE_LOCK, (FOLDER / "requests.jsonl").open("a") as log:
        log.write(json.dumps(request, default=str) + "\n")
    _validate(request, behaviour)
    results = list(_Request(self, request, behaviour).results())
    for result in results:
        name = result.pop("name", result["label"])
        result["status_code"] = behaviour.get("status", {}).get(name, "Complete")
        result["messages"] = behaviour.get("messages", {}).get(name, [])
    page = _page(request, results, behaviour.get("points"))
    return ActionResult({**page, "Messages": behaviour.get("all_messages", [])})


def _behaviour() -> Json:
    file = FOLDER / "behaviour.json"
    return json.loads(file.read_text()) if file.exists() else {}


def _validate(request: Json, behaviour: Json) -> None:
    queries = request["MetricDataQueries"]
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
            if request["StartTime"].timestamp() % period or request["EndTime"].timestamp() % period:
                raise ValidationError(
                    "The time range is not aligned to the period, which only CloudWatch itself accepts."
                )
        elif not query["Expression"].startswith(("SELECT", "SEARCH")):
            _parse(query, ids, behaviour)


def _parse(query: Json, ids: list[str], behaviour: Json) -> ast.expr:
    where = "an expression" if behaviour.get("anonymous_errors") else f"expression '{query['Id']}'"
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


class _Request:
    def __init__(self, response: CloudWatchResponse, request: Json, behaviour: Json) -> None:
        self.backend, self.request, self.behaviour = response.cloudwatch_backend, request, behaviour
        self.queries = request["MetricDataQueries"]
        self.metrics = {result["id"]: result for result in self.fetch([q for q in self.queries if "MetricStat" in q])}

    def fetch(self, queries: list[Json]) -> list[Json]:
        """Fetch queries from moto."""
        returned = [{**query, "ReturnData": True} for query in queries]
        window = {"start_time": self.request["StartTime"], "end_time": self.request["EndTime"]}
        results: list[Json] = self.backend.get_metric_data(**window, queries=returned, scan_by="TimestampDescending")
        return results

    def results(self) -> Iterator[Json]:
        for query in self.queries:
            if query.get("ReturnData", True):
                expression = query.get("Expression", "")
                if "MetricStat" in query:
                    yield {**self.metrics[query["Id"]], "name": query["MetricStat"]["Metric"]["MetricName"]}
                elif expression.startswith("SELECT"):
                    yield from self.fetch([query])
                elif found := _SEARCH.fullmatch(expression):
                    yield from self.searched(query, *found.groups())
                else:
                    yield self.computed(query)

    def searched(self, query: Json, schema: str, metric: str, stat: str, period: str) -> Iterator[Json]:
        namespace, *names = schema.split(",")
        data = [each for each in self.backend.metric_data if (each.namespace, each.name) == (namespace, metric)]
        keys = {
            tuple(sorted((str(dimension.name), str(dimension.value)) for dimension in each.dimensions)) for each in data
        }
        for key in sorted(key for key in keys if {name for name, _ in key} == set(names)):
            dimensions = [{"Name": name, "Value": value} for name, value in key]
            metric_id = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
            metric_query = {"Id": query["Id"], "MetricStat": {"Metric": metric_id, "Period": int(period), "Stat": stat}}
            label = _label(query.get("Label"), dict(key))
            yield from ({**result, "label": label, "name": metric} for result in self.fetch([metric_query]))

    def computed(self, query: Json) -> Json:
        parsed = _parse(query, list(self.metrics), self.behaviour)
        used = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
        points = {
            name: dict(zip(self.metrics[name]["timestamps"], self.metrics[name]["values"], strict=True))
            for name in used
        }
        times = sorted(set.intersection(*(set(each) for each in points.values())), reverse=True)
        values = {}
        for time in times:
            try:
                values[time] = _value(parsed, {name: float(each[time]) for name, each in points.items()})
            except ZeroDivisionError:  # CloudWatch omits such a value
                continue
        return {"id": query["Id"], "label": query["Id"], "timestamps": list(values), "values": list(values.values())}


def _label(template: str | None, dimensions: dict[str, str]) -> str:
    return _PROPERTY.sub(lambda match: dimensions[match[1]], template) if template else " ".join(dimensions.values())


def _value(node: ast.expr, names: dict[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name():
            return names[node.id]
        case ast.BinOp():
            return _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names))
        case _:
            raise ValidationError("Unsupported operand")


def _page(request: Json, results: list[Json], points: int | None) -> Json:
    """Return so many values of each series, and a token while there are more."""
    if not points:
        return {"MetricDataResults": results}
    first = int(request.get("NextToken") or 0)
    length = max((len(result["values"]) for result in results), default=0)
    is_last = first + points >= length
    page = [
        {
            **result,
            "values": result["values"][first : first + points],
            "timestamps": result["timestamps"][first : first + points],
            "status_code": result["status_code"] if is_last else "PartialData",
        }
        for result in results
    ]
    return {"MetricDataResults": page, **({} if is_last else {"NextToken": str(first + points)})}


if __name__ == "__main__":
    ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = authenticate  # type: ignore[method-assign]
    TokenResponse.assume_role_with_web_identity = assume_role_with_web_identity  # type: ignore[method-assign]
    Statistics.get_statistics_for_type = statistic  # type: ignore[method-assign]
    CloudWatchResponse.get_metric_data = get_metric_data  # type: ignore[method-assign]
    main(["--host", "127.0.0.1", "--port", sys.argv[1]])
