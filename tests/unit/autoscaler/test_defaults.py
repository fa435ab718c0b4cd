import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.defaults import with_defaults
from autoscaler.wire import decode_spec, encode

UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def defaulted(**spec):
    return encode(with_defaults(decode_spec(spec)))


def external(**fallback):
    return {
        "type": "External",
        "external": {"metric": {"name": "q"}, "target": {"type": "Value"}, "fallback": fallback},
    }


def test_default_metric_is_cpu_at_80_percent():
    assert defaulted(metrics=[])["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]


@pytest.mark.parametrize(
    ("written", "replicas"),
    [pytest.param(None, 1, id="absent"), pytest.param(0, 0, id="zero")],
)
def test_min_replicas_defaults_to_one(written, replicas):
    assert defaulted(minReplicas=written)["minReplicas"] == replicas


def test_absent_behavior_is_not_filled_in():
    assert "behavior" not in defaulted()


@pytest.mark.parametrize(
    ("written", "behavior"),
    [
        pytest.param({}, {"scaleUp": UP, "scaleDown": DOWN}, id="empty behavior gets both directions"),
        pytest.param(
            {"scaleDown": {"stabilizationWindowSeconds": 7, "tolerance": "0.2"}},
            {"scaleUp": UP, "scaleDown": DOWN | {"stabilizationWindowSeconds": 7, "tolerance": "200m"}},
            id="set fields are kept",
        ),
        pytest.param(
            {"scaleUp": {"policies": []}},
            {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}, "scaleDown": DOWN},
            id="empty list of policies is kept",
        ),
    ],
)
def test_behavior_defaults_are_filled_in(written, behavior):
    assert defaulted(behavior=written)["behavior"] == behavior


def test_fallback_defaults_to_three_minutes_and_static():
    assert defaulted(metrics=[external(replicas=5)])["metrics"][0]["external"]["fallback"] == {
        "replicas": 5,
        "failureDurationSeconds": 180,
        "strategy": "Static",
    }


def test_set_fields_of_a_fallback_are_kept():
    written = {"replicas": 5, "failureDurationSeconds": 600, "strategy": "UseMax"}

    assert defaulted(metrics=[external(**written)])["metrics"][0]["external"]["fallback"] == written


def test_absent_mode_is_not_filled_in():
    assert "mode" not in defaulted()


rules = st.fixed_dictionaries(
    {}, optional={"selectPolicy": st.just("Min"), "stabilizationWindowSeconds": st.just(9), "policies": st.just([])}
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "minReplicas": st.integers(0, 3),
        "metrics": st.lists(st.just(external(replicas=1)), max_size=2),
        "behavior": st.fixed_dictionaries({}, optional={"scaleUp": rules, "scaleDown": rules}),
    },
)


@given(specs)
def test_defaults_are_idempotent(document):
    once = with_defaults(decode_spec(document))

    assert with_defaults(once) == once
