"""The part of PromQL that MetricsQL, the query language of VictoriaMetrics, reads as Prometheus does."""

import re
from collections.abc import Iterator
from typing import Final

from adapter.rules.promql import expression as tree
from adapter.rules.promql.errors import PromqlError

_FUNCTIONS: Final = """
abs absent absent_over_time acos acosh asin asinh atan atanh avg_over_time ceil changes clamp clamp_max clamp_min cos
cosh count_over_time day_of_month day_of_week day_of_year days_in_month deg delta deriv exp floor histogram_quantile
hour idelta increase irate label_join label_replace last_over_time ln log10 log2 max_over_time min_over_time minute
month pi predict_linear present_over_time quantile_over_time rad rate resets round scalar sgn sin sinh sort sort_desc
sqrt stddev_over_time stdvar_over_time sum_over_time tan tanh time timestamp vector year
"""
_AGGREGATIONS: Final = "avg bottomk count count_values group max min quantile stddev stdvar sum topk"
_COMMON_NAMES: Final = frozenset(f"{_FUNCTIONS} {_AGGREGATIONS}".split())
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SPECIAL_LABELS: Final = frozenset({"__graphite__", "vm_account_id", "vm_project_id"})


def check_common_subset(expression: tree.Expression) -> None:
    """Raise ``PromqlError`` if MetricsQL does not have a part of the expression, or reads it differently."""
    for each in tree.walk(expression):
        for problem in _problems(each):
            raise PromqlError(f"{problem}, which is not supported on a backend with dialect MetricsQL")


def _problems(expression: tree.Expression) -> Iterator[str]:
    labels: list[str] = []
    match expression:
        case tree.FunctionCall(name) | tree.AggregateExpression(name) if name not in _COMMON_NAMES:
            yield f"uses {name}()"
        case tree.AggregateExpression(clause=tree.LabelClause(labels=names)):
            labels += names
        case tree.BinaryExpression(clauses=clauses, fill=fill):
            labels += (label for clause in clauses for label in clause.labels)
            if fill:
                yield "uses fill modifiers"
        case tree.VectorSelector(matchers=matchers):
            labels += (matcher.label for matcher in matchers)
            if sum(each.label == tree.NAME_LABEL and each.operator == "=" for each in matchers) > 1:
                yield "has a selector with two metric names"
        case _:
            pass
    for label in labels:
        if not _LABEL.fullmatch(label) or label in _SPECIAL_LABELS:
            yield f"uses the label {label!r}"
