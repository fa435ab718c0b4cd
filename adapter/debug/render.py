"""Text output of ``steadyscale explain`` and ``steadyscale metric``."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TextIO, TypeAlias

from autoscaler.algorithm.formatting import count

Json: TypeAlias = Mapping[str, Any]
_MAX_SERIES: Final = 20


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


def terminal_colors(stream: TextIO) -> Colors:
    """Return colors if the stream is a terminal that shows them, and NO_COLOR is not set."""
    has_colors = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return ANSI_COLORS if has_colors else NO_COLORS


def explanation_lines(view: Json, colors: Colors) -> Iterator[str]:
    """Yield the lines for a response of ``/debug/autoscalers/...``."""
    bold, reset = colors.bold, colors.reset
    name = escape(f"{view['namespace']}/{view['name']}")
    yield f"{bold}{name}{reset}  target: {escape(view['target'])}"
    for state in view["states"]:
        color = colors.dim if state["name"] in _HEALTHY else colors.warning
        since = f" since {_time_near(state['since'], view['decidedAt'])}" if state["since"] else ""
        detail = f"  {escape(state['detail'])}" if state["detail"] else ""
        yield f"{color}{state['name']}{since}{reset}{detail}"
    if outdated_since := view.get("outdatedSince"):
        time = _time_of_day(outdated_since)
        yield f"{colors.warning}outdated: this replica is no longer the leader, its decisions end at {time} UTC{reset}"
    if recorded := view.get("recorded"):
        age = f"as of {recorded['ageSeconds']:.0f} s ago"
        text = f"from the decision history, {age}: {escape(recorded['message'])}; {escape(recorded['reason'])}"
        yield f"{colors.warning}{text}{colors.reset}"
    yield ""
    factor = view["limitingFactor"]
    reason = f"limiting factor: {escape(factor)}" if factor else "no limiting factor: follows the metrics"
    yield f"{bold}{_replicas(view)}{reset} at {_time_of_day(view['decidedAt'])} UTC; {reason}"
    if next_change := view["explanation"]["mayChangeAt"]:
        time = _time_near(next_change, view["decidedAt"])
        yield f"with unchanged metrics, the next change is possible at {colors.accent}{time}{reset} UTC"
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
    return f"{current} → {count(replicas, 'replica')}" if current != replicas else count(replicas, "replica")


def _time_of_day(time: str) -> str:
    return time[11:19]


def _time_near(time: str, other: str) -> str:
    """Return the time of day, with the date if that is not the date of the other time."""
    return _time_of_day(time) if time[:10] == other[:10] else f"{time[:10]} {_time_of_day(time)}"


def trace_lines(trace: Json) -> Iterator[str]:
    """Yield the lines for a response of ``/debug/metrics/...``."""
    request = trace["request"]
    yield _line("metric", f"{request['namespace']}/{request['metric']}")
    yield _line("selector", request["selector"] or "(none)")
    yield from _rule(trace["rule"])
    if trace["query"]:
        yield _line("query", f"{trace['query']['text']}   (backend {trace['query']['backend']})")
    if fetch := trace["fetch"]:
        result = f"failed: {fetch['error']}" if "error" in fetch else f"{fetch['series']} series"
        yield _line("fetched", f"{fetch['ageSeconds']:g}s ago, in {fetch['durationMilliseconds']:g}ms: {result}")
        if fetch.get("detail"):
            yield _line("response", fetch["detail"])
    if trace["series"]:
        yield from _series(trace["series"])
    if trace["value"] is not None:
        yield _line("aggregation", trace["aggregation"])
        yield _line("value", f"{trace['value']}, {trace['ageSeconds']:g}s old")
    if error := trace["error"]:
        yield _line("error", error["message"] if error["class"] else f"rejected: {error['message']}")
        if error["detail"]:
            yield _line("detail", error["detail"])
    yield from _history(trace["history"])
    yield from _hpa(trace["hpa"])


def escape(text: str) -> str:
    """Escape control characters: labels and messages come from other systems and could control the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _line(name: str, text: object) -> str:
    return f"{name:<13} {escape(str(text))}"


def _rule(rule: Json) -> Iterator[str]:
    if not rule["matched"]:
        yield _line("rule", f"none: {rule['reason']}")
        if rule["similar"]:
            yield _line("similar", ", ".join(rule["similar"]))
        return
    yield _line("rule", f"{rule['name']}, from {rule['origin']}")
    if rule["namespaceLabel"]:
        fixed = f" = {rule['namespaceFixed']}" if rule["namespaceFixed"] else ""
        yield _line("namespace", f"label {rule['namespaceLabel']}{fixed}")
    adaptive = " (adaptive)" if rule.get("intervalIsAdaptive") else ""
    yield _line("interval", f"{rule['intervalSeconds']:g}s{adaptive}")


def _series(series: Json) -> Iterator[str]:
    yield _line("series", f"{series['total']} found, {series['matched']} matched")
    for item in series["items"][:_MAX_SERIES]:
        labels = ",".join(f"{key}={value}" for key, value in item["labels"].items())
        mark, reason = ("+", "") if item["matched"] else ("-", f"   {item['reason']}")
        yield escape(f"  {mark} {{{labels}}} {item['value']} ({item['ageSeconds']:g}s old){reason}")
    if omitted := series["total"] - min(_MAX_SERIES, len(series["items"])):
        yield f"  and {omitted} more"


def _history(history: Json | None) -> Iterator[str]:
    if history is not None and history["failures"]:
        reads = count(history["failures"], "consecutive read") if history["failures"] > 1 else "1 read"
        yield _line("failing", f"since {history['firstFailureTime']}, {reads}")
        if history["lastValueTime"]:
            yield _line("last value", f"{history['lastValue']} at {history['lastValueTime']}")


def _hpa(hpa: Json) -> Iterator[str]:
    if hpa["code"] == 200:
        yield _line("HPA response", f"{hpa['sum']} ({count(hpa['items'], 'item')})")
    else:
        yield _line("HPA response", f"{hpa['code']} {hpa['reason']}: {hpa['message']}")
        yield _line("HPA condition", hpa["condition"])
