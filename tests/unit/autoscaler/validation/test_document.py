"""All problems of a document: values that cannot be decoded, violated rules, annotations."""

import pytest

from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.record import Record
from autoscaler.validation.document import document_problems
from autoscaler.wire.undecodable import undecodable_values

SPEC = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3}


class Ratio(Record):
    """A record with a type that no field of an autoscaler has."""

    ratio: float


def problems(annotations: dict[str, str]) -> list[str]:
    document = {"metadata": {"name": "web", "namespace": "shop", "annotations": annotations}, "spec": SPEC}
    found = document_problems(document, gates=FeatureGates(), settings=Settings())
    return [str(problem) for problem in found]


@pytest.mark.parametrize("value", ["true", "false"])
def test_pause_annotation_is_true_or_false(value: str) -> None:
    assert problems({"steadyscale.dev/paused": value}) == []


def test_other_value_of_the_pause_annotation_is_a_problem() -> None:
    expected = 'must be "true" or "false", is "yes"; any other value pauses the autoscaler'
    assert problems({"steadyscale.dev/paused": "yes"}) == [f"metadata.annotations[steadyscale.dev/paused]: {expected}"]


def test_unsupported_type_is_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="unsupported type"):
        undecodable_values({"ratio": 1.5}, Ratio)
