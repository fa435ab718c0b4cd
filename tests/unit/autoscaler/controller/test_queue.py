"""Which autoscaler to look at next, and when."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.controller.queue import WorkQueue
from tests.builders import NOW, later


def drained(queue, now=NOW):
    taken = []
    while (key := queue.take(now)) is not None:
        queue.done(key)
        taken.append(key)
    return taken


def test_an_empty_queue_has_nothing_to_take():
    queue = WorkQueue()

    assert (queue.take(NOW), queue.next_due()) == (None, None)


def test_keys_are_taken_in_the_order_they_were_added():
    queue = WorkQueue()
    for key in "bac":
        queue.add(key)

    assert drained(queue) == ["b", "a", "c"]


def test_the_same_key_twice_is_one_visit():
    queue = WorkQueue()
    queue.add("a")
    queue.add("a")
    queue.add_at("a", NOW)

    assert drained(queue) == ["a"]


def test_a_key_is_not_ready_before_it_is_due():
    queue = WorkQueue()
    queue.add_at("a", later(10))

    assert queue.take(later(9)) is None
    assert queue.next_due() == later(10)
    assert queue.take(later(10)) == "a"
    assert queue.next_due() is None


def test_the_earlier_of_two_due_times_counts():
    queue = WorkQueue()
    queue.add_at("a", later(10))
    queue.add_at("a", later(5))
    queue.add_at("a", later(20))

    assert queue.next_due() == later(5)
    assert drained(queue, later(5)) == ["a"]
    assert (drained(queue, later(30)), queue.next_due()) == ([], None)


def test_keys_that_are_due_are_taken_in_the_order_of_their_times():
    queue = WorkQueue()
    for key, seconds in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_at(key, later(seconds))

    assert drained(queue, later(9)) == ["a", "b", "c"]


def test_a_key_wanted_during_its_visit_is_visited_once_more_afterwards():
    queue = WorkQueue()
    queue.add("a")
    assert queue.take(NOW) == "a"
    queue.add("a")
    queue.add("a")

    assert queue.take(NOW) is None

    queue.done("a")

    assert drained(queue) == ["a"]


def test_a_key_that_falls_due_during_its_visit_waits_for_its_end():
    queue = WorkQueue()
    queue.add("a")
    assert queue.take(NOW) == "a"
    queue.add_at("a", later(1))

    assert queue.take(later(2)) is None

    queue.done("a")

    assert queue.take(later(2)) == "a"


KEYS = st.sampled_from("abcd")


class Visits(RuleBasedStateMachine):
    """A queue beside the plainest model of it: what is wanted now, what is wanted when, and who is being visited."""

    def __init__(self):
        super().__init__()
        self.queue = WorkQueue()
        self.now = NOW
        self.wanted = set()
        self.due = {}
        self.visiting = set()

    def wake(self):
        for key, due in list(self.due.items()):
            if due <= self.now:
                del self.due[key]
                self.wanted.add(key)

    @rule(key=KEYS)
    def add(self, key):
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=KEYS, seconds=st.integers(0, 30))
    def add_at(self, key, seconds):
        due = self.now + timedelta(seconds=seconds)
        self.queue.add_at(key, due)
        self.due[key] = min(due, self.due.get(key, due))

    @rule(seconds=st.integers(0, 20))
    def let_time_pass(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule()
    def take(self):
        self.wake()
        key = self.queue.take(self.now)
        if key is None:
            assert self.wanted <= self.visiting, "a key that is wanted and not being visited was not given out"
            return
        assert key in self.wanted, "a key was given out that nobody wanted by now"
        assert key not in self.visiting, "a key was given out twice at a time"
        self.wanted.remove(key)
        self.visiting.add(key)

    @precondition(lambda self: self.visiting)
    @rule(data=st.data())
    def end_a_visit(self, data):
        key = data.draw(st.sampled_from(sorted(self.visiting)))
        self.queue.done(key)
        self.visiting.remove(key)

    @invariant()
    def the_earliest_due_time_is_known(self):
        assert self.queue.next_due() == min(self.due.values(), default=None)

    def teardown(self):
        for key in self.visiting:
            self.queue.done(key)
        left = self.wanted | set(self.due)
        assert sorted(drained(self.queue, self.now + timedelta(hours=1))) == sorted(left), "nothing is lost"


TestVisits = Visits.TestCase
TestVisits.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
