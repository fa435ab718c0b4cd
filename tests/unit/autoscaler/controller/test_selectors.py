"""Whose pods are whose."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.algorithm.selection import who_selects
from autoscaler.controller.selectors import Selectors, parsed
from autoscaler.types.observation import Pod


def selectors(**texts):
    noted = Selectors()
    for name, text in texts.items():
        noted.note(f"shop/{name}", parsed(text))
    return noted


def pod(**labels):
    return Pod("pod", "Running", labels)


def test_different_values_of_one_label_cannot_overlap():
    noted = selectors(web="app=web", api="app=api")
    assert not noted.may_overlap("shop/web")


def test_the_same_value_may_and_so_may_another_label():
    assert selectors(web="app=web", twin="app=web").may_overlap("shop/web")
    assert selectors(web="app=web", front="tier=front").may_overlap("shop/web")
    assert selectors(web="app=web", any="app in (web,api)").may_overlap("shop/web")


def test_one_label_that_tells_them_apart_is_enough():
    noted = selectors(web="app=web,tier=front", api="app=api,tier=front")
    assert not noted.may_overlap("shop/web")


def test_other_namespaces_do_not_matter():
    noted = selectors(web="app=web")
    noted.note("bank/web", parsed("app=web"))
    assert not noted.may_overlap("shop/web")
    assert noted.who_selects("shop", [pod(app="web")]) == ("shop/web",)


def test_who_is_gone_selects_nothing():
    noted = selectors(web="app=web", twin="app=web")
    noted.forget("shop/twin")
    assert not noted.may_overlap("shop/web")
    assert noted.who_selects("shop", [pod(app="web")]) == ("shop/web",)
    noted.forget("shop/web")
    noted.forget("shop/web")
    assert noted.who_selects("shop", [pod(app="web")]) == ()
    assert not noted.may_overlap("shop/web")


def test_a_new_selector_takes_the_place_of_the_old():
    noted = selectors(web="app=web")
    noted.note("shop/web", parsed("app=api"))
    assert noted.who_selects("shop", [pod(app="web")]) == ()
    assert noted.who_selects("shop", [pod(app="api")]) == ("shop/web",)


TEXTS = st.sampled_from(["app=a", "app=b", "tier=x", "app=a,tier=x", "app in (a,b)", "!app", "app!=a", "tier", ""])
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "x"]))


@given(st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), TEXTS), st.lists(LABELS, max_size=4))
def test_the_index_finds_whom_asking_everyone_finds(texts, labels):
    noted, pods = selectors(**texts), [Pod("pod", "Running", each) for each in labels]
    everyone = {f"shop/{name}": parsed(text) for name, text in texts.items()}
    assert noted.who_selects("shop", pods) == who_selects(pods, everyone)
    for key, selector in everyone.items():
        its_own = [each for each in pods if selector.matches(each.labels)]
        if len(noted.who_selects("shop", its_own)) > 1:
            assert noted.may_overlap(key)
