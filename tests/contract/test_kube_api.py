"""What we rely on in the Kubernetes API, said once and run twice: on the fake, and on a real API server."""

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import pytest

from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.kube.errors import AlreadyExists, BadRequest, Conflict, NotFound
from autoscaler.kube.reviews import Subject, review_access, review_token
from autoscaler.kube.watch import Change, Happened, Listing, News, Watched, follow
from tests.contract.api import Api
from tests.control_plane.cluster import ControlPlane

SECRETS = "/api/v1/namespaces/default/secrets"


def secret(name: str, **texts: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": texts}


def new_name() -> str:
    return f"it-{uuid.uuid4().hex[:8]}"


async def test_what_was_created_can_be_read(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name, key="YQ=="))
    assert (await api.client.get(f"{SECRETS}/{name}"))["data"] == {"key": "YQ=="}


async def test_what_is_not_there_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound):
        await api.client.get(f"{SECRETS}/{new_name()}")


async def test_of_two_who_create_the_same_the_second_is_told(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name))
    with pytest.raises(AlreadyExists):
        await api.client.create(SECRETS, secret(name))


async def test_of_two_who_replace_the_same_version_the_second_is_told(api: Api) -> None:
    name = new_name()
    read = await api.client.create(SECRETS, secret(name))
    await api.client.replace(f"{SECRETS}/{name}", {**read, "data": {"by": "YQ=="}})
    with pytest.raises(Conflict):
        await api.client.replace(f"{SECRETS}/{name}", {**read, "data": {"by": "Yg=="}})
    assert (await api.client.get(f"{SECRETS}/{name}"))["data"] == {"by": "YQ=="}


async def test_a_patch_changes_what_it_names_and_leaves_the_rest(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name, a="YQ==", b="YQ=="))
    patched = await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "Yg==", "b": None}})
    assert patched["data"] == {"a": "Yg=="}


async def test_a_patch_of_an_older_version_is_a_conflict(api: Api) -> None:
    name = new_name()
    read = await api.client.create(SECRETS, secret(name))
    await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "YQ=="}})
    stale = {"metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}, "data": {"a": "Yg=="}}
    with pytest.raises(Conflict):
        await api.client.patch(f"{SECRETS}/{name}", stale)


async def test_a_watch_tells_what_is_there_and_then_what_happens(api: Api) -> None:
    name = new_name()
    await api.client.create(SECRETS, secret(name))
    heard: list[News] = []
    async with asyncio.timeout(20), aclosing(follow(api.client, Watched(SECRETS, f"metadata.name={name}"))) as news:
        async for one in news:
            heard.append(one)
            if len(heard) == 1:
                await api.client.patch(f"{SECRETS}/{name}", {"data": {"a": "YQ=="}})
            else:
                break
    first, second = heard
    assert isinstance(first, Listing)
    assert [thing["metadata"]["name"] for thing in first.objects] == [name]
    assert isinstance(second, Change)
    assert (second.happened, second.object["data"]) == (Happened.MODIFIED, {"a": "YQ=="})


async def test_a_good_token_names_its_owner(api: Api) -> None:
    name = new_name()
    subject = await review_token(api.client, await api.token_of(name))
    assert subject is not None
    assert subject.name == f"system:serviceaccount:default:{name}"
    assert subject.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert subject.uid


async def test_a_bad_token_is_nobodys(api: Api) -> None:
    assert await review_token(api.client, "not a token of this cluster") is None


async def test_access_is_what_the_role_says_and_no_more(api: Api) -> None:
    user, metric = f"user-{new_name()}", new_name()
    await api.allow(user, metric)

    async def may(who: str, resource: str) -> bool:
        asked = {"verb": "list", "group": "external.metrics.k8s.io", "namespace": "default", "resource": resource}
        return (await review_access(api.client, Subject(who), {"resourceAttributes": asked})).allowed

    assert await may(user, metric)
    assert not await may(user, "another-metric")
    assert not await may("somebody-else", metric)


@pytest.mark.apiserver
async def test_a_review_of_nobody_is_refused_as_wrong(plane: ControlPlane) -> None:
    async with KubeClient.open(await connect(plane.kubeconfig("admin"))) as client:
        with pytest.raises(BadRequest):
            await review_access(client, Subject(""), {"nonResourceAttributes": {"path": "/", "verb": "get"}})
