"""What the informers store of autoscalers."""

from typing import Any

from autoscaler.kube.autoscalers import _trimmed_hpa, trimmed_autoscaler
from autoscaler.types.autoscaler import Metadata

MESSAGE = "the HPA was able to successfully calculate a replica count from external metric queue(nil)"


def content(**annotations: str) -> dict[str, Any]:
    condition = {"type": "ScalingActive", "status": "True", "message": MESSAGE[:20] + MESSAGE[20:]}
    return {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "generation": 2,
            "resourceVersion": "7",
            "uid": "u",
            "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", **annotations},
        },
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 5},
        "status": {"desiredReplicas": 3, "conditions": [condition], "controllerState": "v1;at="},
    }


def test_labels_and_unused_annotations_are_not_stored():
    assert trimmed_autoscaler(content()).metadata == Metadata("web", "shop", "", 2, "7", "u")


def test_annotation_that_pauses_is_stored():
    stored = trimmed_autoscaler(content(**{"steadyscale.dev/paused": "true"}))
    assert stored.metadata.annotations == {"steadyscale.dev/paused": "true"}


def test_spec_and_status_are_stored():
    stored = trimmed_autoscaler(content())
    assert (stored.spec.max_replicas, stored.status.desired_replicas) == (5, 3)
    assert stored.status.controller_state == "v1;at="


def test_equal_texts_of_two_autoscalers_are_the_same_object():
    first, second = (trimmed_autoscaler(content()).status.conditions[0].message for _ in range(2))
    assert first is second


def test_only_name_and_target_of_an_hpa_are_stored():
    stored = _trimmed_hpa(content())
    assert stored.metadata == Metadata("web", "shop")
    assert (stored.spec.scale_target_ref.name, stored.spec.max_replicas) == ("web", 0)
    assert stored.status.conditions == ()
