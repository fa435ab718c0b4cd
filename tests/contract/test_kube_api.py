"""Kubernetes API behaviour that the service relies on: objects, watches, reviews."""

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import AlreadyExists, BadRequest, Conflict, NotFound
from autoscaler.kube.reviews import Subject, review_access, review_token
from autoscaler.kube.watch import ListWatch, ObjectList, WatchEvent, WatchEventType, WatchItem, list_and_watch
from tests.contract.api import Api
from tests.control_plane.cluster import ControlPlane
from tests.waiting import GIVE_UP

SECRETS = "/api/v1/namespaces/default/secrets"


def secret(name: str, **texts: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": texts}


def new_name() -> str:
    return f"it-{uuid.uuid4().hex[:8]}"


async def test_created_object_can_be_read(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name, key="YQ=="))
    assert (await api.client.get(f"{SECRETS}/{name}"))["data"] == {"key": "YQ=="}


async def test_missing_object_raises_not_found(api: Api) -> None:
    with pytest.raises(NotFound):
        await api.client.get(f"{SECRETS}/{new_name()}")


async def test_second_create_of_an_object_raises_already_exists(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name))
    with pytest.raises(AlreadyExists):
        await api.client.create(SECRETS, secret(name))


async def test_second_replace_of_a_version_raises_conflict(api: Api) -> None:
    name = new_name()
    read = await api.client.create(SECRETS, secret(name))
    await api.client.replace(f"{SECRETS}/{name}", {**read, "data": {"by": "YQ=="}})
    with pytest.raises(Conflict):
        await api.client.replace(f"{SECRETS}/{name}", {**read, "data": {"by": "Yg=="}})
    assert (await api.client.get(f"{SECRETS}/{name}"))["data"] == {"by": "YQ=="}


async def test_merge_patch_changes_only_its_keys(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name, a="YQ==", b="YQ=="))
    patched = await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "Yg==", "b": None}})
    assert patched["data"] == {"a": "Yg=="}


async def test_patch_of_an_older_version_raises_conflict(api: Api) -> None:
    name = new_name()
    read = await api.client.create(SECRETS, secret(name))
    await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "YQ=="}})
    stale = {"metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}, "data": {"a": "Yg=="}}
    with pytest.raises(Conflict):
        await api.client.patch(f"{SECRETS}/{name}", stale)


async def test_watch_yields_the_list_and_then_changes(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name))
    received: list[WatchItem] = []
    source = ListWatch(SECRETS, f"metadata.name={name}")
    async with asyncio.timeout(GIVE_UP), aclosing(list_and_watch(api.client, source)) as items:
        async for item in items:
            received.append(item)
            if len(received) == 1:
                await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "YQ=="}})
            else:
                break
    first, second = received
    assert isinstance(first, ObjectList)
    assert [content["metadata"]["name"] for content in first.objects] == [name]
    assert isinstance(second, WatchEvent)
    assert (second.type, second.object["data"]) == (WatchEventType.MODIFIED, {"a": "YQ=="})


async def test_token_review_returns_the_service_account(api: Api) -> None:
    name = new_name()
    subject = await review_token(api.client, await api.token_of(name))
    assert subject is not None
    assert subject.name == f"system:serviceaccount:default:{name}"
    assert subject.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert subject.uid


async def test_token_review_of_an_invalid_token_returns_none(api: Api) -> None:
    assert await review_token(api.client, "not a token of this cluster") is None


async def test_access_review_follows_the_role(api: Api) -> None:
    user, metric = f"user-{new_name()}", new_name()
    await api.allow(user, metric)

    async def is_allowed(user: str, resource: str) -> bool:
        attributes = {"verb": "list", "group": "external.metrics.k8s.io", "namespace": "default", "resource": resource}
        return (await review_access(api.client, Subject(user), {"resourceAttributes": attributes})).allowed

    assert await is_allowed(user, metric)
    assert not await is_allowed(user, "another-metric")
    assert not await is_allowed("another-user", metric)


@pytest.mark.apiserver
async def test_access_review_without_user_raises_bad_request(plane: ControlPlane) -> None:
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as client:
        with pytest.raises(BadRequest):
            await review_access(client, Subject(""), {"nonResourceAttributes": {"path": "/", "verb": "get"}})
