"""The index of target selectors."""

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.algorithm.selection import selecting_autoscalers
from autoscaler.controller.selectors import TargetSelectors, parse_cached
from autoscaler.types.observation import Pod


def selectors(**texts):
    index = TargetSelectors()
    for name, text in texts.items():
        index.update(f"shop/{name}", parse_cached(text))
    return index


def pod(**labels):
    return Pod("pod", "Running", labels)


def test_selectors_with_different_values_of_a_label_do_not_overlap():
    index = selectors(web="app=web", api="app=api")
    assert not index.may_overlap("shop/web")


def test_selectors_with_equal_values_or_different_labels_may_overlap():
    assert selectors(web="app=web", other="app=web").may_overlap("shop/web")
    assert selectors(web="app=web", front="tier=front").may_overlap("shop/web")
    assert selectors(web="app=web", any="app in (web,api)").may_overlap("shop/web")


def test_one_differing_label_value_excludes_an_overlap():
    index = selectors(web="app=web,tier=front", api="app=api,tier=front")
    assert not index.may_overlap("shop/web")


def test_selectors_of_other_namespaces_do_not_overlap():
    index = selectors(web="app=web")
    index.update("bank/web", parse_cached("app=web"))
    assert not index.may_overlap("shop/web")
    assert index.selecting_autoscalers("shop", [pod(app="web")]) == ("shop/web",)


def test_removed_autoscaler_selects_no_pods():
    index = selectors(web="app=web", other="app=web")
    index.remove("shop/other")
    assert not index.may_overlap("shop/web")
    assert index.selecting_autoscalers("shop", [pod(app="web")]) == ("shop/web",)
    index.remove("shop/web")
    index.remove("shop/web")
    assert index.selecting_autoscalers("shop", [pod(app="web")]) == ()
    assert not index.may_overlap("shop/web")


def test_updated_selector_replaces_the_old_one():
    index = selectors(web="app=web")
    index.update("shop/web", parse_cached("app=api"))
    assert index.selecting_autoscalers("shop", [pod(app="web")]) == ()
    assert index.selecting_autoscalers("shop", [pod(app="api")]) == ("shop/web",)


def test_same_selector_again_changes_nothing():
    index = selectors(web="app=web")
    index.update("shop/web", parse_cached("app=web"))
    assert index.selecting_autoscalers("shop", [pod(app="web")]) == ("shop/web",)


def test_removed_selectors_leave_nothing_in_the_index_of_their_namespace():
    index = selectors(web="app=web", api="tier=x")
    index.remove("shop/api")
    rest = index._namespaces["shop"]
    assert (list(rest.labels), list(rest.by_label), list(rest.requiring_key)) == (
        ["shop/web"],
        [("app", "web")],
        ["app"],
    )


def test_selector_that_requires_two_values_of_a_label_hides_no_overlap():
    index = selectors(web="app=a", tier="tier=x", never="app=b,app=c")
    assert index.may_overlap("shop/web")
    index.remove("shop/never")
    assert index.may_overlap("shop/web")


TEXTS = st.sampled_from(
    ["app=a", "app=b", "app=a,app=b", "tier=x", "app=a,tier=x", "app in (a,b)", "!app", "app!=a", "tier", ""]
)
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "x"]))


@given(st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), TEXTS), st.lists(LABELS, max_size=4))
def test_index_finds_the_same_autoscalers_as_a_full_scan(texts, labels):
    index, pods = selectors(**texts), [Pod("pod", "Running", pod_labels) for pod_labels in labels]
    all_selectors = {f"shop/{name}": parse_cached(text) for name, text in texts.items()}
    assert index.selecting_autoscalers("shop", pods) == selecting_autoscalers(pods, all_selectors)
    for key, selector in all_selectors.items():
        selected = [candidate for candidate in pods if selector.matches(candidate.labels)]
        if len(index.selecting_autoscalers("shop", selected)) > 1:
            assert index.may_overlap(key)
