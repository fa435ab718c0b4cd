"""Lexer for templates: splits a template into text and actions, and actions into tokens."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
      | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?))
      | (?P<variable>\$\w*)
      | (?P<field>\.\w+)
      | (?P<word>\w+)
      | (?P<sign>:=|[=|(),.])""",
    re.VERBOSE,
)
_OPEN, _CLOSE = "<<", ">>"
_COMMENT: Final = re.compile(r"(?:-\s)?\s*/\*.*?\*/\s*(?:\s-)?>>", re.DOTALL)


class TemplateError(ValueError):
    """The template cannot be parsed or rendered."""


class TemplateToken(NamedTuple):
    """A token of an action. ``adjacent``: no space separates it from the previous token."""

    kind: str
    text: str
    adjacent: bool = False


def split(template: str) -> Iterator[str | list[TemplateToken]]:
    """Yield literal text and the tokens of each action, in order."""
    position, trim = 0, False
    while True:
        opening = template.find(_OPEN, position)
        text = template[position:] if opening < 0 else template[position:opening]
        if trim:
            text = text.lstrip()
        if opening < 0:
            yield text
            return
        inside = opening + len(_OPEN)
        starts_trimmed = re.match(r"-\s", template[inside:]) is not None
        yield text.rstrip() if starts_trimmed else text
        if comment := _COMMENT.match(template, inside):
            position, trim = comment.end(), comment.group().endswith("->>")
            continue
        tokens, position, trim = _action(template, inside + (2 if starts_trimmed else 0))
        yield tokens


def _action(template: str, position: int) -> tuple[list[TemplateToken], int, bool]:
    """Return the tokens of an action, the position after it, and whether to trim whitespace there."""
    tokens: list[TemplateToken] = []
    spaced = True
    while position < len(template):
        if template.startswith(_CLOSE, position):
            return tokens, position + len(_CLOSE), False
        if template.startswith("-" + _CLOSE, position) and spaced and tokens:
            return tokens, position + len(_CLOSE) + 1, True
        match = _TOKEN.match(template, position)
        if match is None or match.lastgroup is None:
            raise TemplateError(f"unexpected {template[position : position + 10]!r} in an action")
        spaced = match.lastgroup == "space"
        if not spaced:
            follows = match.start() and not template[match.start() - 1].isspace() and bool(tokens)
            tokens.append(TemplateToken(match.lastgroup, match.group(), adjacent=bool(follows)))
        position = match.end()
    raise TemplateError(f"unclosed action: {_CLOSE} is missing")
