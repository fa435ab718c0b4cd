"""Secrets are files, read when they are used: who rotates one only writes it. None is ever shown to anyone else."""

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, TypeVar

from adapter.errors import BackendError, BackendUnauthorized

_SHORTEST: Final = 4
"""Shorter texts are no secrets worth the name, and taking them out would make nonsense of what was said."""

_HIDDEN: Final = "***"
_REMEMBERED: Final = 16  # an answer may come that was asked with the secret before

A = TypeVar("A")
E = TypeVar("E", bound=BackendError)


class Hidden:
    """Texts that are not to be seen."""

    def __init__(self, *texts: str) -> None:
        self._texts = tuple(texts)

    def hide(self, *texts: str) -> None:
        """Hide these, too, such as a secret as it is encoded on the way; those of long ago are forgotten."""
        fresh = tuple(text for text in texts if text not in self._texts)
        self._texts = (*self._texts, *fresh)[-_REMEMBERED:]

    def scrubbed(self, text: str) -> str:
        """Take them out of what somebody said: some servers repeat what they are shown."""
        for hidden in sorted(self._texts, key=len, reverse=True):
            if len(hidden) >= _SHORTEST:
                text = _without_beginning(text.replace(hidden, _HIDDEN), hidden)
        return text


def _without_beginning(text: str, hidden: str) -> str:
    """Take out the part of a secret that a text ends with because it was cut there."""
    for length in range(min(len(hidden), len(text)), _SHORTEST - 1, -1):
        if text.endswith(hidden[:length]):
            return text[:-length] + _HIDDEN
    return text


class SecretFile(Hidden):
    """One secret in one file."""

    def __init__(self, path: str, setting: str) -> None:
        super().__init__()
        self._path = Path(path)
        self._setting = setting
        """What the configuration calls it, for who must mend it."""

    async def read(self) -> str:
        """Return what is in the file now; raise ``BackendUnauthorized`` if that is nothing to show anyone."""
        return await asyncio.to_thread(self.read_now)

    def read_now(self) -> str:
        """Do the same where waiting is no harm: in a thread."""
        found = self._text()
        if not found or not found.isprintable():
            raise BackendUnauthorized(f"{self._setting} holds nothing that can be sent")
        self.hide(found)
        return found

    def read_lines_now(self) -> list[str]:
        """Return a file of several lines likewise, in which secrets stand below titles."""
        found = self._text().splitlines()
        self.hide(*(line for line in found if line and " " not in line))
        return found

    def _text(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BackendUnauthorized(f"{self._setting} cannot be read", detail=type(error).__name__) from None

    def __repr__(self) -> str:
        return f"SecretFile({self._setting})"


def without_secrets(error: E, secrets: Iterable[Hidden]) -> E:
    """Make the same error without any of these in it."""
    message, detail = error.message, error.detail
    for secret in secrets:
        message, detail = secret.scrubbed(message), secret.scrubbed(detail)
    made = type(error)(message, detail=detail)
    made.was_sent = error.was_sent
    return made


def all_without_secrets(found: Iterable[A | BackendError], secrets: Collection[Hidden]) -> list[A | BackendError]:
    """Make the same answers, without any of these in the errors among them."""
    return [without_secrets(each, secrets) if isinstance(each, BackendError) else each for each in found]
