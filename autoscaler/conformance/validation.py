"""Run the validation vectors: defaults of specs, and validation errors of objects."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from autoscaler.conformance.result import Case, Difference, Document, compare
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.validation import Problem, api_server_problems, prepare, problems
from autoscaler.wire import DecodeError, decode_autoscaler, decode_spec, encode_spec


def sections(document: Document) -> tuple[str, ...]:
    """Return the sections of a validation file, or nothing for other files."""
    return tuple(name for name in ("validation", "defaulting") if name in document)


def cases(document: Document) -> Iterator[Case]:
    """Yield every case."""
    for case in document.get("validation", ()):
        yield Case(case["id"], partial(_validation_differences, case))
    for index, case in enumerate(document.get("defaulting", ())):
        yield Case(f"defaulting/{index:03}", partial(_defaulting_differences, case))


def _defaulting_differences(case: Mapping[str, Any]) -> Iterator[Difference]:
    got = encode_spec(with_defaults(decode_spec(case["input"])))
    yield from compare("output", case["output"], got)


def _validation_differences(case: Mapping[str, Any]) -> Iterator[Difference]:
    try:
        old = _defaulted(case["old"]) if "old" in case else None
        received = _defaulted(case["object"])
    except DecodeError as error:
        if "decodeError" not in case:
            yield Difference("decodeError", None, str(error))
        return
    if "decodeError" in case:
        yield Difference("decodeError", case["decodeError"], None)
        return
    yield from _list_differences(case, received, old)


def _list_differences(case: Mapping[str, Any], received: Autoscaler, old: Autoscaler | None) -> Iterator[Difference]:
    gates = FeatureGates(**case["featureGates"])
    new = prepare(received, gates=gates, old=old)
    problem_list = problems(new, gates=gates, settings=Settings(), old=old)
    listed_by_api_server = api_server_problems(problem_list, new, gates=gates, old=old)
    yield from compare("errors", case["errors"], _error_list(problem_list))
    expected = case["errors"] if case["apiServerErrorsSame"] else case["apiServerErrors"]
    # The API server does not guarantee the order of declarative and hand-written validation errors.
    yield from compare("apiServerErrors", _sorted(expected), _sorted(_error_list(listed_by_api_server)))


def _sorted(listed: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(listed, key=lambda entry: entry["error"])


def _defaulted(document: object) -> Autoscaler:
    autoscaler = decode_autoscaler(document)
    return msgspec.structs.replace(autoscaler, spec=with_defaults(autoscaler.spec))


def _error_list(problem_list: Iterable[Problem]) -> list[dict[str, str]]:
    return [
        {"type": problem.kind.code, "field": problem.path, "detail": problem.detail, "error": str(problem)}
        for problem in problem_list
    ]
