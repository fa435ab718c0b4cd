"""The store of an informer when a list and an own write overlap."""

from collections.abc import AsyncIterator

import pytest

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.informer import Informer
from autoscaler.kube.watch import ListWatch, ObjectList
from tests.fakes.plain import plain_connection

KEY = "shop/web"


def content(version: int, size: int, uid: str = "first") -> Json:
    metadata = {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "size": size}


@pytest.fixture
async def informer() -> AsyncIterator[Informer[int]]:
    async with KubeClient.open(plain_connection(1)) as client:
        yield Informer(client, ListWatch("/things"), lambda content: int(content["size"]))


def receive_list(informer: Informer[int], *objects: Json) -> None:
    informer._replace(ObjectList(tuple(map(informer._reduce, objects))))


async def test_list_older_than_an_own_write_does_not_undo_the_write(informer):
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    receive_list(informer, content(1, size=3))
    assert informer.get(KEY) == 12


async def test_list_replaces_an_own_write_after_its_watch_event(informer):
    """In a cluster restored from a backup, resourceVersions start again at lower values."""
    receive_list(informer, content(1, size=3))
    informer.apply_response(content(2, size=12))
    informer._update(*informer._reduce(content(2, size=12)))
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


async def test_response_to_a_write_does_not_bring_back_a_deleted_object(informer):
    receive_list(informer, content(1, size=3))
    with informer.own_write(KEY):
        informer._delete(KEY)
        informer.apply_response(content(2, size=12))
    assert informer.get(KEY) is None


async def test_response_to_a_write_does_not_replace_a_recreated_object(informer):
    receive_list(informer, content(1, size=3))
    with informer.own_write(KEY):
        informer._delete(KEY)
        informer._update(*informer._reduce(content(4, size=5, uid="second")))
        informer.apply_response(content(5, size=12))
    assert informer.get(KEY) == 5


async def test_deletion_during_an_own_write_notifies_listeners(informer):
    receive_list(informer, content(1, size=3))
    notified: list[str] = []
    informer.add_listener(notified.append)
    with informer.own_write(KEY):
        informer._delete(KEY)
        informer.apply_response(content(2, size=12))
    assert notified == [KEY, KEY]
