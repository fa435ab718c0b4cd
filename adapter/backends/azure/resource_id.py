"""The ids of resources: where one is, of which type, and what it is called. Azure does not tell case apart; pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.types.record import Record

_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[^/?#%\s\"'\\]+"
ID: Final = re.compile(
    rf"/subscriptions/(?P<subscription>[0-9a-f-]{{36}})/resourceGroups/(?P<group>{_SEGMENT})"
    rf"/providers/(?P<provider>{_SEGMENT})(?P<path>(?:/{_SEGMENT}/{_SEGMENT})+)",
    re.IGNORECASE,
)
_WANTED: Final = "must be /subscriptions/GUID/resourceGroups/GROUP/providers/PROVIDER/TYPE/NAME"


class Resource(Record, frozen=True):
    """What an id says."""

    subscription: str
    group: str
    type: str
    """With its provider, as ``Microsoft.Storage/storageAccounts/blobServices``."""

    name: str


def parsed(text: str) -> Resource:
    """Take an id apart; raise ValueError if it is none."""
    found = ID.fullmatch(text)
    if not found:
        raise ValueError(_WANTED)
    parts = found["path"].split("/")[1:]
    kind = "/".join([found["provider"], *parts[::2]])
    return Resource(found["subscription"].lower(), found["group"], kind, "/".join(parts[1::2]))


def resource_problems(ids: Sequence[str], at: str) -> Iterator[str]:
    """Say what is wrong with ids that are asked for together."""
    found = []
    for each in ids:
        try:
            found.append(parsed(each))
        except ValueError as error:
            yield f"{at}: {error}, is {each!r}"
    if len({(each.subscription, each.type.lower()) for each in found}) > 1:
        yield f"{at}: must be of one type and in one subscription; write a rule for each"
    if len({each.lower() for each in ids}) < len(ids):
        yield f"{at}: names one twice"
