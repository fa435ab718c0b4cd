"""Text output of ``steadyscale metrics``. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from adapter.debug.render import escape

Json: TypeAlias = Mapping[str, Any]
_HEADER: Final = ("NAMESPACE", "METRIC", "SELECTOR", "VALUE", "AGE", "HEALTH", "MESSAGE")
_MAX_MESSAGE: Final = 100


def metric_list_lines(view: Json) -> Iterator[str]:
    """Yield a table for a response of ``/debug/metrics``, with columns as wide as their content."""
    rows = [_cells(row) for row in view["metrics"]]
    if not rows:
        scope = f" in the namespace {escape(view['namespace'])}" if view["namespace"] else ""
        yield f"no metrics are defined{scope}"
        return
    widths = [max(len(row[column]) for row in (_HEADER, *rows)) for column in range(len(_HEADER))]
    for row in (_HEADER, *rows):
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if view["omitted"]:
        yield f"and {view['omitted']} more; select a namespace with -n"


def _cells(row: Json) -> tuple[str, ...]:
    age = "-" if row["ageSeconds"] is None else duration_text(row["ageSeconds"])
    message = escape(row["message"])
    if len(message) > _MAX_MESSAGE:
        message = f"{message[: _MAX_MESSAGE - 3]}..."
    value = "-" if row["value"] is None else row["value"]
    names = tuple(escape(row[name]) for name in ("namespace", "metric"))
    return (*names, escape(row["selector"]) or "-", value, age, row["health"], message)


def duration_text(seconds: float) -> str:
    """Return a duration as in the AGE column of kubectl: ``9s``, ``2m``, ``3h``, ``5d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"
