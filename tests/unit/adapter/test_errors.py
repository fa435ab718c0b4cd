"""The tree drawn in the module is the tree that is there."""

import re

from adapter import errors


def leaves(root: type[errors.AdapterError]) -> set[type[errors.AdapterError]]:
    return {root}.union(*(leaves(child) for child in root.__subclasses__() if child.__module__ == errors.__name__))


def test_the_drawing_shows_every_error_and_its_code():
    drawn = dict(re.findall(r"[├└]── (\w+)(?: +(\d{3}))?", errors.__doc__ or ""))
    there = {each.__name__: each for each in leaves(errors.AdapterError)} | {}
    there.pop("AdapterError")

    assert drawn.keys() == there.keys()
    assert {name: code for name, code in drawn.items() if code} == {
        name: str(there[name].code) for name, code in drawn.items() if code
    }


def test_every_unavailable_metric_has_a_class_of_its_own():
    kinds = leaves(errors.MetricUnavailable) - {errors.MetricUnavailable, errors.BackendError}
    kinds -= {errors.BackendBusy}  # a refusal to whoever asks; what it differs in is when to ask again

    assert len({kind.failure for kind in kinds}) == len(kinds)
