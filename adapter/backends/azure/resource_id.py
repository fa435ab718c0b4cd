"""Parsing and validation of Azure resource IDs, which are case-insensitive. No I/O."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.decoding.problem import Problem
from autoscaler.types.record import Record

_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[^/?#%\s\"'\\]+"
_RESOURCE_ID: Final = re.compile(
    rf"/subscriptions/(?P<subscription>[0-9a-f-]{{36}})/resourceGroups/(?P<group>{_SEGMENT})"
    rf"/providers/(?P<provider>{_SEGMENT})(?P<path>(?:/{_SEGMENT}/{_SEGMENT})+)",
    re.IGNORECASE,
)
_FORMAT: Final = "must be /subscriptions/GUID/resourceGroups/GROUP/providers/PROVIDER/TYPE/NAME"


class AzureResource(Record, frozen=True):
    """The parts of a resource ID."""

    subscription: str
    group: str
    type: str
    """With its provider, such as ``Microsoft.Storage/storageAccounts/blobServices``."""

    name: str


def parse_resource_id(text: str) -> AzureResource:
    """Parse a resource ID; raise ValueError if it is invalid."""
    match = _RESOURCE_ID.fullmatch(text)
    if not match:
        raise ValueError(_FORMAT)
    segments = match["path"].split("/")[1:]
    resource_type = "/".join([match["provider"], *segments[::2]])
    return AzureResource(match["subscription"].lower(), match["group"], resource_type, "/".join(segments[1::2]))


def resource_problems(ids: Sequence[str], path: str) -> Iterator[Problem]:
    """Validate the resource IDs of one rule."""
    resources = []
    for resource_id in ids:
        try:
            resources.append(parse_resource_id(resource_id))
        except ValueError as error:
            yield Problem(path, str(error), value=resource_id)
    if len({(resource.subscription, resource.type.lower()) for resource in resources}) > 1:
        yield Problem(path, "must have one type and one subscription", hint="write a rule for each")
    if len({resource_id.lower() for resource_id in ids}) < len(ids):
        yield Problem(path, "contains a duplicate")
