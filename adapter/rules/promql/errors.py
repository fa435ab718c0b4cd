"""The error of the PromQL modules."""

from typing import Final

_MAX_LENGTH: Final = 300


class PromqlError(ValueError):
    """The expression is not valid PromQL, or uses syntax that is not supported."""

    def __init__(self, message: str) -> None:
        # Messages repeat parts of the query, and are written to the status of objects.
        super().__init__(message if len(message) <= _MAX_LENGTH else f"{message[:_MAX_LENGTH]}…")
