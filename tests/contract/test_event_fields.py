"""Field selectors of events, as `kubectl describe` and `kubectl get events` use them."""

import pytest

from autoscaler.kube.errors import KubeError
from tests.contract.api import Api
from tests.contract.objects import new_name

EVENTS = "/api/v1/namespaces/default/events"


async def names(api: Api, selector: str) -> set[str]:
    found = await api.client.get(EVENTS, {"fieldSelector": selector})
    return {event["involvedObject"]["name"] for event in found["items"]}


async def test_events_are_selected_by_the_object_that_they_are_about(api: Api) -> None:
    first, second = new_name(), new_name()
    for name, kind, reason in (
        (first, "Normal", "SuccessfulRescale"),
        (first, "Warning", "FailedGetScale"),
        (second, "Normal", "SuccessfulRescale"),
    ):
        event = {
            "metadata": {"name": f"{name}.{reason.lower()}"},
            "involvedObject": {"kind": "PodAutoscaler", "namespace": "default", "name": name, "uid": f"uid-{name}"},
            "type": kind,
            "reason": reason,
            "source": {"component": f"steadyscale-{first}"},
            "apiVersion": "v1",
            "kind": "Event",
        }
        await api.client.create(EVENTS, event)
    target = "involvedObject.kind=PodAutoscaler,involvedObject.namespace=default"
    describe = f"{target},involvedObject.name={first},involvedObject.uid=uid-{first}"
    ours = f"source=steadyscale-{first}"

    assert await names(api, describe) == {first}
    assert await names(api, f"{ours},type=Normal") == {first, second}
    assert await names(api, f"{ours},type!=Normal") == {first}
    assert await names(api, f"{ours},reason==SuccessfulRescale,involvedObject.name!={first}") == {second}
    assert await names(api, f"{ours},metadata.name={second}.successfulrescale") == {second}


async def test_unknown_field_is_rejected(api: Api) -> None:
    with pytest.raises(KubeError, match=r"field label not supported: involvedObject\.color"):
        await api.client.get(EVENTS, {"fieldSelector": "involvedObject.color=red"})


async def test_malformed_selector_is_rejected(api: Api) -> None:
    with pytest.raises(KubeError, match="invalid selector: 'reason'; can't understand 'reason'"):
        await api.client.get(EVENTS, {"fieldSelector": "reason"})
