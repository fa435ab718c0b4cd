"""Whose pods they are."""

import pytest

from autoscaler.algorithm.selection import refuse_selector, who_selects
from autoscaler.values.selector import parse
from tests.builders import make_observation, make_pod, make_pods, make_target

WEB, ALL, DB = parse("app=web"), parse(""), parse("app=db")


@pytest.mark.parametrize(
    ("pods", "selectors", "expected"),
    [
        pytest.param(make_pods(2), {"shop/web": WEB}, ("shop/web",), id="one autoscaler selects them"),
        pytest.param(make_pods(2), {"shop/web": WEB, "shop/db": DB}, ("shop/web",), id="another selects others"),
        pytest.param(
            make_pods(2), {"shop/web": WEB, "shop/all": ALL}, ("shop/all", "shop/web"), id="two, in the order of names"
        ),
        pytest.param(
            (make_pod("db", labels={"app": "db"}), make_pod()),
            {"shop/web": WEB, "shop/db": DB},
            ("shop/db", "shop/web"),
            id="two, each with a pod of its own",
        ),
        pytest.param(
            make_pods(1), {"c": WEB, "b": WEB, "a": WEB}, ("a", "b"), id="of three two are enough to complain of"
        ),
        pytest.param((), {"shop/web": WEB, "shop/all": ALL}, (), id="without pods nobody selects anything"),
    ],
)
def test_who_selects(pods, selectors, expected):
    assert who_selects(pods, selectors) == expected


@pytest.mark.parametrize("selecting", [(), ("shop/web",)])
def test_a_sound_selector_is_not_refused(selecting):
    assert refuse_selector(make_target(), make_observation(selecting=selecting)) is None
