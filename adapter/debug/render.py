"""Text output of ``steadyscale explain``. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from adapter.debug.trace_text import escape

Json: TypeAlias = Mapping[str, Any]


class Colors(NamedTuple):
    """Escape sequences for a terminal; empty without color."""

    bold: str = ""
    dim: str = ""
    warning: str = ""
    accent: str = ""
    reset: str = ""


NO_COLORS: Final = Colors()
ANSI_COLORS: Final = Colors(bold="\x1b[1m", dim="\x1b[2m", warning="\x1b[33m", accent="\x1b[1;36m", reset="\x1b[0m")
_HEALTHY: Final = frozenset({"normal", "limited", "scaled to zero"})


def explanation_lines(view: Json, colors: Colors) -> Iterator[str]:
    """Yield the lines for a response of ``/debug/autoscalers/...``."""
    bold, reset = colors.bold, colors.reset
    name = escape(f"{view['namespace']}/{view['name']}")
    yield f"{bold}{name}{reset}  target: {escape(view['target'])}"
    for state in view["states"]:
        color = colors.dim if state["name"] in _HEALTHY else colors.warning
        since = f" since {_time_of_day(state['since'])}" if state["since"] else ""
        detail = f"  {escape(state['detail'])}" if state["detail"] else ""
        yield f"{color}{state['name']}{since}{reset}{detail}"
    yield ""
    factor = view["limitingFactor"]
    reason = f"limiting factor: {escape(factor)}" if factor else "no limiting factor: follows the metrics"
    yield f"{bold}{_replicas(view)}{reset} at {_time_of_day(view['decidedAt'])} UTC; {reason}"
    if time := view["explanation"]["mayChangeAt"]:
        yield f"with unchanged metrics, the next change is possible at {colors.accent}{_time_of_day(time)}{reset} UTC"
    yield ""
    for index, step in enumerate(view["explanation"]["steps"]):
        replicas, text = step["outputs"].get("replicas", ""), escape(step["text"])
        if index == view["decisiveStep"]:
            yield f"{colors.accent}> {replicas:>5}  {text}{reset}"
        else:
            yield f"  {colors.dim}{replicas:>5}{reset}  {text}"


def _replicas(view: Json) -> str:
    current, replicas = view["current"], view["replicas"]
    if view["state"] == "target unavailable":
        return f"replicas unknown (last known: {current})" if current else "replicas unknown"
    return f"{current} → {replicas} replicas" if current != replicas else f"{replicas} replicas"


def _time_of_day(time: str) -> str:
    return time[11:19]
