"""Removal of secrets from texts, also of secrets that a server repeats in an encoded form. Pure code.

A text is decoded in all usual ways: JSON and Python escapes, percent-encoding, HTML entities, doubled quotes, and
combinations of them, such as JSON in JSON. Each decoded character keeps its place in the original text. What decodes to
a secret is replaced there, so that no encoding of a single character has to be known in advance. Base64 mixes
characters, so it is searched for as a text of its own.
"""

import html
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

MIN_LENGTH: Final = 4
"""Replacing shorter texts would make messages unreadable."""

_REPLACEMENT: Final = "***"
_MAX_LAYERS: Final = 3
_MAX_VIEWS: Final = 64
_MIN_BASE64_LENGTH: Final = 8
_CONTROL: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


class _View(NamedTuple):
    """A decoded text."""

    text: str
    spans: tuple[tuple[int, int], ...]
    """The place of each character in the original text."""


def forms(secret: str) -> tuple[str, ...]:
    """Return a secret and its forms that decoding does not find: its bytes as characters, and Base64."""
    data = secret.encode(errors="surrogateescape")
    found = [secret, data.decode("latin-1")]
    for offset in range(3):
        encoded = b64encode(b"\0" * offset + data).decode()
        end = len(encoded) - (0 if (offset + len(data)) % 3 == 0 else 1 + encoded.count("="))
        core = encoded[offset + 1 if offset else 0 : end]  # the other characters depend on the text around the secret
        if len(core) >= _MIN_BASE64_LENGTH:
            found += [core, core.replace("+", "-").replace("/", "_")]
    return tuple(dict.fromkeys(found))


def redact(text: str, secrets: Collection[str]) -> str:
    """Return a text without the secrets, and without the first part of a secret at the end of a truncated text."""
    wanted = [secret for secret in secrets if len(secret) >= MIN_LENGTH]
    views = _views(text) if wanted else []
    spans = sorted({span for view in views for secret in wanted for span in _occurrences(view, secret, len(text))})
    parts, position = [], 0
    for start, end in spans:
        if start >= position:  # else it overlaps the previous one
            parts += [text[position:start], _REPLACEMENT]
        position = max(position, end)
    return "".join((*parts, text[position:]))


def _occurrences(view: _View, secret: str, length: int) -> Iterator[tuple[int, int]]:
    start = view.text.find(secret)
    while start >= 0:
        yield view.spans[start][0], view.spans[start + len(secret) - 1][1]
        start = view.text.find(secret, start + 1)
    for part in range(min(len(secret) - 1, len(view.text)), MIN_LENGTH - 1, -1):
        if view.text.endswith(secret[:part]):
            yield view.spans[-part][0], length
            return


def _views(text: str) -> list[_View]:
    """Return the text and all its decoded forms."""
    views = {text: _View(text, tuple((index, index + 1) for index in range(len(text))))}
    newest = list(views.values())
    for _ in range(_MAX_LAYERS):
        decoded = [_decoded(view, pattern, decode) for view in newest for pattern, decode in _DECODERS]
        newest = list({view.text: view for view in decoded if view.text not in views}.values())
        newest = newest[: _MAX_VIEWS - len(views)]
        views |= {view.text: view for view in newest}
    return list(views.values())


def _decoded(view: _View, pattern: re.Pattern[str], decode: Callable[[str], str]) -> _View:
    texts: list[str] = []
    spans: list[tuple[int, int]] = []
    position = 0
    for match in pattern.finditer(view.text):
        characters = decode(match[0])
        texts += [view.text[position : match.start()], characters]
        spans += view.spans[position : match.start()]
        spans += [(view.spans[match.start()][0], view.spans[match.end() - 1][1])] * len(characters)
        position = match.end()
    return _View("".join((*texts, view.text[position:])), (*spans, *view.spans[position:]))


def _unescape(token: str) -> str:
    """Decode an escape sequence of JSON or Python; one that is cut off at the end of the text is empty."""
    if token[1:2] in {"u", "U", "x"}:
        digits = [part[1:] for part in token.split("\\")[1:]]
        if len(digits[-1]) < {"u": 4, "U": 8, "x": 2}[token[1]]:
            return ""
        units = "".join(chr(min(int(each, 16), 0x10FFFF)) for each in digits)
        return units.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return _CONTROL.get(token[1:], token[1:])


def _unquote(token: str) -> str:
    """Decode a percent-encoded character; one that is cut off at the end of the text is empty."""
    return bytes.fromhex(token.replace("%", "")).decode("utf-8", "ignore") if len(token) % 3 == 0 else ""


_DECODERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], str]], ...]] = (
    (
        re.compile(
            r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
            r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"
            r"|\\x[0-9a-fA-F]{2}|\\[uU][0-9a-fA-F]{0,7}\Z|\\x[0-9a-fA-F]?\Z|\\[^uUx]|\\\Z"
        ),
        _unescape,
    ),
    (
        re.compile(
            r"%[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]|%[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}"
            r"|%[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}|%[0-9a-fA-F]{2}|%[0-9a-fA-F]?\Z"
        ),
        _unquote,
    ),
    (re.compile(r"\+"), lambda _: " "),
    (
        re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});|&#?[A-Za-z0-9]{0,8}\Z"),
        lambda token: html.unescape(token) if token.endswith(";") else "",
    ),
    (re.compile(r"\\'"), lambda _: "'"),
    (re.compile(r"\\\""), lambda _: '"'),
    (re.compile("''"), lambda _: "'"),
    (re.compile('""'), lambda _: '"'),
)
