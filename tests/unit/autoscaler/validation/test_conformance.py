from autoscaler.conformance import validation
from autoscaler.conformance.result import run_case

OBJECT = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}
CASE = {"id": "one", "op": "create", "featureGates": {}, "object": OBJECT, "errors": [], "apiServerErrorsSame": True}
WRONG = {"spec": {"maxReplicas": True}}


def differences(**changes):
    (result,) = map(run_case, validation.cases({"validation": [CASE | changes]}))
    return [difference.path for difference in result.differences]


def test_runner_recognizes_only_validation_vectors():
    assert validation.sections({"defaulting": [], "traces": []}) == ("defaulting",)


def test_equal_results_have_no_differences():
    assert differences() == []


def test_other_result_is_a_difference():
    assert differences(errors=[{"error": "x"}], apiServerErrorsSame=False, apiServerErrors=[]) == ["errors"]
    assert differences(apiServerErrorsSame=False, apiServerErrors=[{"error": "x"}]) == ["apiServerErrors"]


def test_update_is_compared_with_the_old_object():
    assert differences(old=OBJECT) == ["errors", "apiServerErrors"]


def test_document_must_fail_to_decode_exactly_where_upstream_fails():
    assert differences(object=WRONG, decodeError="no") == []
    assert differences(object=WRONG) == ["decodeError"]
    assert differences(decodeError="no") == ["decodeError"]


def test_defaults_are_compared():
    (result,) = map(run_case, validation.cases({"defaulting": [{"input": {}, "output": {"maxReplicas": 1}}]}))

    assert result.case == "defaulting/000"
    assert "output.maxReplicas" in [difference.path for difference in result.differences]
