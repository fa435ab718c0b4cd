"""One problem of a configuration file or an object: where it is, what is wrong, and how to correct it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from adapter.decoding.duration import format_duration
from adapter.errors import AdapterError


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, printed as ``path: message, is value; hint``."""

    path: str
    """Keys and indexes as in ``rules[3].parameters.query``; empty: the whole document."""

    message: str
    value: object = None
    """The value at the path, where printing it helps; None: it is not printed."""

    hint: str = ""
    """How to correct it."""

    def __str__(self) -> str:
        value = "" if self.value is None else f", is {_text(self.value)}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.path}: {self.message}{value}{hint}" if self.path else f"{self.message}{value}{hint}"

    def below(self, path: str) -> Self:
        """Return this problem with ``path`` in front of its own: the place of the document in an outer document."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return replace(self, path=f"{path}{separator}{self.path}")


def _text(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else repr(value)


class ConfigInvalid(AdapterError):
    """A configuration file or an object has problems."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.messages))

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(map(str, self.problems))
