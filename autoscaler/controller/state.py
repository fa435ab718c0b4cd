"""What is remembered of each autoscaler between passes; forgotten when the object is gone."""

from dataclasses import dataclass, field
from datetime import datetime

from autoscaler.controller.persistence import Fingerprint
from autoscaler.types.decision import Decision
from autoscaler.types.history import History
from autoscaler.types.status import Status


@dataclass(slots=True)
class Entry:
    """One autoscaler's past."""

    uid: str
    """Whose: an object of the same name that was made anew has another."""

    history: History = field(default_factory=History)
    decision: Decision | None = None
    """The last one, for whoever asks why."""

    kept: Fingerprint | None = None
    """What the API server has of this history, so that it is written again only when something would be missed."""

    unsaid: Status | None = None
    """A status that could not be written: true all the same, and the next pass goes by it."""

    failures: int = 0
    """How many status writes have failed in a row."""

    rescaled_at: datetime | None = None
    """When this controller last wrote the target's scale."""


class Memory:
    """All entries, by key."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def of(self, key: str, uid: str) -> Entry | None:
        """Find the entry of this very object; None at first sight."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.uid == uid else None

    def get(self, key: str) -> Entry | None:
        """Find the entry of whatever has this key."""
        return self._entries.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def begin(self, key: str, entry: Entry) -> Entry:
        """Remember an object from now on."""
        self._entries[key] = entry
        return entry

    def forget(self, key: str) -> None:
        """Forget an object that is gone."""
        self._entries.pop(key, None)

    def entries(self) -> tuple[tuple[str, Entry], ...]:
        """Give all of them, with their keys."""
        return tuple(self._entries.items())

    def decisions(self) -> dict[str, Decision]:
        """Give the last decision of each autoscaler."""
        return {key: entry.decision for key, entry in self._entries.items() if entry.decision is not None}
