"""How old is a number? An instant query answers with the time of asking, so the samples' own times are asked for too.

``x`` is asked for together with ``timestamp(x)``, ``sum by (a) (x)`` with ``min by (a) (timestamp(x))``: the oldest
that went into each sum. Of any other expression we ask how long ago the quietest of its inputs was heard of.
"""

from typing import Final

from adapter.rules.promql.lexer import PromqlError, Token, VectorSelector, tokens, vector_selectors

MARK: Final = "__steadyscale__"
"""The label that tells numbers and times apart in one answer."""

VALUE: Final = "value"
TIME: Final = "time"

_KEEP_SERIES: Final = frozenset({"sum", "min", "max", "avg", "group", "count", "stddev", "stdvar"})
_CLAUSES: Final = frozenset({"by", "without"})
_RANGE_FUNCTIONS: Final = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets"})


def timed(text: str) -> str | None:
    """Return the expression that answers with numbers and times; None if this one reads no series or is not clear."""
    try:
        selectors = vector_selectors(text)
        if not selectors:
            return None
        times = _times(text, tokens(text), selectors) or _quietest(text, selectors)
    except PromqlError:
        return None
    # A line of its own for the expression: it may end in a comment.
    return f'label_replace(\n{text}\n,"{MARK}","{VALUE}","","") or label_replace({times},"{MARK}","{TIME}","","")'


def _times(text: str, found: list[Token], selectors: list[VectorSelector]) -> str | None:
    """Return the times series by series, for the plain forms: one selector, its rate, an aggregation of these."""
    if len(selectors) != 1 or text[selectors[0].start] == "{":
        return None  # without one name, two series could have the same labels but for it
    only = selectors[0]
    before = [token.text for token in found if token.end <= only.start]
    after = [token.text for token in found if token.start >= only.end]
    inner = f"timestamp({text[only.start : only.end]})"
    return _wrapped(inner, before, after)


def _wrapped(inner: str, before: list[str], after: list[str]) -> str | None:
    """Wrap the times as the selector is wrapped, from the inside out."""
    if after[:1] == ["["] and before[-2:-1] and (before[-2] in _RANGE_FUNCTIONS or before[-2].endswith("_over_time")):
        if before[-1] != "(" or after[2:4] != ["]", ")"]:
            return None
        before, after = before[:-2], after[4:]
    while before or after:
        if before[-1:] != ["("] or after[:1] != [")"]:
            return None
        before, after = before[:-1], after[1:]
        clause, before, after = _clause(before, after)
        if before and before[-1].lower() in _KEEP_SERIES:
            inner, before = f"min {clause}({inner})", before[:-1]
        elif clause:
            return None
    return inner


def _clause(before: list[str], after: list[str]) -> tuple[str, list[str], list[str]]:
    """Take an aggregation's ``by (…)`` from before or after its parentheses."""
    if after[:1] and after[0].lower() in _CLAUSES and ")" in after:
        end = after.index(")") + 1
        return f"{' '.join(after[:end])} ", before, after[end:]
    if before[-1:] == [")"]:
        start = len(before) - 1 - before[::-1].index("(")
        if start and before[start - 1].lower() in _CLAUSES:
            return f"{' '.join(before[start - 1 :])} ", before[: start - 1], after
    return "", before, after


def _quietest(text: str, selectors: list[VectorSelector]) -> str:
    inputs = dict.fromkeys(text[each.start : each.end] for each in selectors)
    heard = (f'label_replace(max(timestamp({each})),"{MARK}","{number}","","")' for number, each in enumerate(inputs))
    return f"min({' or '.join(heard)})"
