"""Run the validation vectors: defaults of specs, and validation errors of objects."""

from collections.abc import Iterable

from msgspec.structs import replace

from autoscaler.conformance.inputs import Comparison, Json
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.validation import ValidationProblem, api_server_problems, prepare, problems
from autoscaler.wire import DecodeError, decode_autoscaler, decode_spec, encode


def apply_defaults(case: Json, _document: Json) -> Comparison:
    """Apply the defaults to a spec."""
    return {"output": case["output"]}, {"output": encode(with_defaults(decode_spec(case["input"])))}


def validate(case: Json, _document: Json) -> Comparison:
    """Decode and validate an object. Of a decode error only its presence is compared."""
    try:
        old = _defaulted(case["old"]) if "old" in case else None
        received = _defaulted(case["object"])
    except DecodeError as error:
        return {"decodeError": case.get("decodeError")}, {"decodeError": case.get("decodeError", str(error))}
    if "decodeError" in case:
        return {"decodeError": case["decodeError"]}, {}
    gates = FeatureGates(**case["featureGates"])
    new = prepare(received, gates=gates, old=old)
    found = problems(new, gates=gates, settings=Settings(), old=old)
    by_api_server = api_server_problems(found, new, gates=gates, old=old)
    expected = case["errors"] if case["apiServerErrorsSame"] else case["apiServerErrors"]
    # The API server does not guarantee the order of declarative and hand-written validation errors.
    return (
        {"errors": case["errors"], "apiServerErrors": _sorted(expected)},
        {"errors": _error_list(found), "apiServerErrors": _sorted(_error_list(by_api_server))},
    )


def _defaulted(document: object) -> Autoscaler:
    autoscaler = decode_autoscaler(document)
    return replace(autoscaler, spec=with_defaults(autoscaler.spec))


def _sorted(errors: Iterable[Json]) -> list[Json]:
    return sorted(errors, key=lambda entry: entry["error"])


def _error_list(found: Iterable[ValidationProblem]) -> list[Json]:
    return [
        {"type": problem.kind.code, "field": problem.path, "detail": problem.detail, "error": str(problem)}
        for problem in found
    ]
