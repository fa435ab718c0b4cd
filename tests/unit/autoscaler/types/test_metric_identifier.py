"""The display name of a metric."""

import pytest

from autoscaler.types.spec import MetricIdentifier
from autoscaler.values.selector import LabelSelector, LabelSelectorRequirement


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, "queue"),
        (LabelSelector(), "queue"),
        (LabelSelector({"b": "2", "a": "1"}), "queue{a=1,b=2}"),
        (LabelSelector({"a": "1"}, (LabelSelectorRequirement("b", "In", ("2", "3")),)), "queue{a=1,b in (2,3)}"),
        (LabelSelector({}, (LabelSelectorRequirement("b", "Like", ("2",)),)), "queue{<error>}"),
    ],
)
def test_display_name_has_the_selector(selector, expected):
    assert str(MetricIdentifier("queue", selector)) == expected
