"""The target's selector, and autoscalers that select the same pods."""

import pytest

from autoscaler.algorithm.selection import check_selector, selecting_autoscalers
from autoscaler.values.selector import parse
from tests.builders import make_observation, make_pod, make_pods, make_target

WEB, ALL, DB = parse("app=web"), parse(""), parse("app=db")


@pytest.mark.parametrize(
    ("pods", "selectors", "expected"),
    [
        pytest.param(make_pods(2), {"shop/web": WEB}, ("shop/web",), id="one autoscaler"),
        pytest.param(
            make_pods(2), {"shop/web": WEB, "shop/db": DB}, ("shop/web",), id="another autoscaler selects other pods"
        ),
        pytest.param(
            make_pods(2),
            {"shop/web": WEB, "shop/all": ALL},
            ("shop/all", "shop/web"),
            id="two autoscalers, sorted by name",
        ),
        pytest.param(
            (make_pod("db", labels={"app": "db"}), make_pod()),
            {"shop/web": WEB, "shop/db": DB},
            ("shop/db", "shop/web"),
            id="two autoscalers with different pods",
        ),
        pytest.param(make_pods(1), {"c": WEB, "b": WEB, "a": WEB}, ("a", "b"), id="at most two are returned"),
        pytest.param((), {"shop/web": WEB, "shop/all": ALL}, (), id="no pods"),
    ],
)
def test_autoscalers_that_select_pods(pods, selectors, expected):
    assert selecting_autoscalers(pods, selectors) == expected


@pytest.mark.parametrize("selected_by", [(), ("shop/web",)])
def test_valid_selector_has_no_problem(selected_by):
    assert check_selector(make_target(), make_observation(selected_by=selected_by)) is None
