"""What changed between two overviews, so that the page gets only changed rows. Pure.

``applyDelta`` of the page is the inverse. Rows of a delta have no order: the page sorts them as ``views.overview``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from adapter.debug.formatting import Json

_AUTOSCALERS: Final = "autoscalers"
_SELECTED: Final = "selected"
_RULES: Final = "rules"


def overview_delta(base: Json, current: Json) -> Json:
    """Return the changed fields, the names of fields that are gone, and the changed rows of lists."""
    delta: Json = {
        "fields": {name: value for name, value in current.items() if name not in base or base[name] != value},
        "gone": [name for name in base if name not in current],
    }
    fields = delta["fields"]
    if _AUTOSCALERS in fields:
        delta[_AUTOSCALERS] = _rows(base.get(_AUTOSCALERS, []), fields.pop(_AUTOSCALERS), _autoscaler_key)
    if _RULES in fields and _RULES in base:
        changed = fields.pop(_RULES)
        rows = _rows(base[_RULES][_RULES], changed[_RULES], _rule_key)
        delta[_RULES] = {**changed, _RULES: rows}
    if _SELECTED in fields and (timeline := _timeline(base.get(_SELECTED), fields[_SELECTED])) is not None:
        fields[_SELECTED] = {**fields[_SELECTED], "timeline": None}
        delta["timeline"] = timeline
    return delta


def _rows(base: Sequence[Json], current: Sequence[Json], key_of: Callable[[Json], str]) -> Json:
    known, present = {key_of(row): row for row in base}, {key_of(row) for row in current}
    return {
        "changed": [row for row in current if known.get(key_of(row)) != row],
        "removed": [key for key in known if key not in present],
    }


def _autoscaler_key(row: Json) -> str:
    return f"{row['namespace']}/{row['name']}"


def _rule_key(row: Json) -> str:
    """Return the key of a rule; rules of different namespaces can have the same name."""
    return f"{row['origin']} {row['name']} {','.join(row['namespaces'])}"


def _timeline(base: Json | None, current: Json | None) -> Json | None:
    """Return the points after those that are the same; None if the timelines have nothing in common.

    The oldest points are dropped from a full timeline, and the last one is moved while nothing changes.
    """
    if not base or not current or _autoscaler_key(base) != _autoscaler_key(current):
        return None
    old, new = base["timeline"], current["timeline"]
    if [metric["name"] for metric in old["metrics"]] != [metric["name"] for metric in new["metrics"]]:
        return None
    before, after = _points(old), _points(new)
    dropped = next((index for index, point in enumerate(before) if point == after[0]), None)
    if dropped is None:
        return None
    pairs = zip(before[dropped:], after, strict=False)
    kept = next((index for index, (left, right) in enumerate(pairs) if left != right), None)
    kept = min(len(before) - dropped, len(after)) if kept is None else kept
    return {"drop": dropped, "keep": kept, "added": _from(new, kept)}


def _points(timeline: Json) -> list[tuple[Any, ...]]:
    columns = [timeline["time"], timeline["current"], timeline["replicas"]]
    for metric in timeline["metrics"]:
        columns += [metric[name] for name in ("value", "target", "proposal", "state")]
    return list(zip(*columns, strict=True))


def _from(timeline: Json, index: int) -> Json:
    """Return the columns from a point on."""
    return {
        **{name: column[index:] for name, column in timeline.items() if name != "metrics"},
        "metrics": [
            {name: column if name == "name" else column[index:] for name, column in metric.items()}
            for metric in timeline["metrics"]
        ],
    }
