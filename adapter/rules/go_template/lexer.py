"""A template's text and its actions, apart; and an action's tokens."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from adapter.rules.go_template.nodes import TemplateError

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


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an action. ``glued``: nothing stands between it and the one before."""

    kind: str
    text: str
    glued: bool = False


def pieces(template: str) -> Iterator[str | list[Token]]:
    """Yield the text that is copied and the tokens of each action, in order."""
    at, trim = 0, False
    while True:
        opening = template.find(_OPEN, at)
        text = template[at:] if opening < 0 else template[at:opening]
        if trim:
            text = text.lstrip()
        if opening < 0:
            yield text
            return
        inside = opening + len(_OPEN)
        starts_trimmed = re.match(r"-\s", template[inside:]) is not None
        yield text.rstrip() if starts_trimmed else text
        if comment := _COMMENT.match(template, inside):
            at, trim = comment.end(), comment.group().endswith("->>")
            continue
        found, at, trim = _action(template, inside + (2 if starts_trimmed else 0))
        yield found


def _action(template: str, at: int) -> tuple[list[Token], int, bool]:
    """Return an action's tokens, where the text after it starts, and whether space there is to be trimmed."""
    found: list[Token] = []
    spaced = True
    while at < len(template):
        if template.startswith(_CLOSE, at):
            return found, at + len(_CLOSE), False
        if template.startswith("-" + _CLOSE, at) and spaced and found:
            return found, at + len(_CLOSE) + 1, True
        match = _TOKEN.match(template, at)
        if match is None or match.lastgroup is None:
            raise TemplateError(f"unexpected {template[at : at + 10]!r} in an action")
        spaced = match.lastgroup == "space"
        if not spaced:
            follows = match.start() and not template[match.start() - 1].isspace() and bool(found)
            found.append(Token(match.lastgroup, match.group(), glued=bool(follows)))
        at = match.end()
    raise TemplateError(f"an action is not closed by {_CLOSE}")
