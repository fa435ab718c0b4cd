from datetime import timedelta

import pytest

from adapter.decoding.problem import ConfigInvalid, Problem


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        pytest.param(Problem("a.b", "is required"), "a.b: is required", id="message"),
        pytest.param(Problem("", "not YAML"), "not YAML", id="whole document"),
        pytest.param(
            Problem("a", "unknown key", hint="did you mean 'b'?"), "a: unknown key; did you mean 'b'?", id="hint"
        ),
        pytest.param(Problem("a", "must be at least 1", value=0), "a: must be at least 1, is 0", id="number"),
        pytest.param(Problem("a", "must be a name", value="b/c"), "a: must be a name, is 'b/c'", id="text"),
        pytest.param(
            Problem("a", "too short", value=timedelta(milliseconds=1500)), "a: too short, is 1s500ms", id="duration"
        ),
        pytest.param(Problem("a", "bad", value=0.5, hint="use 1"), "a: bad, is 0.5; use 1", id="value and hint"),
    ],
)
def test_text_contains_path_message_value_and_hint(problem: Problem, text: str):
    assert str(problem) == text


@pytest.mark.parametrize(
    ("path", "expected"), [("rules[0]", "data[c].rules[0]"), ("[0].name", "data[c][0].name"), ("", "data[c]")]
)
def test_below_puts_the_path_of_the_outer_document_first(path: str, expected: str):
    assert Problem(path, "").below("data[c]").path == expected


def test_exception_has_one_line_for_each_problem():
    error = ConfigInvalid([Problem("a", "is required"), Problem("b", "unknown key")])

    assert error.messages == ("a: is required", "b: unknown key")
    assert str(error) == "a: is required\nb: unknown key"
