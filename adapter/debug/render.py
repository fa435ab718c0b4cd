"""An autoscaler's last decision, for people at a terminal: where it stands, what decided, and the working. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from adapter.debug.trace_text import plain

Json: TypeAlias = Mapping[str, Any]


class Paint(NamedTuple):
    """What is written before something to make it stand out, and after it."""

    strong: str = ""
    soft: str = ""
    warn: str = ""
    accent: str = ""
    end: str = ""


PLAIN: Final = Paint()
COLOURS: Final = Paint(strong="\x1b[1m", soft="\x1b[2m", warn="\x1b[33m", accent="\x1b[1;36m", end="\x1b[0m")
_CALM: Final = frozenset({"normal", "limited", "at zero"})


def told(found: Json, paint: Paint) -> Iterator[str]:
    """Write what ``/debug/autoscalers/...`` answered."""
    why = found["explanation"]
    name = plain(f"{found['namespace']}/{found['name']}")
    yield f"{paint.strong}{name}{paint.end}  scales {plain(found['target'])}"
    for sign in found["signs"]:
        yield _sign(sign, paint)
    yield ""
    yield f"{paint.strong}{_moved(found)}{paint.end} at {_clock(found['decidedAt'])} UTC: {plain(found['verdict'])}"
    if why["mayChangeAt"]:
        yield f"may change by itself at {paint.accent}{_clock(why['mayChangeAt'])}{paint.end} UTC"
    yield ""
    for place, step in enumerate(why["working"]):
        yield _step(step, paint, is_decisive=place == found["decisive"])


def _sign(sign: Json, paint: Paint) -> str:
    colour = paint.soft if sign["state"] in _CALM else paint.warn
    since = f" since {_clock(sign['since'])}" if sign["since"] else ""
    note = f"  {plain(sign['note'])}" if sign["note"] else ""
    return f"{colour}{sign['state']}{since}{paint.end}{note}"


def _moved(found: Json) -> str:
    current, replicas = found["current"], found["replicas"]
    if found["state"] == "target lost":
        return f"size unknown (was {current})" if current else "size unknown"
    return f"{current} → {replicas} replicas" if current != replicas else f"{replicas} replicas"


def _step(step: Json, paint: Paint, *, is_decisive: bool) -> str:
    """Write a step: what it came to, and the sentence; the one that decided stands out without colour as well."""
    came = step["cameOut"].get("replicas", "")
    sentence = plain(step["sentence"])
    if is_decisive:
        return f"{paint.accent}> {came:>5}  {sentence}{paint.end}"
    return f"  {paint.soft}{came:>5}{paint.end}  {sentence}"


def _clock(time: str) -> str:
    return time[11:19]
