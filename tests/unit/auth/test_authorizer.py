"""What is remembered of leave, and how little of it is held."""

from typing import Any

import pytest

from adapter.auth.attributes import NonResourceAttributes, attributes_of
from adapter.auth.authorizer import Access
from adapter.auth.caller import Caller
from adapter.errors import Forbidden
from autoscaler.kube.reviews import Subject, Verdict

PATH = NonResourceAttributes("get", "/apis")


class Reviewer:
    """Allows everyone but mallory, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def review(self, subject: Subject, wanted: dict[str, Any]) -> Verdict:
        self.asked.append(subject.name + wanted["nonResourceAttributes"]["path"])
        return Verdict(subject.name != "mallory", "")


@pytest.mark.parametrize("groups", [1, 1000], ids=["few groups", "many groups"])
async def test_the_same_question_is_asked_once_and_no_other_is_answered_with_it(groups: int):
    reviewer = Reviewer()
    access = Access(reviewer.review)
    alice = Caller("alice", groups=tuple(f"group-{number}" for number in range(groups)))
    for _ in range(2):
        await access.authorize(alice, PATH)
        await access.authorize(alice, NonResourceAttributes("get", "/version"))
        with pytest.raises(Forbidden):
            await access.authorize(Caller("mallory", groups=alice.groups), PATH)

    assert reviewer.asked == ["alice/apis", "alice/version", "mallory/apis"]


async def test_of_a_long_question_only_a_digest_is_held():
    access = Access(Reviewer().review)
    await access.authorize(Caller("alice"), NonResourceAttributes("get", "/" + "x" * 60_000))
    (key,) = access._memory._answers

    assert isinstance(key, bytes)
    assert len(key) == 32


def test_long_paths_of_strangers_are_not_held():
    path = "/" + "x" * 60_000

    assert attributes_of("GET", path, {}) is not attributes_of("GET", path, {})
