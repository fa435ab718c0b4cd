"""What becomes of names that no rule has: they may be passed on to another server of the same API."""

from datetime import timedelta

from adapter.rules.rule import Rule
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector


class Delegate(Record, frozen=True):
    """Another server of external metrics, beside our own rules."""

    backend: str
    """Which of the configured backends; one of the kind ``upstream``."""

    unknown: bool = True
    """Answer from it what no rule of ours has a name for. Whoever may read a metric here then reads it there, with our
    credentials."""

    compare: bool = False
    """Ask it, too, for what a rule of ours answers, and tell where the two differ: to see before a move that nothing
    will change. What it says is then only looked at, never served."""

    tolerance: float = 0.1
    """How far apart two numbers may be and still count as the same: they are of different moments, and an HPA's own
    tolerance is as wide."""

    interval: timedelta = timedelta(seconds=15)
    """How long an answer is remembered, for each metric, namespace and selector."""

    max_sample_age: timedelta = timedelta(minutes=5)
    """An older number is an error."""

    deadline: timedelta = timedelta(seconds=5)
    """How long it may take."""


class PassedOn(Rule, frozen=True):
    """A rule made for one question to another server, which knows the selector and answers with what it matches."""

    @property
    def is_template(self) -> bool:
        """Whether its answer is for one selector only: it is."""
        return True


def passed_on(how: Delegate, namespace: str, metric: str, selector: Selector) -> PassedOn:
    """Make the rule that asks another server for one metric."""
    asked = {"namespace": namespace, "metric": metric, "selector": str(selector)}
    return PassedOn(
        name=metric,
        backend=how.backend,
        parameters=asked,
        interval=how.interval,
        max_sample_age=how.max_sample_age,
        deadline=how.deadline,
    )
