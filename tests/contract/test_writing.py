"""Writes: versions, generations, subresources, defaults and error messages."""

import pytest

from autoscaler.kube.errors import BadRequest, Conflict, KubeError, NotFound
from tests.contract.api import Api
from tests.contract.objects import DEPLOYMENTS, WIDGETS, define, deployment, new_name, widget, widget_definition

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def error_message(api: Api, method: str, path: str, body: object = None) -> str | None:
    with pytest.raises(KubeError) as caught:
        await api.client.request(method, path, body=body)  # type: ignore[arg-type]
    return caught.value.server_message


async def test_not_found_names_the_object(api: Api) -> None:
    name = new_name()
    assert await error_message(api, "GET", f"{DEPLOYMENTS}/{name}") == f'deployments.apps "{name}" not found'
    assert await error_message(api, "GET", f"{DEPLOYMENTS}/{name}/scale") == f'deployments.apps "{name}" not found'
    assert await error_message(api, "GET", f"{MAPS}/{name}") == f'configmaps "{name}" not found'


async def test_kind_that_is_not_served_raises_not_found(api: Api) -> None:
    with pytest.raises(NotFound):
        await api.client.get("/apis/nobody.example/v1/namespaces/default/things/one")


async def test_conflict_has_the_message_of_kubernetes(api: Api) -> None:
    name = new_name()
    first = await api.client.create(MAPS, {"metadata": {"name": name}})
    await api.client.patch(f"{MAPS}/{name}", {"data": {"a": "1"}})
    reason = "the object has been modified; please apply your changes to the latest version and try again"
    assert await error_message(api, "PUT", f"{MAPS}/{name}", {**first, "data": {"a": "2"}}) == (
        f'Operation cannot be fulfilled on configmaps "{name}": {reason}'
    )


async def test_write_with_another_uid_is_rejected(api: Api) -> None:
    name = new_name()
    await api.client.create(MAPS, {"metadata": {"name": name}})
    another = {"metadata": {"name": name, "uid": "of-another-object"}}
    with pytest.raises(Conflict, match="UID in precondition"):
        await api.client.replace(f"{MAPS}/{name}", another)
    with pytest.raises(BadRequest, match="field is immutable"):
        await api.client.patch(f"{MAPS}/{name}", another)


async def test_unchanged_write_keeps_the_resource_version(api: Api) -> None:
    name = new_name()
    first = await api.client.create(MAPS, {"metadata": {"name": name}, "data": {"a": "1"}})
    again = await api.client.patch(f"{MAPS}/{name}", {"data": {"a": "1"}})
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_put_creates_a_missing_lease(api: Api) -> None:
    name = new_name()
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    put = await api.client.replace(f"{LEASES}/{name}", {**body, "spec": {"holderIdentity": "me"}})
    assert put["spec"]["holderIdentity"] == "me"


async def test_put_with_the_uid_of_a_deleted_lease_raises_conflict(api: Api) -> None:
    name = new_name()
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    known = await api.client.create(LEASES, {**body, "spec": {"holderIdentity": "me"}})
    await api.client.request("DELETE", f"{LEASES}/{name}")
    with pytest.raises(Conflict, match="UID in precondition"):
        await api.client.replace(f"{LEASES}/{name}", known)


async def test_generation_counts_changes_of_the_spec_but_not_of_the_status(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    made = await api.client.create(WIDGETS, {**widget(name, size=1), "status": {"size": 9}})
    assert made["metadata"]["generation"] == 1
    assert "status" not in made
    status = await api.client.patch(f"{WIDGETS}/{name}/status", {"spec": {"size": 7}, "status": {"size": 1}})
    assert (status["metadata"]["generation"], status["spec"]["size"], status["status"]["size"]) == (1, 1, 1)
    edited = await api.client.patch(f"{WIDGETS}/{name}", {"spec": {"size": 2}, "status": {"size": 8}})
    assert (edited["metadata"]["generation"], edited["spec"]["size"], edited["status"]["size"]) == (2, 2, 1)


async def test_status_of_an_older_version_raises_conflict(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    made = await api.client.create(WIDGETS, widget(name, size=1))
    await api.client.patch(f"{WIDGETS}/{name}", {"spec": {"size": 2}})
    version = made["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await api.client.patch(
            f"{WIDGETS}/{name}/status", {"metadata": {"resourceVersion": version}, "status": {"size": 1}}
        )


async def test_custom_resource_cannot_be_replaced_without_resource_version(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    await api.client.create(WIDGETS, widget(name, size=1))
    with pytest.raises(BadRequest, match="resourceVersion"):
        await api.client.replace(f"{WIDGETS}/{name}", widget(name, size=2))


async def test_schema_applies_defaults_pruning_and_validation(api: Api) -> None:
    await define(api.client, widget_definition())
    name = new_name()
    made = await api.client.create(WIDGETS, widget(name, size=1, weight=3))
    assert made["spec"] == {"size": 1, "colour": "grey"}
    message = await error_message(api, "POST", WIDGETS, widget(new_name(), size=-1, colour="blue"))
    assert message is not None
    assert "spec.size: Invalid value: -1" in message
    assert 'spec.colour: Unsupported value: "blue": supported values: "grey", "red"' in message


async def test_deleted_object_is_not_found(api: Api) -> None:
    name = new_name()
    await api.client.create(DEPLOYMENTS, deployment(name, 0))
    await api.client.request("DELETE", f"{DEPLOYMENTS}/{name}")
    with pytest.raises(NotFound):
        await api.client.get(f"{DEPLOYMENTS}/{name}")
