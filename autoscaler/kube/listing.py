"""Lists a collection in pages.

Each object is decoded and reduced before the next one, because a list as a whole may not fit into memory. Other tasks
of the event loop run in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Expired, ResponseTooLarge, Unavailable
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.invalid_objects import InvalidObject
from autoscaler.kube.objects import Document, ObjectList, check_object, decode_page

_PAGE_SIZE: Final = 250
_STEP_BYTES: Final = 65536
"""How much of a list is decoded before other tasks of the event loop may run."""

_MAX_PAGES: Final = 10_000


@dataclass(frozen=True, slots=True)
class ListWatch:
    """The collection to list and watch: its path and selectors."""

    path: str
    field_selector: str = ""
    label_selector: str = ""

    @property
    def resource(self) -> str:
        """The plural name of the resource."""
        return self.path.rpartition("/")[2]

    def query(self) -> dict[str, str]:
        selectors = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in selectors.items() if value}


async def list_objects(
    client: KubeClient,
    source: ListWatch,
    freshness: Freshness,
    on_invalid: Callable[[InvalidObject], None],
    reduce: Callable[[Json], Any],
) -> ObjectList:
    """List a collection in pages; the list contains what ``reduce`` returns for each valid object."""
    started, size = client.now(), _PAGE_SIZE
    while True:
        try:
            listed = await _list_pages(client, source, {"limit": str(size)}, reduce)
            break
        except Expired:
            # The continue token has expired while the pages were fetched; a list without pages cannot expire.
            listed = await _list_pages(client, source, {}, reduce)
            break
        except ResponseTooLarge:
            if size == 1:
                raise
            size = max(size // 10, 1)
    for invalid in listed.invalid:
        on_invalid(invalid)
    freshness.listed(started, listed.resource_version)
    return listed


async def _list_pages(
    client: KubeClient, source: ListWatch, limit: dict[str, str], reduce: Callable[[Json], Any]
) -> ObjectList:
    query = {**source.query(), **limit}
    objects: list[Any] = []
    invalid: list[InvalidObject] = []
    for _ in range(_MAX_PAGES):
        page = decode_page(await client.get_bytes(source.path, query))
        async for item in _in_steps(page.items):
            checked = check_object(item)
            if isinstance(checked, InvalidObject):
                invalid.append(checked)
            else:
                objects.append(reduce(checked))
            del item, checked
        if not page.continue_token:
            return ObjectList(tuple(objects), page.resource_version, tuple(invalid))
        query["continue"] = page.continue_token
        del page
    raise Unavailable(f"GET {source.path}: the list does not end after {_MAX_PAGES} pages")


async def _in_steps(items: Iterable[Document]) -> AsyncIterator[Document]:
    """Yield the items of a page and let other tasks run in between."""
    size = 0
    for item in items:
        yield item
        size += len(memoryview(item))
        if size >= _STEP_BYTES:
            size = 0
            await asyncio.sleep(0)
