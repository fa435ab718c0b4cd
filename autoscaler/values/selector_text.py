"""Parser for selector texts, the query language of `kubectl -l`.

Like upstream's parser it is lenient: `in` and `notin` are also valid keys and values, a list of values may contain
empty entries, and `a=` requires the empty value.
"""

import re
from typing import Final, NamedTuple

from autoscaler.values.requirement import (
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_EQUALS,
    NOT_IN,
    Requirement,
    SelectorError,
    key_problem,
    make_requirement,
)

_OPERATORS: Final = {">": GREATER_THAN, "<": LESS_THAN} | {
    sign: sign for sign in (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS)
}

# Like upstream: a NUL directly after a token is skipped, any other NUL ends the text.
_TOKEN: Final = re.compile(r"[ \t\r\n]*+(?:(==|!=|[=!(),<>])|([^\0 \t\r\n=!(),<>]++))\0?+")


class _Token(NamedTuple):
    text: str
    is_word: bool

    @property
    def starts_requirement(self) -> bool:
        return self.is_word or self.text == "!"

    @property
    def ends_requirement(self) -> bool:
        return self.text in {"", ","}


class _Tokens:
    """The remaining tokens; after the last one, tokens are empty."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.next = self._scan()

    def take(self) -> _Token:
        taken, self.next = self.next, self._scan()
        return taken

    def _scan(self) -> _Token:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            return _Token("", is_word=False)
        self._position = match.end()
        symbol, word = match.groups()
        return _Token(symbol or word, is_word=word is not None)


def parse_requirements(text: str, max_requirements: int | None = None) -> list[Requirement]:
    """Parse the requirements in the order of the text; raise SelectorError if the text is invalid.

    A text with more than ``max_requirements`` is not parsed further; Kubernetes has no such limit.
    """
    tokens = _Tokens(text)
    requirements: list[Requirement] = []
    while tokens.next.starts_requirement:
        if len(requirements) == max_requirements:
            raise SelectorError(f"it has more than {max_requirements} requirements: use fewer labels")
        try:
            requirements.append(_requirement(tokens))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        if not _take_comma(tokens):
            return requirements
    if tokens.next.text:
        raise SelectorError(f"found '{tokens.next.text}', expected: !, identifier, or 'end of string'")
    return requirements


def _take_comma(tokens: _Tokens) -> bool:
    """Consume the separator; return whether another requirement follows."""
    separator = tokens.take()
    if not separator.text:
        return False
    if separator.text != ",":
        raise SelectorError(f"found '{separator.text}', expected: ',' or 'end of string'")
    if not tokens.next.starts_requirement:
        raise SelectorError(f"found '{tokens.next.text}', expected: identifier after ','")
    return True


def _requirement(tokens: _Tokens) -> Requirement:
    negated = tokens.next.text == "!"
    if negated:
        tokens.take()
    key = tokens.take()
    if not key.is_word:
        raise SelectorError(f"found '{key.text}', expected: identifier")
    if problem := key_problem(key.text, "<nil>"):
        raise SelectorError(problem)
    if negated:
        return make_requirement(key.text, DOES_NOT_EXIST, ())
    if tokens.next.ends_requirement:
        return make_requirement(key.text, EXISTS, ())
    sign = tokens.take().text
    if sign not in _OPERATORS:
        raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
    values = _values(tokens) if sign in {IN, NOT_IN} else {_exact_value(tokens)}
    return make_requirement(key.text, _OPERATORS[sign], tuple(sorted(values)))


def _exact_value(tokens: _Tokens) -> str:
    if tokens.next.ends_requirement:
        return ""
    value = tokens.take()
    if not value.is_word:
        raise SelectorError(f"found '{value.text}', expected: identifier")
    return value.text


def _values(tokens: _Tokens) -> set[str]:
    opening = tokens.take()
    if opening.text != "(":
        raise SelectorError(f"found '{opening.text}' expected: '('")
    if tokens.next.text == ")":
        tokens.take()
        return {""}
    if not tokens.next.is_word and tokens.next.text != ",":
        raise SelectorError(f"found '{tokens.next.text}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while (token := tokens.take()).text != ")":
        values |= _listed(token, tokens.next, first=not values)
    return values


def _listed(token: _Token, following: _Token, *, first: bool) -> set[str]:
    """Return the values of one token of a list: the word itself, or the empty value next to a comma."""
    if token.is_word:
        if following.text not in {",", ")"} or following.is_word:
            raise SelectorError(f"found '{following.text}', expected: ',' or ')'")
        return {token.text}
    if token.text != ",":
        raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
    return {""} if first or following.text in {",", ")"} else set()
