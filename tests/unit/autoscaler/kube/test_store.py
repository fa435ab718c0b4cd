"""What a store holds when a list and a write of our own overtake each other."""

from typing import Any, cast

import pytest

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.store import Store
from autoscaler.kube.watch import Change, Happened, Listing, News, Watched

KEY = "shop/web"


def thing(version: int, size: int) -> Json:
    return {"metadata": {"namespace": "shop", "name": "web", "resourceVersion": str(version)}, "size": size}


def listing(*things: Json) -> Listing:
    return Listing(things)


@pytest.fixture
def store() -> Store[int]:
    return Store(cast("KubeClient", None), Watched("/things"), lambda content: int(content["size"]))


def hear(store: Store[int], news: News) -> None:
    heard: Any = store
    if isinstance(news, Listing):
        heard._replace(news)
    else:
        heard._change(news.happened, news.object)


def test_a_list_that_was_under_way_does_not_undo_what_we_wrote(store):
    hear(store, listing(thing(1, size=3)))
    store.learn(thing(2, size=12))
    hear(store, listing(thing(1, size=3)))
    assert store.get(KEY) == 12


def test_once_the_watch_has_told_of_our_write_a_list_is_believed_again(store):
    """A cluster restored from a backup counts its versions anew."""
    hear(store, listing(thing(1, size=3)))
    store.learn(thing(2, size=12))
    hear(store, Change(Happened.MODIFIED, thing(2, size=12)))
    hear(store, listing(thing(1, size=3)))
    assert store.get(KEY) == 3


def test_what_is_no_longer_listed_is_gone_though_we_wrote_it(store):
    store.learn(thing(2, size=12))
    hear(store, listing())
    assert store.get(KEY) is None


def test_a_later_version_wins_over_ours(store):
    store.learn(thing(2, size=12))
    hear(store, listing(thing(3, size=7)))
    assert store.get(KEY) == 7
