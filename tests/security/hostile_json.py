"""A seeded generator of JSON documents that a tenant or a broken API server could send."""

import json
from random import Random
from typing import Any, Final

Json = dict[str, Any]

_DEEP: Final = 3000
_HOSTILE: Final[tuple[bytes, ...]] = (
    b'{"a":' * _DEEP + b"1" + b"}" * _DEEP,
    b"[" * _DEEP + b"]" * _DEEP,
    b"123456789012345678901234567890",
    b"-" + b"9" * 400,
    b"1" * 5000,
    b"1e400",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b'"\xff\xfe"',
    b'"9999-12-31T23:59:59Z"',
    b'"0001-01-01T00:00:00Z"',
    b'"' + b"x" * 100_000 + b'"',
    '"\N{SUPERSCRIPT TWO}"'.encode(),
    b'"123456789012345678901234567890"',
    b"",
)
_PLACEHOLDER: Final = "\N{WHITE SQUARE}"


class HostileJson:
    """Replaces values of a valid document and bytes of its text."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable, not secret

    def mutate(self, document: object) -> bytes:
        """Return a variant of a document: a value replaced or removed, or its bytes changed."""
        text = self._replace_value(document) if self.random.random() < 0.7 else json.dumps(document).encode()
        if self.random.random() < 0.3:
            text = self._change_bytes(text)
        return text.replace(b"\n", b" ")

    def _replace_value(self, document: object) -> bytes:
        copied = json.loads(json.dumps(document))
        container: Any = {"root": copied}
        key: Any = "root"
        while isinstance(container[key], dict | list) and container[key] and self.random.random() < 0.8:
            container = container[key]
            key = self.random.choice(list(container) if isinstance(container, dict) else range(len(container)))
        if key != "root" and self.random.random() < 0.2:
            del container[key]
            return json.dumps(copied).encode()
        replaced = {"root": _PLACEHOLDER} if key == "root" else copied
        if key != "root":
            container[key] = _PLACEHOLDER
        text = json.dumps(replaced["root"] if key == "root" else copied, ensure_ascii=False)
        return text.encode().replace(f'"{_PLACEHOLDER}"'.encode(), self.random.choice(_HOSTILE))

    def _change_bytes(self, text: bytes) -> bytes:
        start = self.random.randrange(len(text) + 1)
        end = min(start + self.random.choice((0, 1, 1, 5, 50)), len(text))
        inserted = self.random.choice((b"", self.random.randbytes(1), b"{", b"]", b'"', b",", text[start:end] * 2))
        return text[:start] + inserted + text[end:]
