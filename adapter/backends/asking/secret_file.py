"""Secrets are files, read when they are used: who rotates one only writes it. None is ever shown to anyone else."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeVar

from adapter.errors import BackendError, BackendUnauthorized

_SHORTEST: Final = 4
"""Shorter texts are no secrets worth the name, and taking them out would make nonsense of what was said."""

_HIDDEN: Final = "***"
_REMEMBERED: Final = 4  # an answer may come that was asked with the secret before

E = TypeVar("E", bound=BackendError)


class SecretFile:
    """One secret in one file."""

    def __init__(self, path: str, setting: str) -> None:
        self._path = Path(path)
        self._setting = setting
        """What the configuration calls it, for who must mend it."""

        self._known: list[str] = []

    async def read(self) -> str:
        """Return what is in the file now; raise ``BackendUnauthorized`` if that is nothing to show anyone."""
        return await asyncio.to_thread(self.read_now)

    def read_now(self) -> str:
        """Do the same where waiting is no harm: in a thread."""
        try:
            found = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BackendUnauthorized(f"{self._setting} cannot be read", detail=type(error).__name__) from None
        if not found or not found.isprintable():
            raise BackendUnauthorized(f"{self._setting} holds nothing that can be sent")
        self.hide(found)
        return found

    def hide(self, *forms: str) -> None:
        """Note what else the secret looks like on the way, such as encoded: that must not be seen either."""
        fresh = [form for form in forms if form not in self._known]
        self._known = [*self._known, *fresh][-2 * _REMEMBERED :]

    def scrubbed(self, text: str) -> str:
        """Take the secret out of what somebody said: some servers repeat it."""
        for secret in sorted(self._known, key=len, reverse=True):
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"SecretFile({self._setting})"


def without_secrets(error: E, secrets: Iterable[SecretFile]) -> E:
    """Make the same error without any of these in it."""
    message, detail = error.message, error.detail
    for secret in secrets:
        message, detail = secret.scrubbed(message), secret.scrubbed(detail)
    return type(error)(message, detail=detail)
