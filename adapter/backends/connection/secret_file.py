"""Secrets in files, and their redaction from messages. A file is read on each use, so that it can be rotated."""

import asyncio
import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, TypeVar

from adapter.errors import BackendError, BackendUnauthorized

_MIN_LENGTH: Final = 4
"""Replacing shorter texts would make messages unreadable."""

_REPLACEMENT: Final = "***"
_MAX_TEXTS: Final = 16  # a response may still contain the secret that was valid before a rotation

R = TypeVar("R")
E = TypeVar("E", bound=BackendError)


class Redactor:
    """Texts that must not appear in any message."""

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(texts)
        self._lock = threading.Lock()

    def add(self, *texts: str) -> None:
        """Add texts, such as an encoded secret; the oldest ones are dropped."""
        with self._lock:
            new = tuple(text for text in texts if text not in self._texts)
            self._texts = (*self._texts, *new)[-_MAX_TEXTS:]

    def redact(self, text: str) -> str:
        """Return a text without the secrets, which some servers repeat in their responses."""
        for secret in sorted(self._texts, key=len, reverse=True):
            if len(secret) >= _MIN_LENGTH:
                text = _without_truncated_secret(text.replace(secret, _REPLACEMENT), secret)
        return text


def _without_truncated_secret(text: str, secret: str) -> str:
    """Remove the first part of a secret from the end of a text that was truncated within the secret."""
    for length in range(min(len(secret), len(text)), _MIN_LENGTH - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + _REPLACEMENT
    return text


class SecretFile(Redactor):
    """One secret in one file."""

    def __init__(self, path: str, setting: str) -> None:
        super().__init__()
        self._path = Path(path)
        self._setting = setting
        """The configuration key, for messages."""

    async def read(self) -> str:
        """Return the secret; raise ``BackendUnauthorized`` if the file has none."""
        return await asyncio.to_thread(self.read_sync)

    def read_sync(self) -> str:
        """Return the secret like ``read``; blocks, so call it in a thread."""
        secret = self._text()
        if not secret or not secret.isprintable():
            raise BackendUnauthorized(f"{self._setting} is empty or contains unprintable characters")
        self.add(secret)
        return secret

    def read_lines_sync(self) -> list[str]:
        """Return the lines of a file of headings and secrets, such as a NATS credentials file; blocks."""
        lines = self._text().splitlines()
        self.add(*(line for line in lines if line and " " not in line))
        return lines

    def _text(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BackendUnauthorized(f"{self._setting} cannot be read", detail=type(error).__name__) from None

    def __repr__(self) -> str:
        return f"SecretFile({self._setting})"


def redacted_error(error: E, secrets: Iterable[Redactor]) -> E:
    message, detail = error.message, error.detail
    for secret in secrets:
        message, detail = secret.redact(message), secret.redact(detail)
    copy = type(error)(message, detail=detail)
    copy.was_sent = error.was_sent
    return copy


def redacted_results(results: Iterable[R | BackendError], secrets: Collection[Redactor]) -> list[R | BackendError]:
    """Return the results with all errors among them redacted."""
    return [redacted_error(result, secrets) if isinstance(result, BackendError) else result for result in results]
