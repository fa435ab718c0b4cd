import pytest

from autoscaler.validation.problem import Word, forbidden, invalid, not_supported, required, too_long
from autoscaler.values.quantity import Quantity


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        pytest.param(required("spec.a"), "spec.a: Required value", id="a missing value without a reason"),
        pytest.param(required("spec.a", "why"), "spec.a: Required value: why", id="a missing value with a reason"),
        pytest.param(forbidden("spec.a", "why"), "spec.a: Forbidden: why", id="a forbidden value is not shown"),
        pytest.param(invalid("a", 0, "why"), "a: Invalid value: 0: why", id="a number is bare, even zero"),
        pytest.param(invalid("a", "", "why"), 'a: Invalid value: "": why', id="an empty text is shown"),
        pytest.param(invalid("a", Quantity.parse("-1"), "why"), 'a: Invalid value: "-1": why', id="a quantity"),
        pytest.param(invalid("a", '<"\n', "why"), r'a: Invalid value: "<\"\n": why', id="plain text is quoted as Go"),
        pytest.param(
            invalid("a", Word("<é\x01"), "why"),
            'a: Invalid value: "\\u003cé\\u0001": why',
            id="a word is quoted as JSON that is safe in HTML",
        ),
        pytest.param(
            not_supported("a", "C", ("B", "A")),
            'a: Unsupported value: "C": supported values: "A", "B"',
            id="supported words are sorted",
        ),
        pytest.param(
            too_long("a", 9), "a: Too long: may not be more than 9 bytes", id="something too long is not shown"
        ),
    ],
)
def test_a_problem_prints_as_in_kubernetes(problem, line):
    assert str(problem) == line
    assert problem.body == line.split(": ", 1)[1]
