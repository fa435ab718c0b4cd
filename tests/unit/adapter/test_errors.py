"""The error tree in the docstring of ``adapter.errors``."""

import re

from adapter import errors


def error_types(root: type[errors.AdapterError]) -> set[type[errors.AdapterError]]:
    own = (child for child in root.__subclasses__() if child.__module__ == errors.__name__)
    return {root}.union(*(error_types(child) for child in own))


def test_docstring_tree_shows_every_error_with_its_status_code():
    drawn = dict(re.findall(r"[├└]── (\w+)(?: +(\d{3}))?", errors.__doc__ or ""))
    defined = {error.__name__: error for error in error_types(errors.AdapterError)}
    defined.pop("AdapterError")

    assert drawn.keys() - {"ConfigInvalid"} == defined.keys()
    assert {name: code for name, code in drawn.items() if code} == {
        name: str(defined[name].code) for name, code in drawn.items() if code
    }


def test_each_unavailable_metric_error_has_a_failure_class_of_its_own():
    kinds = error_types(errors.MetricUnavailable) - {errors.MetricUnavailable, errors.BackendError}
    kinds -= {errors.BackendBusy}  # shares the class of BackendRejected

    assert len({kind.failure for kind in kinds}) == len(kinds)
