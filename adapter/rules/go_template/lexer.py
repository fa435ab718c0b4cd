"""Lexer for templates: splits a template into text and actions, and actions into tokens."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OPENING: Final = re.compile(r"<<(?P<trim>-(?=\s))?")  # ``<<-`` and ``->>`` trim the whitespace around the action
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<close>(?<=\s)->>\s*|>>)
      | (?P<comment>/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
      | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?))
      | (?P<variable>\$\w*)
      | (?P<field>\.\w+)
      | (?P<word>\w+)
      | (?P<sign>:=|[=|(),.])""",
    re.VERBOSE | re.DOTALL,
)


class TemplateError(ValueError):
    """The template cannot be parsed or rendered."""


class TemplateToken(NamedTuple):
    """A token of an action. ``adjacent``: no space separates it from the previous token."""

    kind: str
    text: str
    adjacent: bool = False


def split(template: str) -> Iterator[str | list[TemplateToken]]:
    """Yield literal text and the tokens of each action, in order."""
    position = 0
    while opening := _OPENING.search(template, position):
        text = template[position : opening.start()]
        yield text.rstrip() if opening["trim"] else text
        action, position = _action(template, opening.end())
        if any(token.kind != "comment" for token in action) or not action:
            yield action
    yield template[position:]


def _action(template: str, position: int) -> tuple[list[TemplateToken], int]:
    """Return the tokens of an action and the position after it."""
    tokens: list[TemplateToken] = []
    while match := _TOKEN.match(template, position):
        if match.lastgroup == "close":
            return tokens, match.end()
        if match.lastgroup != "space":
            is_adjacent = bool(tokens) and not template[position - 1].isspace()
            tokens.append(TemplateToken(str(match.lastgroup), match.group(), is_adjacent))
        position = match.end()
    if position < len(template):
        raise TemplateError(f"unexpected {template[position : position + 10]!r} in an action")
    raise TemplateError("unclosed action: >> is missing")
