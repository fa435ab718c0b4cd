"""A limit on concurrent work that no single holder can use up."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager


class FairLimit:
    """Slots for concurrent work, shared fairly between holders, such as callers or namespaces.

    A holder gets a further slot only if more slots are free than it holds. So one holder gets at most half of all
    slots, a second one at most half of the rest, and a holder without a slot gets one as long as any is free.
    """

    def __init__(self, slots: int, error: Callable[[], Exception]) -> None:
        self.in_use = 0
        self._slots = slots
        self._error = error
        self._held: dict[Hashable, int] = {}

    @contextmanager
    def hold(self, holder: Hashable) -> Iterator[None]:
        """Hold a slot for the length of the block; raise the error if the holder gets none."""
        held = self._held.get(holder, 0)
        if held >= self._slots - self.in_use:
            raise self._error()
        self._held[holder] = held + 1
        self.in_use += 1
        try:
            yield
        finally:
            self.in_use -= 1
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]
