"""Detection of the vector selectors of a PromQL expression, and insertion of label matchers into them.

The expression is tokenized as Prometheus' lexer does, so that braces in strings and comments are ignored. Ambiguous
expressions are rejected, because a selector without the inserted matcher would expose series of other namespaces. A
comment that contains a carriage return is ambiguous: for Prometheus it ends there, for other servers at the newline.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

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
_LABEL_CLAUSES: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_KEYWORDS_AFTER_OPERAND: Final = frozenset({"and", "or", "unless", "atan2", "offset", "group_left", "group_right"})
_COMPARISONS: Final = frozenset({"==", "!=", "<=", ">=", "<", ">"})
_CLOSING_BRACKETS: Final = frozenset(")}]")
_CONSTANTS: Final = frozenset({"inf", "nan"})
_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}
_MAX_EXCERPT: Final = 40


class PromqlError(ValueError):
    """The expression is invalid or ambiguous."""


class PromqlToken(NamedTuple):
    """A token and its position in the expression."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class VectorSelector(NamedTuple):
    """A vector selector: a metric name, matchers in braces, or both."""

    start: int
    end: int
    opening: int | None
    """Position of the opening brace; None: the selector has no braces."""


def tokenize(text: str) -> list[PromqlToken]:
    """Return the tokens of an expression without whitespace and comments; raise ``PromqlError`` at invalid text."""
    tokens: list[PromqlToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise PromqlError(f"unexpected text: {text[position : position + _MAX_EXCERPT]!r}")
        if match.lastgroup not in {"space", "comment"}:
            tokens.append(PromqlToken(match.lastgroup, match.group(), position))
        position = match.end()
    _check_brackets(tokens)
    return tokens


def vector_selectors(text: str) -> list[VectorSelector]:
    return list(_selectors(tokenize(text)))


def add_matchers(text: str, matchers: Sequence[str]) -> str:
    """Return the expression with these matchers added to every vector selector."""
    added, parts, done = ",".join(matchers), [], 0
    if not added:
        return text
    for selector in vector_selectors(text):
        # Insert in front, so that a trailing comma stays at the end, where PromQL allows it.
        position = selector.end if selector.opening is None else selector.opening + 1
        is_empty = selector.opening is not None and not tokenize(text[position : selector.end - 1])
        inserted = f"{{{added}}}" if selector.opening is None else added if is_empty else f"{added},"
        parts.append(text[done:position] + inserted)
        done = position
    return "".join(parts) + text[done:]


def _selectors(tokens: list[PromqlToken]) -> Iterator[VectorSelector]:
    position = 0
    while position < len(tokens):
        token, following = tokens[position], _text(tokens, position + 1)
        if token.text == "{":
            closing = _closing(tokens, position)
            yield _selector(tokens, position, position, closing)
            position = closing
        elif token.text == "[":
            position = _closing(tokens, position)
        elif token.kind == "name":
            is_selector = _is_selector(tokens[position - 1] if position else None, token, following)
            position = _end_of_label_clause(tokens, position)
            if is_selector:
                closing = _closing(tokens, position + 1) if following == "{" else position
                yield _selector(tokens, position, position + 1 if following == "{" else None, closing)
                position = closing
        position += 1


def _end_of_label_clause(tokens: list[PromqlToken], position: int) -> int:
    """Return the end of a clause such as ``by (a, b)``, whose names are labels and not metrics."""
    if tokens[position].text.lower() in _LABEL_CLAUSES and _text(tokens, position + 1) == "(":
        return _closing(tokens, position + 1)
    return position


def _is_selector(before: PromqlToken | None, token: PromqlToken, following: str) -> bool:
    name = token.text.lower()
    if name in _KEYWORDS_AFTER_OPERAND or name == "bool":
        _check_keyword_position(before, token)
        return False
    if name in _LABEL_CLAUSES and following != "(":
        raise PromqlError(f"{token.text!r} requires a list of labels")
    is_called = following == "("
    is_aggregation = _AGGREGATIONS.fullmatch(name) is not None and following.lower() in {"by", "without"}
    return not (is_called or is_aggregation or name in _CONSTANTS)


def _check_keyword_position(before: PromqlToken | None, token: PromqlToken) -> None:
    """Reject a keyword in a position where Prometheus parses it as a metric name."""
    if token.text.lower() == "bool":
        is_valid = before is not None and before.text in _COMPARISONS
    else:
        is_valid = before is not None and _ends_an_operand(before)
    if not is_valid:
        raise PromqlError(
            f"{token.text!r} cannot be used as a metric name here; write {{__name__={token.text!r}}} instead"
        )


def _ends_an_operand(token: PromqlToken) -> bool:
    if token.kind == "name":
        return token.text.lower() not in _KEYWORDS_AFTER_OPERAND
    return token.kind != "sign" or token.text in _CLOSING_BRACKETS


def _selector(tokens: list[PromqlToken], first: int, brace: int | None, last: int) -> VectorSelector:
    return VectorSelector(tokens[first].start, tokens[last].end, None if brace is None else tokens[brace].start)


def _closing(tokens: list[PromqlToken], position: int) -> int:
    depth, opening = 0, tokens[position].text
    for index in range(position, len(tokens)):
        depth += (tokens[index].text == opening) - (tokens[index].text == _BRACKETS[opening])
        if not depth:
            return index
    raise PromqlError(f"{opening!r} is not closed")  # pragma: no cover - tokenize() checks brackets


def _check_brackets(tokens: list[PromqlToken]) -> None:
    expected: list[str] = []
    for token in tokens:
        if token.kind != "sign":
            continue
        if token.text in _BRACKETS:
            expected.append(_BRACKETS[token.text])
        elif token.text in _BRACKETS.values() and (not expected or expected.pop() != token.text):
            raise PromqlError(f"{token.text!r} has no opening bracket")
    if expected:
        raise PromqlError(f"{expected[-1]!r} is missing")


def _text(tokens: list[PromqlToken], position: int) -> str:
    return tokens[position].text if position < len(tokens) and tokens[position].kind != "string" else ""
