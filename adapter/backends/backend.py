"""What every metric system looks like from here."""

from typing import Protocol

from adapter.rules.rule import Rule
from adapter.sample import Sample
from autoscaler.selector import Selector


class Backend(Protocol):
    """A client of one metric system."""

    @property
    def name(self) -> str:
        """What to call it in a message: the hop that failed."""

    async def fetch(self, rule: Rule, selector: Selector) -> tuple[Sample, ...]:
        """Return the rule's series that match, perhaps none; raise a ``BackendError`` if it cannot be known."""
