from typing import Any

import pytest

from adapter.auth.attributes import NonResourceAttributes
from adapter.auth.authentication import Caller
from adapter.auth.authorizer import SubjectAccessAuthorizer
from adapter.config.model import Auth
from adapter.errors import AccessDenied
from autoscaler.kube.reviews import AccessDecision, Subject

PATH = NonResourceAttributes("get", "/apis")


class Reviewer:
    """Allows every user except mallory, and records the reviews."""

    def __init__(self) -> None:
        self.reviews: list[str] = []

    async def review(self, subject: Subject, attributes: dict[str, Any]) -> AccessDecision:
        self.reviews.append(subject.name + attributes["nonResourceAttributes"]["path"])
        return AccessDecision(subject.name != "mallory", "")


@pytest.mark.parametrize("groups", [1, 1000], ids=["short key", "key replaced by its digest"])
async def test_result_is_cached_for_equal_caller_and_attributes_only(groups: int):
    reviewer = Reviewer()
    authorizer = SubjectAccessAuthorizer(reviewer.review, Auth())
    alice = Caller("alice", groups=tuple(f"group-{number}" for number in range(groups)))
    for _ in range(2):
        await authorizer.authorize(alice, PATH)
        await authorizer.authorize(alice, NonResourceAttributes("get", "/version"))
        with pytest.raises(AccessDenied):
            await authorizer.authorize(Caller("mallory", groups=alice.groups), PATH)

    assert reviewer.reviews == ["alice/apis", "alice/version", "mallory/apis"]


async def test_long_key_is_stored_as_its_digest():
    authorizer = SubjectAccessAuthorizer(Reviewer().review, Auth())
    await authorizer.authorize(Caller("alice"), NonResourceAttributes("get", "/" + "x" * 60_000))
    (key,) = authorizer._cache._entries

    assert isinstance(key, bytes)
    assert len(key) == 32
