"""Extension of PromQL expressions so that the response also contains the timestamps of the underlying samples.

An instant query returns the evaluation time as the timestamp of every result. Therefore ``x`` is queried together with
``timestamp(x)``, and ``sum by (a) (x)`` together with ``min by (a) (timestamp(x))``, the oldest sample of each group.
For any other expression, the newest timestamp of each input is queried, and the oldest of these applies.
"""

from typing import Final

from adapter.rules.promql import expression as tree
from adapter.rules.promql.errors import PromqlError
from adapter.rules.promql.parser import parse
from adapter.rules.promql.printer import clause_text, to_text

KIND_LABEL: Final = "__steadyscale__"  # the label that distinguishes values from timestamps in a response
VALUE_KIND: Final = "value"
TIMESTAMP_KIND: Final = "time"

_AGGREGATIONS: Final = frozenset({"sum", "min", "max", "avg", "group", "count", "stddev", "stdvar"})
_RANGE_FUNCTIONS: Final = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets"})


def with_timestamps(text: str) -> str | None:
    """Return the expression that yields values and timestamps; None if it reads no series or is not PromQL.

    The values are queried with the text as it is, because a server may support more than PromQL.
    """
    try:
        expression = parse(text)
    except PromqlError:
        return None
    selectors = tree.vector_selectors(expression)
    if not selectors:
        return None
    timestamps = _timestamps_by_series(expression) or _oldest_input(selectors)
    # The expression gets a line of its own, because it may end in a comment.
    values = f'label_replace(\n{text}\n,"{KIND_LABEL}","{VALUE_KIND}","","")'
    return f'{values} or label_replace({timestamps},"{KIND_LABEL}","{TIMESTAMP_KIND}","","")'


def _timestamps_by_series(expression: tree.Expression) -> str | None:
    """Return the timestamps per series if the expression is one selector, its rate, or an aggregation of these."""
    match expression:
        case tree.AggregateExpression(operator, operand, None, clause) if operator in _AGGREGATIONS:
            inner = _timestamps_by_series(operand)
            return inner and f"min {clause_text(clause) if clause else ''}({inner})"
        case tree.FunctionCall(function, (tree.VectorSelector(name, range=range_) as selector,)) if range_ is not None:
            is_over_time = function in _RANGE_FUNCTIONS or function.endswith("_over_time")
        case tree.VectorSelector(name, range=None) as selector:
            is_over_time = True
        case _:
            return None
    # Without a metric name, two series could differ in the name only, which timestamp() drops.
    is_simple = is_over_time and name and selector.time == tree.TimeModifiers()
    return _timestamp(selector) if is_simple else None


def _oldest_input(selectors: list[tree.VectorSelector]) -> str:
    inputs = dict.fromkeys(map(_timestamp, selectors))
    newest = (f'label_replace(max({each}),"{KIND_LABEL}","{number}","","")' for number, each in enumerate(inputs))
    return f"min({' or '.join(newest)})"


def _timestamp(selector: tree.VectorSelector) -> str:
    """Return the timestamps of the newest samples, without the selector's range and time modifiers."""
    return f"timestamp({to_text(tree.VectorSelector(selector.name, selector.matchers))})"
