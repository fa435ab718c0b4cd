"""Many verdicts become one recommendation: the highest, unless too little is known to go down."""

from collections.abc import Sequence

from autoscaler.types.metric_result import Unavailable, Verdict
from autoscaler.types.steps import Combined


def combine(verdicts: Sequence[Verdict], current: int) -> Combined:
    """Take the highest proposal; with any metric silent never go below the current size, with all silent go nowhere.

    A proposal of zero counts as none so far, as upstream folds them: that decides which metric is named.
    """
    replicas, winner, failed = 0, None, 0
    for position, verdict in enumerate(verdicts):
        if isinstance(verdict, Unavailable):
            failed += 1
        elif replicas == 0 or verdict.replicas > replicas:
            replicas, winner = verdict.replicas, position
    if winner is None or (failed and replicas < current):
        return Combined(current, current, len(verdicts), failed, blocked=True)
    return Combined(current, max(replicas, 0), len(verdicts), failed, winner)


def first_failure(verdicts: Sequence[Verdict]) -> Unavailable | None:
    """Find the failure that conditions and errors name."""
    return next((verdict for verdict in verdicts if isinstance(verdict, Unavailable)), None)


def combined_error(failure: Unavailable, combined: Combined) -> str:
    """Tell of the failed metrics in upstream's words; only the first one's own words survive."""
    return f"invalid metrics ({combined.failed} invalid out of {combined.asked}), first error is: {failure.error}"
