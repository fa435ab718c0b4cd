"""Runs validation vectors: a spec gets the defaults, and an object the complaints, that Kubernetes gives it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.validation import Problem, as_api_server_lists_them, prepared, problems
from autoscaler.wire import DecodeError, decode_autoscaler, decode_spec, encode_spec


def sections(document: Document) -> tuple[str, ...]:
    """Name the sections that this runner runs, if the document is of its kind."""
    return tuple(name for name in ("validation", "defaulting") if name in document)


def cases(document: Document) -> Iterator[Case]:
    """Give every case."""
    for case in document.get("validation", ()):
        yield Case(case["id"], partial(_validation_differences, case))
    for index, case in enumerate(document.get("defaulting", ())):
        yield Case(f"defaulting/{index:03}", partial(_defaulting_differences, case))


def _defaulting_differences(case: Mapping[str, Any]) -> Iterator[Difference]:
    got = encode_spec(with_defaults(decode_spec(case["input"])))
    yield from compare("output", case["output"], got)


def _validation_differences(case: Mapping[str, Any]) -> Iterator[Difference]:
    try:
        old = _received(case["old"]) if "old" in case else None
        sent = _received(case["object"])
    except DecodeError as error:
        if "decodeError" not in case:
            yield Difference("decodeError", None, str(error))
        return
    if "decodeError" in case:
        yield Difference("decodeError", case["decodeError"], None)
        return
    yield from _list_differences(case, sent, old)


def _list_differences(case: Mapping[str, Any], sent: Autoscaler, old: Autoscaler | None) -> Iterator[Difference]:
    gates = FeatureGates(**case["featureGates"])
    new = prepared(sent, gates=gates, old=old)
    found = problems(new, gates=gates, settings=Settings(), old=old)
    answered = as_api_server_lists_them(found, new, gates=gates, old=old)
    yield from compare("errors", case["errors"], _listed(found))
    expected = case["errors"] if case["apiServerErrorsSame"] else case["apiServerErrors"]
    # The API server's order is no promise: its two kinds of rules may come in either order.
    yield from compare("apiServerErrors", _by_text(expected), _by_text(_listed(answered)))


def _by_text(listed: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(listed, key=lambda entry: entry["error"])


def _received(document: object) -> Autoscaler:
    autoscaler = decode_autoscaler(document)
    return msgspec.structs.replace(autoscaler, spec=with_defaults(autoscaler.spec))


def _listed(found: Iterable[Problem]) -> list[dict[str, str]]:
    return [
        {"type": problem.kind.code, "field": problem.path, "detail": problem.detail, "error": str(problem)}
        for problem in found
    ]
