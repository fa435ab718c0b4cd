"""Lists and watches: pages, selections, versions that expired; and the store that is fed by them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.kube.client import Json
from autoscaler.kube.errors import Expired
from autoscaler.kube.store import Store
from autoscaler.kube.watch import Progress, Watched
from tests.contract.api import Api
from tests.contract.objects import beside, eventually, new_name

MAPS = "/api/v1/namespaces/default/configmaps"
SOON = timedelta(seconds=10)


def config_map(name: str, value: str = "1", **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}, "data": {"is": value}}


@asynccontextmanager
async def stored(api: Api, label: str) -> AsyncIterator[Store[str]]:
    store = Store(api.client, Watched(MAPS, label_selector=f"of={label}"), lambda thing: str(thing["data"]["is"]))
    async with beside(store.run()):
        assert await store.settled(SOON)
        yield store


async def until(is_true: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return is_true()

    await eventually(holds)


async def lines(api: Api, version: str, **query: str) -> AsyncIterator[Any]:
    asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "2", **query}
    async with aclosing(api.client.stream(MAPS, asked, SOON)) as answer:
        async for line in answer:
            if line:
                yield json.loads(line)


async def test_a_list_in_pages_is_one_list(api: Api) -> None:
    label = new_name()
    names = [f"{label}-{number}" for number in range(5)]
    for name in names:
        await api.client.create(MAPS, config_map(name, of=label))
    query, found, pages = {"labelSelector": f"of={label}", "limit": "2"}, [], 0
    while True:
        page = await api.client.get(MAPS, query)
        found += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        if not page["metadata"].get("continue"):
            break
        query["continue"] = page["metadata"]["continue"]
    assert (found, pages) == (names, 3)


async def test_a_version_from_another_life_of_the_server_has_expired_and_a_store_lives_on(api: Api) -> None:
    label = new_name()
    made = await api.client.create(MAPS, config_map(label, of=label))
    version = made["metadata"]["resourceVersion"]
    async with stored(api, label) as store:
        await api.forget_the_past()
        told = [line async for line in lines(api, version)]
        assert [line["type"] for line in told] == ["ERROR"]
        with pytest.raises(Expired):
            Progress(version).feed(json.dumps(told[0]).encode())
        await api.client.patch(f"{MAPS}/{label}", {"data": {"is": "2"}})
        await until(lambda: store.get(f"default/{label}") == "2")


async def test_what_leaves_a_selection_is_told_as_gone(api: Api) -> None:
    label, name = new_name(), new_name()
    made = await api.client.create(MAPS, config_map(name, of=label))
    await api.client.patch(f"{MAPS}/{name}", {"data": {"is": "2"}})
    await api.client.patch(f"{MAPS}/{name}", {"metadata": {"labels": {"of": "nobody"}}})
    version = made["metadata"]["resourceVersion"]
    told = [line["type"] async for line in lines(api, version, labelSelector=f"of={label}")]
    assert told == ["MODIFIED", "DELETED"]


async def test_a_watch_from_nowhere_begins_with_what_is_there(api: Api) -> None:
    label = new_name()
    await api.client.create(MAPS, config_map(label, of=label))
    told = [line["type"] async for line in lines(api, "0", labelSelector=f"of={label}")]
    assert told == ["ADDED"]


async def test_a_store_follows_what_others_do(api: Api) -> None:
    label = new_name()
    one, two = f"{label}-1", f"{label}-2"
    await api.client.create(MAPS, config_map(one, of=label))
    async with stored(api, label) as store:
        heard: list[str] = []
        store.tell(heard.append)
        await api.client.patch(f"{MAPS}/{one}", {"data": {"is": "2"}})
        await api.client.create(MAPS, config_map(two, of=label))
        await until(lambda: store.get(f"default/{two}") == "1" and store.get(f"default/{one}") == "2")
        await api.client.request("DELETE", f"{MAPS}/{one}")
        await until(lambda: store.get(f"default/{one}") is None)
        assert heard == [f"default/{one}", f"default/{one}", f"default/{two}", f"default/{one}"]


async def test_a_store_is_not_told_of_what_it_has_learned_from_the_answer(api: Api) -> None:
    label, other = new_name(), new_name()
    await api.client.create(MAPS, config_map(label, of=label))
    async with stored(api, label) as store:
        heard: list[str] = []
        store.tell(heard.append)
        with store.writing(f"default/{label}"):
            store.learn(await api.client.patch(f"{MAPS}/{label}", {"data": {"is": "mine"}}))
        assert store.get(f"default/{label}") == "mine"
        await api.client.create(MAPS, config_map(other, of=label))  # whatever comes before it on the watch has come
        await until(lambda: store.get(f"default/{other}") is not None)
        assert heard == [f"default/{label}", f"default/{other}"]
