"""String literals and comments of a PromQL expression.

The parser gets a number in place of each string literal. It would decode escapes differently from Prometheus, and it
compiles regular expressions, which takes a second for a few of the hostile ones.
"""

import re
from typing import Final

from adapter.rules.promql.errors import PromqlError

# Possessive quantifiers and the last alternative keep the time linear: the search ends at an unterminated string.
_LITERAL_OR_COMMENT: Final = re.compile(
    r"""(?P<string>"(?>(?:[^"\\\n]|\\.)*)"|'(?>(?:[^'\\\n]|\\.)*)'|`[^`]*+`)
      | (?P<comment>\#[^\r\n]*+)
      | ["'`](?s:.*+)""",
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-7]{3})|(?P<other>.))"
)
_CHARACTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_MAX_ASCII: Final = 0x7F
_SURROGATES: Final = range(0xD800, 0xE000)
_MAX_CHARACTER: Final = 0x10FFFF


def extract_strings(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without comments and with a number for each string literal, and the values of the literals."""
    values: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match["comment"] is not None:
            return " "
        if match["string"] is None:
            raise PromqlError("a string is not terminated")
        values.append(_decode(match["string"]))
        return f'"{len(values) - 1}"'

    return _LITERAL_OR_COMMENT.sub(replace, text), tuple(values)


def _decode(literal: str) -> str:
    quote, content = literal[0], literal[1:-1]
    if quote == "`":
        return content
    return _ESCAPE.sub(lambda match: _character(match, quote), content)


def _character(escape: re.Match[str], quote: str) -> str:
    if (other := escape["other"]) is not None:
        character = quote if other == quote else _CHARACTERS.get(other)
        if character is None:
            raise PromqlError(f"unknown escape sequence {escape[0]!r} in a string")
        return character
    is_byte = escape["x"] is not None or escape["octal"] is not None
    code = int(escape["octal"], 8) if escape["octal"] else int(escape["x"] or escape["u"] or escape["U"], 16)
    if (is_byte and code > _MAX_ASCII) or code in _SURROGATES or code > _MAX_CHARACTER:
        raise PromqlError(f"escape sequence {escape[0]!r} in a string is not a character; write the character itself")
    return chr(code)
