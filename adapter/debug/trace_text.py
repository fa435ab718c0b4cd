"""The way to a number, for people: one step a line, in the order in which it was gone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]

_SHOWN: Final = 20


def lines(told: Json) -> Iterator[str]:
    """Write what ``/debug/metrics/...`` answered."""
    asked = told["asked"]
    yield _line("metric", f"{asked['namespace']}/{asked['metric']}")
    yield _line("selector", asked["selector"] or "(everything)")
    yield from _rule(told["rule"])
    if told["query"]:
        yield _line("query", f"{told['query']['text']}   (to {told['query']['backend']})")
    yield from _fetch(told["fetch"])
    yield from _series(told["series"])
    if told["value"] is not None:
        yield _line("aggregation", told["aggregation"])
        yield _line("value", f"{told['value']}, {told['ageSeconds']:g}s old")
    yield from _error(told["error"])
    yield from _history(told["history"])
    yield from _hpa(told["hpa"])


def _line(name: str, text: object) -> str:
    return f"{name:<12} {plain(str(text))}"


def plain(text: str) -> str:
    """Show what a terminal would act upon as what it is: labels and messages come from outside."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _rule(rule: Json) -> Iterator[str]:
    if not rule["matched"]:
        yield _line("rule", f"none: {rule['why']}")
        if rule["nearest"]:
            yield _line("nearest", ", ".join(rule["nearest"]))
        return
    yield _line("rule", f"{rule['name']}, from {rule['origin']}")
    if rule["namespaceLabel"]:
        fixed = f" = {rule['namespaceFixed']}" if rule["namespaceFixed"] else ""
        yield _line("namespace", f"by the label {rule['namespaceLabel']}{fixed}")


def _fetch(fetch: Json | None) -> Iterator[str]:
    if fetch is None:
        return
    came = f"failed: {fetch['failed']}" if "failed" in fetch else f"{fetch['series']} series"
    yield _line("fetched", f"{fetch['ageSeconds']:g}s ago, in {fetch['tookMilliseconds']:g}ms: {came}")
    if fetch.get("detail"):
        yield _line("it said", fetch["detail"])


def _series(series: Json | None) -> Iterator[str]:
    if series is None:
        return
    yield _line("series", f"{series['found']} found, {series['matched']} matched")
    for item in series["items"][:_SHOWN]:
        labels = ",".join(f"{key}={value}" for key, value in item["labels"].items())
        why = "" if item["matched"] else f"   {item['why']}"
        yield plain(
            f"  {'+' if item['matched'] else '-'} {{{labels}}} {item['value']} ({item['ageSeconds']:g}s old){why}"
        )
    more = series["found"] - min(_SHOWN, len(series["items"]))
    if more:
        yield f"  and {more} more"


def _error(error: Json | None) -> Iterator[str]:
    if error is not None:
        yield _line("error", f"{error['class'] or 'refused'}: {error['message']}")
        if error["detail"]:
            yield _line("detail", error["detail"])


def _history(history: Json | None) -> Iterator[str]:
    if history is None:
        return
    if history["failures"]:
        reads = "1 read" if history["failures"] == 1 else f"{history['failures']} reads in a row"
        yield _line("failing", f"since {history['firstFailureTime']}, {reads}")
        if history["lastGoodTime"]:
            yield _line("last good", f"{history['lastGoodValue']} at {history['lastGoodTime']}")


def _hpa(hpa: Json) -> Iterator[str]:
    if hpa["code"] == 200:
        items = "1 item" if hpa["items"] == 1 else f"{hpa['items']} items"
        yield _line("an HPA hears", f"{hpa['sum']} ({items})")
    else:
        yield _line("an HPA hears", f"{hpa['code']} {hpa['reason']}: {hpa['message']}")
        yield _line("it then says", hpa["condition"])
