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
    return [difference.where for difference in result.differences]


def test_only_its_own_sections_are_run():
    assert validation.sections({"defaulting": [], "traces": []}) == ("defaulting",)


def test_agreement_has_no_differences():
    assert differences() == []


def test_another_answer_is_a_difference():
    assert differences(errors=[{"error": "x"}], apiServerErrorsSame=False, apiServerErrors=[]) == ["errors"]
    assert differences(apiServerErrorsSame=False, apiServerErrors=[{"error": "x"}]) == ["apiServerErrors"]


def test_an_update_is_held_against_the_old_object():
    assert differences(old=OBJECT) == ["errors", "apiServerErrors"]


def test_a_document_must_fail_to_decode_where_upstream_says_so_and_only_there():
    assert differences(object=WRONG, decodeError="no") == []
    assert differences(object=WRONG) == ["decodeError"]
    assert differences(decodeError="no") == ["decodeError"]


def test_defaults_are_compared():
    (result,) = map(run_case, validation.cases({"defaulting": [{"input": {}, "output": {"maxReplicas": 1}}]}))

    assert result.case == "defaulting/000"
    assert "output.maxReplicas" in [difference.where for difference in result.differences]
