"""Where our answers and another server's differ, for the debugging endpoint: those that differ come first."""

from typing import Any, TypeAlias

from adapter.debug.formatting import number, time
from adapter.metrics.comparison import Answered, Compared, Comparisons, Verdict
from adapter.metrics.read_history import Asked
from adapter.rules.delegation import Delegate

Json: TypeAlias = dict[str, Any]


def comparisons(found: Comparisons, how: Delegate | None) -> Json:
    """Describe every comparison; ``how`` says whether there are any, and with whom."""
    rows = sorted(found, key=lambda row: (row[1].verdict is Verdict.SAME, row[0].namespace, row[0].metric))
    is_on = how is not None and how.compare
    return {
        "comparing": is_on,
        "with": how.backend if how is not None and is_on else "",
        "tolerance": how.tolerance if how is not None and is_on else None,
        "differ": sum(one.verdict is not Verdict.SAME for _, one in rows),
        "items": [_item(asked, one) for asked, one in rows],
    }


def _item(asked: Asked, one: Compared) -> Json:
    return {
        "namespace": asked.namespace,
        "metric": asked.metric,
        "selector": str(asked.selector),
        "verdict": one.verdict.value,
        "ours": _side(one.ours),
        "theirs": _side(one.theirs),
        "at": time(one.at),
        "comparisons": one.comparisons,
        "differences": one.differences,
        "differentSince": time(one.different_since),
    }


def _side(answered: Answered) -> Json:
    return {"value": None if answered.milli is None else number(answered.milli), "error": answered.error}
