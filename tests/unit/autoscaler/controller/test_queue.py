"""The work queue."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autoscaler.controller.queue import WorkQueue
from tests.builders import NOW, later


def drain(queue, now=NOW):
    taken = []
    while (key := queue.take(now)) is not None:
        queue.done(key)
        taken.append(key)
    return taken


def test_empty_queue_returns_none():
    queue = WorkQueue()

    assert (queue.take(NOW), queue.next_due()) == (None, None)


def test_keys_are_taken_in_the_order_they_were_added():
    queue = WorkQueue()
    for key in "bac":
        queue.add(key)

    assert drain(queue) == ["b", "a", "c"]


def test_key_added_twice_is_taken_once():
    queue = WorkQueue()
    queue.add("a")
    queue.add("a")
    queue.add_at("a", NOW)

    assert drain(queue) == ["a"]


def test_key_is_not_ready_before_its_due_time():
    queue = WorkQueue()
    queue.add_at("a", later(10))

    assert queue.take(later(9)) is None
    assert queue.next_due() == later(10)
    assert queue.take(later(10)) == "a"
    assert queue.next_due() is None


def test_earlier_due_time_replaces_a_later_one():
    queue = WorkQueue()
    queue.add_at("a", later(10))
    queue.add_at("a", later(5))
    queue.add_at("a", later(20))

    assert queue.next_due() == later(5)
    assert drain(queue, later(5)) == ["a"]
    assert (drain(queue, later(30)), queue.next_due()) == ([], None)


def test_due_keys_are_taken_in_the_order_of_their_due_times():
    queue = WorkQueue()
    for key, seconds in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_at(key, later(seconds))

    assert drain(queue, later(9)) == ["a", "b", "c"]


def test_key_added_during_processing_is_taken_once_more_afterwards():
    queue = WorkQueue()
    queue.add("a")
    assert queue.take(NOW) == "a"
    queue.add("a")
    queue.add("a")

    assert queue.take(NOW) is None

    queue.done("a")

    assert drain(queue) == ["a"]


def test_key_that_becomes_due_during_processing_is_taken_after_it_ends():
    queue = WorkQueue()
    queue.add("a")
    assert queue.take(NOW) == "a"
    queue.add_at("a", later(1))

    assert queue.take(later(2)) is None

    queue.done("a")

    assert queue.take(later(2)) == "a"


KEYS = st.sampled_from("abcd")


class QueueMachine(RuleBasedStateMachine):
    """Compares the queue with a simple model: dirty keys, due times and keys being processed."""

    def __init__(self):
        super().__init__()
        self.queue = WorkQueue()
        self.now = NOW
        self.dirty = set()
        self.due = {}
        self.processing = set()

    def expire_due_times(self):
        for key, due in list(self.due.items()):
            if due <= self.now:
                del self.due[key]
                self.dirty.add(key)

    @rule(key=KEYS)
    def add(self, key):
        self.queue.add(key)
        self.dirty.add(key)

    @rule(key=KEYS, seconds=st.integers(0, 30))
    def add_at(self, key, seconds):
        due = self.now + timedelta(seconds=seconds)
        self.queue.add_at(key, due)
        self.due[key] = min(due, self.due.get(key, due))

    @rule(seconds=st.integers(0, 20))
    def advance_time(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule()
    def take(self):
        self.expire_due_times()
        key = self.queue.take(self.now)
        if key is None:
            assert self.dirty <= self.processing, "a ready key was not returned"
            return
        assert key in self.dirty, "a key was returned that was not ready"
        assert key not in self.processing, "a key was returned while it was being processed"
        self.dirty.remove(key)
        self.processing.add(key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def finish(self, data):
        key = data.draw(st.sampled_from(sorted(self.processing)))
        self.queue.done(key)
        self.processing.remove(key)

    @invariant()
    def next_due_is_the_earliest_due_time(self):
        assert self.queue.next_due() == min(self.due.values(), default=None)

    def teardown(self):
        for key in self.processing:
            self.queue.done(key)
        remaining = self.dirty | set(self.due)
        assert sorted(drain(self.queue, self.now + timedelta(hours=1))) == sorted(remaining), "a key was lost"


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
