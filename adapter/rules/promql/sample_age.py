"""Extension of PromQL expressions so that the response also contains the timestamps of the underlying samples.

An instant query returns the evaluation time as the timestamp of every result. Therefore ``x`` is queried together with
``timestamp(x)``, and ``sum by (a) (x)`` together with ``min by (a) (timestamp(x))``, the oldest sample of each group.
For any other expression, the newest timestamp of each input is queried, and the oldest of these applies.
"""

from typing import Final

from adapter.rules.promql.lexer import PromqlError, PromqlToken, VectorSelector, tokenize, vector_selectors

KIND_LABEL: Final = "__steadyscale__"  # the label that distinguishes values from timestamps in a response
VALUE_KIND: Final = "value"
TIMESTAMP_KIND: Final = "time"

_AGGREGATIONS: Final = frozenset({"sum", "min", "max", "avg", "group", "count", "stddev", "stdvar"})
_CLAUSES: Final = frozenset({"by", "without"})
_RANGE_FUNCTIONS: Final = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets"})


def with_timestamps(text: str) -> str | None:
    """Return the expression that yields values and timestamps; None if it reads no series or is ambiguous."""
    try:
        selectors = vector_selectors(text)
        if not selectors:
            return None
        timestamps = _timestamps_by_series(text, tokenize(text), selectors) or _oldest_input(text, selectors)
    except PromqlError:
        return None
    # The expression gets a line of its own, because it may end in a comment.
    values = f'label_replace(\n{text}\n,"{KIND_LABEL}","{VALUE_KIND}","","")'
    return f'{values} or label_replace({timestamps},"{KIND_LABEL}","{TIMESTAMP_KIND}","","")'


def _timestamps_by_series(text: str, tokens: list[PromqlToken], selectors: list[VectorSelector]) -> str | None:
    """Return the timestamps per series if the expression is one selector, its rate, or an aggregation of these."""
    if len(selectors) != 1 or text[selectors[0].start] == "{":
        return None  # without a metric name, two series could differ in the name only, which timestamp() drops
    selector = selectors[0]
    before = [token.text for token in tokens if token.end <= selector.start]
    after = [token.text for token in tokens if token.start >= selector.end]
    return _wrap(f"timestamp({text[selector.start : selector.end]})", before, after)


def _wrap(inner: str, before: list[str], after: list[str]) -> str | None:
    """Apply the aggregations around the selector to the timestamps, from the inside out."""
    if after[:1] == ["["] and before[-2:-1] and (before[-2] in _RANGE_FUNCTIONS or before[-2].endswith("_over_time")):
        if before[-1] != "(" or after[2:4] != ["]", ")"]:
            return None
        before, after = before[:-2], after[4:]
    while before or after:
        if before[-1:] != ["("] or after[:1] != [")"]:
            return None
        before, after = before[:-1], after[1:]
        clause, before, after = _clause(before, after)
        if before and before[-1].lower() in _AGGREGATIONS:
            inner, before = f"min {clause}({inner})", before[:-1]
        elif clause:
            return None
    return inner


def _clause(before: list[str], after: list[str]) -> tuple[str, list[str], list[str]]:
    """Remove the ``by (…)`` clause of an aggregation, which may be before or after its parentheses."""
    if after[:1] and after[0].lower() in _CLAUSES and ")" in after:
        end = after.index(")") + 1
        return f"{' '.join(after[:end])} ", before, after[end:]
    if before[-1:] == [")"]:
        start = len(before) - 1 - before[::-1].index("(")
        if start and before[start - 1].lower() in _CLAUSES:
            return f"{' '.join(before[start - 1 :])} ", before[: start - 1], after
    return "", before, after


def _oldest_input(text: str, selectors: list[VectorSelector]) -> str:
    inputs = dict.fromkeys(text[each.start : each.end] for each in selectors)
    newest = (
        f'label_replace(max(timestamp({each})),"{KIND_LABEL}","{number}","","")' for number, each in enumerate(inputs)
    )
    return f"min({' or '.join(newest)})"
