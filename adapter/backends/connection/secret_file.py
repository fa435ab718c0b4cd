"""Secrets in files, and their redaction from messages. A file is read on each use, so that it can be rotated."""

import asyncio
import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, TypeVar

from adapter.backends.connection import redaction
from adapter.errors import BackendError, BackendUnauthorized

_MAX_SECRETS: Final = 16  # a response may still contain the secret that was valid before a rotation

R = TypeVar("R")
E = TypeVar("E", bound=BackendError)


class Redactor:
    """Texts that must not appear in any message."""

    def __init__(self, *texts: str) -> None:
        self._forms: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self.add(*texts)

    def add(self, *texts: str) -> None:
        """Add texts, such as an encoded secret; the oldest ones are dropped."""
        with self._lock:
            known = self._forms
            added = {text: redaction.forms(text) for text in texts if text not in known}
            kept = max(_MAX_SECRETS, len(texts)) - len(added)
            self._forms = {**dict(list(known.items())[-kept:] if kept > 0 else ()), **added} if added else known

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts and their encoded forms."""
        return tuple(form for forms in self._forms.values() for form in forms)

    def redact(self, text: str) -> str:
        """Return a text without the secrets, which some servers repeat in their responses."""
        return redaction.redact(text, self.texts)


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
    texts = [text for secret in secrets for text in secret.texts]  # together, because secrets may overlap
    copy = type(error)(redaction.redact(error.message, texts), detail=redaction.redact(error.detail, texts))
    copy.was_sent = error.was_sent
    return copy


def redacted_results(results: Iterable[R | BackendError], secrets: Collection[Redactor]) -> list[R | BackendError]:
    """Return the results with all errors among them redacted."""
    return [redacted_error(result, secrets) if isinstance(result, BackendError) else result for result in results]
