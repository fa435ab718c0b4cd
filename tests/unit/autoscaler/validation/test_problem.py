import pytest

from autoscaler.validation.problem import EnumValue, forbidden, invalid, not_supported, required, too_long
from autoscaler.values.quantity import Quantity


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        pytest.param(required("spec.a"), "spec.a: Required value", id="missing value without detail"),
        pytest.param(required("spec.a", "why"), "spec.a: Required value: why", id="missing value with detail"),
        pytest.param(forbidden("spec.a", "why"), "spec.a: Forbidden: why", id="forbidden value is not shown"),
        pytest.param(invalid("a", 0, "why"), "a: Invalid value: 0: why", id="number without quotes"),
        pytest.param(invalid("a", "", "why"), 'a: Invalid value: "": why', id="empty string"),
        pytest.param(invalid("a", Quantity.parse("-1"), "why"), 'a: Invalid value: "-1": why', id="quantity"),
        pytest.param(invalid("a", '<"\n', "why"), r'a: Invalid value: "<\"\n": why', id="string quoted like in Go"),
        pytest.param(
            invalid("a", EnumValue("<é\x01"), "why"),
            'a: Invalid value: "\\u003cé\\u0001": why',
            id="enum value quoted as JSON with HTML escapes",
        ),
        pytest.param(
            not_supported("a", "C", ("B", "A")),
            'a: Unsupported value: "C": supported values: "A", "B"',
            id="supported values are sorted",
        ),
        pytest.param(too_long("a", 9), "a: Too long: may not be more than 9 bytes", id="too long value is not shown"),
    ],
)
def test_problem_is_formatted_like_in_kubernetes(problem, line):
    assert str(problem) == line
    assert problem.body == line.split(": ", 1)[1]
