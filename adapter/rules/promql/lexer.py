"""Just enough PromQL to find every place in an expression that reads series, and to add matchers there.

The expression is cut into tokens as Prometheus' lexer does, so that a brace in a string or a comment is never taken
for one that counts. What could be read in two ways is refused: a matcher that was not added would be a hole. So is a
comment with a carriage return in it: to Prometheus it ends there, to others with the line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>\#[^\r\n]*(?=\r?(?:\n|\Z)))
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
      | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?(?:\d+(?:ms|[smhdwy]))*)
      | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
      | (?P<sign>=~|!~|==|!=|<=|>=|[-+*/%^=<>(){}\[\],:@])""",
    re.VERBOSE | re.ASCII,
)
_AGGREGATIONS: Final = re.compile(
    r"sum|min|max|avg|group|stddev|stdvar|count|count_values|bottomk|topk|quantile|limitk|limit_ratio", re.IGNORECASE
)
_LABEL_LISTS: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_AFTER_VECTOR: Final = frozenset({"and", "or", "unless", "atan2", "offset", "group_left", "group_right"})
_COMPARISONS: Final = frozenset({"==", "!=", "<=", ">=", "<", ">"})
_ENDS: Final = frozenset(")}]")
_CONSTANTS: Final = frozenset({"inf", "nan"})
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_LONGEST_SHOWN: Final = 40


class PromqlError(ValueError):
    """The expression cannot be read with certainty."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression and where it is."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the next one may start."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class VectorSelector:
    """One place that reads series: a name, matchers in braces, or both."""

    start: int
    end: int
    opening: int | None
    """Where its brace opens; None: it has a name alone."""

    is_range: bool = False
    """Whether a range follows, as in ``x[5m]``."""


def tokens(text: str) -> list[Token]:
    """Cut an expression into its tokens, without spaces and comments; raise ``PromqlError`` at what is none."""
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise PromqlError(f"unexpected text: {text[at : at + _LONGEST_SHOWN]!r}")
        if match.lastgroup not in {"space", "comment"}:
            found.append(Token(match.lastgroup, match.group(), at))
        at = match.end()
    _check_brackets(found)
    return found


def vector_selectors(text: str) -> list[VectorSelector]:
    """List every place of an expression that reads series, in order."""
    return list(_selectors(tokens(text)))


def with_matchers(text: str, matchers: Sequence[str]) -> str:
    """Return the expression with these matchers added wherever it reads series; no other series can then be in it."""
    added, parts, done = ",".join(matchers), [], 0
    if not added:
        return text
    for selector in vector_selectors(text):
        # Added in front: a trailing comma of the user's stays where it is allowed.
        at = selector.end if selector.opening is None else selector.opening + 1
        is_empty = selector.opening is not None and not tokens(text[at : selector.end - 1])
        inside = f"{{{added}}}" if selector.opening is None else added if is_empty else f"{added},"
        parts.append(text[done:at] + inside)
        done = at
    return "".join(parts) + text[done:]


def _selectors(found: list[Token]) -> Iterator[VectorSelector]:
    at = 0
    while at < len(found):
        token, following = found[at], _text(found, at + 1)
        if token.text == "{":
            closing = _closing(found, at)
            yield _selector(found, at, at, closing)
            at = closing
        elif token.text == "[":
            at = _closing(found, at)
        elif token.kind == "name":
            reads = _reads_series(found[at - 1] if at else None, token, following)
            at = _past_list(found, at)
            if reads:
                closing = _closing(found, at + 1) if following == "{" else at
                yield _selector(found, at, at + 1 if following == "{" else None, closing)
                at = closing
        at += 1


def _past_list(found: list[Token], at: int) -> int:
    """Return where a clause such as ``by (a, b)`` ends; its names are labels."""
    if found[at].text.lower() in _LABEL_LISTS and _text(found, at + 1) == "(":
        return _closing(found, at + 1)
    return at


def _reads_series(before: Token | None, token: Token, following: str) -> bool:
    name = token.text.lower()
    if name in _AFTER_VECTOR or name == "bool":
        _check_place(before, token)
        return False
    if name in _LABEL_LISTS and following != "(":
        raise PromqlError(f"{token.text!r} without a list of labels")
    is_called = following == "("
    is_aggregation = _AGGREGATIONS.fullmatch(name) is not None and following.lower() in {"by", "without"}
    return not (is_called or is_aggregation or name in _CONSTANTS)


def _check_place(before: Token | None, token: Token) -> None:
    """Refuse such a word where Prometheus would take it for the name of a metric."""
    if token.text.lower() == "bool":
        fits = before is not None and before.text in _COMPARISONS
    else:
        fits = before is not None and _ends_an_operand(before)
    if not fits:
        raise PromqlError(f"{token.text!r} as the name of a metric; write {{__name__={token.text!r}}} instead")


def _ends_an_operand(token: Token) -> bool:
    if token.kind == "name":
        return token.text.lower() not in _AFTER_VECTOR
    return token.kind != "sign" or token.text in _ENDS


def _selector(found: list[Token], first: int, brace: int | None, last: int) -> VectorSelector:
    is_range = _text(found, last + 1) == "["
    return VectorSelector(
        start=found[first].start,
        end=found[last].end,
        opening=None if brace is None else found[brace].start,
        is_range=is_range,
    )


def _closing(found: list[Token], at: int) -> int:
    depth, opening = 0, found[at].text
    for position in range(at, len(found)):
        depth += (found[position].text == opening) - (found[position].text == _OPENING[opening])
        if not depth:
            return position
    raise PromqlError(f"{opening!r} is never closed")  # pragma: no cover - tokens() has made sure


def _check_brackets(found: list[Token]) -> None:
    expected: list[str] = []
    for token in found:
        if token.kind != "sign":
            continue
        if token.text in _OPENING:
            expected.append(_OPENING[token.text])
        elif token.text in _OPENING.values() and (not expected or expected.pop() != token.text):
            raise PromqlError(f"{token.text!r} closes nothing")
    if expected:
        raise PromqlError(f"{expected[-1]!r} is missing")


def _text(found: list[Token], at: int) -> str:
    return found[at].text if at < len(found) and found[at].kind != "string" else ""
