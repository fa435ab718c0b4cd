"""The store of an informer when a list and an own write overlap."""

from collections.abc import AsyncIterator

import pytest

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.watch import ListWatch, ObjectList
from tests.fakes.plain import plain_connection

KEY = "shop/web"


def content(version: int, size: int) -> Json:
    return {"metadata": {"namespace": "shop", "name": "web", "resourceVersion": str(version)}, "size": size}


@pytest.fixture
async def informer() -> AsyncIterator[Informer[int]]:
    async with KubeClient.open(plain_connection(1)) as client:
        yield Informer(client, ListWatch("/things"), lambda content: int(content["size"]))


def receive_list(informer: Informer[int], *objects: Json) -> None:
    informer._replace(ObjectList(objects))


async def test_list_older_than_an_own_write_does_not_undo_the_write(informer):
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    receive_list(informer, content(1, size=3))
    assert informer.get(KEY) == 12


async def test_list_replaces_an_own_write_after_its_watch_event(informer):
    """In a cluster restored from a backup, resourceVersions start again at lower values."""
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    informer._update(content(2, size=12))
    receive_list(informer, content(1, size=3))
    assert informer.get(KEY) == 3


async def test_written_object_that_is_not_listed_is_removed(informer):
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    receive_list(informer)
    assert informer.get(KEY) is None


async def test_newer_version_in_the_list_replaces_an_own_write(informer):
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    receive_list(informer, content(3, size=7))
    assert informer.get(KEY) == 7
