"""``steadyscale check FILE...``: validates configuration, rules and autoscalers before they are applied.

The ``kind`` of a document selects the check; a document without one is a Steadyscale configuration. A configuration in
the data of a ConfigMap is checked as well. Other kinds are skipped with a note.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import msgspec
import yaml

from adapter.backends.configuration import BackendEntry, price_per_day
from adapter.commands.documents import CheckMessage, Document, read_documents
from adapter.commands.undefined_metrics import undefined_metrics
from adapter.config import loading, model
from adapter.custom_resources.external_metric import rule_from_object
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.prometheus_adapter import conversion
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.validation import prepare, problems, warnings
from autoscaler.wire import DecodeError, FieldError, decode_autoscaler

HAS_PROBLEMS: Final = 1
NOTHING_TO_CHECK: Final = 2

Backends: TypeAlias = Mapping[str, BackendEntry]


def run(options: argparse.Namespace) -> int:
    return check(options.files, sys.stdout, output=options.output)


def check(files: Sequence[Path], out: TextIO, *, output: str = "text") -> int:
    """Check files and print problems and notes; return the exit code, 0 if there are no problems."""
    messages: list[CheckMessage] = []
    documents: list[Document] = []
    for file in files:
        try:
            documents += read_documents(file)
        except ConfigInvalid as error:
            messages += [CheckMessage(str(file), message) for message in error.messages]
    configs = list(_valid_configs(documents))
    backends = {name: backend for config in configs for name, backend in config.backends.items()}
    messages += [message for document in documents for message in _check_document(document, backends)]
    messages += undefined_metrics(documents, configs)
    checked = sum(document.kind in _CHECKS for document in documents)
    count = sum(message.is_problem for message in messages)
    if output == "json":
        listed = [
            {"location": one.location, "text": one.text, "severity": "error" if one.is_problem else "note"}
            for one in messages
        ]
        out.write(msgspec.json.encode({"documents": checked, "problems": count, "messages": listed}).decode() + "\n")
    else:
        out.writelines(f"{one.location}: {'' if one.is_problem else 'note: '}{one.text}\n" for one in messages)
        if not checked and not count:
            out.write("the files contain no configuration, ExternalMetric, PodAutoscaler or HorizontalPodAutoscaler\n")
        found = "document" if checked == 1 else "documents"
        out.write(f"{checked} {found} checked, {count} {'problem' if count == 1 else 'problems'}\n")
    return HAS_PROBLEMS if count else 0 if checked else NOTHING_TO_CHECK


def _valid_configs(documents: Sequence[Document]) -> Iterator[model.Config]:
    for document in documents:
        for _, content in document.configs():
            with suppress(ConfigInvalid):  # reported when this document is checked
                yield loading.decode(content)


def _check_document(document: Document, backends: Backends) -> Iterator[CheckMessage]:
    check_content = _CHECKS.get(document.kind)
    if check_content is None:
        yield CheckMessage(document.location, f"skipped: the kind {document.kind} is not checked", is_problem=False)
        return
    try:
        for note in check_content(document, backends):
            yield CheckMessage(document.location, note, is_problem=False)
    except ConfigInvalid as error:
        yield from (CheckMessage(document.location, message) for message in error.messages)


def _check_configs(document: Document, _: Backends) -> Iterator[str]:
    for path, content in document.configs():
        try:
            if isinstance(content, dict) and ("externalRules" in content or isinstance(content.get("rules"), dict)):
                yield from _check_prometheus_adapter(content)
            else:
                yield from _price_notes(loading.decode(content))
        except ConfigInvalid as error:
            raise ConfigInvalid(problem.below(path) if path else problem for problem in error.problems) from None


def _price_notes(config: model.Config) -> Iterator[str]:
    total = 0.0
    for index, rule in enumerate(config.rules):
        if (price := price_per_day(rule, config.backends.get(rule.backend))) is not None:
            total += price.dollars
            yield f"rules[{index}]: {_dollars(price.dollars)} per day while the metric is read: {price.calculation}"
    if total:
        yield f"rules: {_dollars(total)} per day in total while all metrics are read"


def _dollars(amount: float) -> str:
    return f"about ${amount:,.2f}" if amount >= 0.005 else "less than $0.01"


def _check_prometheus_adapter(content: Mapping[str, Any]) -> Iterator[str]:
    """Check a configuration file of prometheus-adapter, for a migration."""
    notes = conversion.parse_file(yaml.safe_dump(dict(content))).notes
    yield from (f"{note.path}: {note.text}" for note in notes if note.level != "error")
    if errors := [Problem(note.path, note.text) for note in notes if note.level == "error"]:
        raise ConfigInvalid(errors)


def _check_external_metric(document: Document, backends: Backends) -> Iterator[str]:
    """Check an ExternalMetric; its parameters only if its backend is configured in the same files."""
    content = document.content
    rule = rule_from_object(content, None)
    entry = backends.get(rule.backend)
    if entry is not None:
        rule = rule_from_object(content, backends)
    elif backends and rule.backend:
        yield f"spec.backend: no configuration in these files has a backend {rule.backend!r}"
    if (price := price_per_day(rule, entry)) is not None:
        yield f"spec: {_dollars(price.dollars)} per day while the metric is read: {price.calculation}"
    if (content.get("spec") or {}).get("onEmpty") == "zero":
        yield "spec.onEmpty: zero scales the workload down whenever there are no series, also after a failure"


def _check_autoscaler(document: Document, _: Backends) -> Iterator[str]:
    decoded, field_errors = _decode_autoscaler(document.content)
    gates, settings = FeatureGates(), Settings()
    metadata = msgspec.structs.replace(decoded.metadata, namespace=decoded.metadata.namespace or "default")
    complete = msgspec.structs.replace(decoded, metadata=metadata, spec=with_defaults(decoded.spec))
    found = problems(prepare(complete, gates=gates), gates=gates, settings=settings)
    misspelled = {error.suggestion for error in field_errors}  # missing only because of the misspelling
    if field_errors or found:
        invalid = (Problem(problem.path, problem.body) for problem in found if problem.path not in misspelled)
        raise ConfigInvalid([*(Problem(error.path, error.message) for error in field_errors), *invalid])
    return (str(warning) for warning in warnings(decoded))


def _decode_autoscaler(content: Mapping[str, Any]) -> tuple[Autoscaler, tuple[FieldError, ...]]:
    """Decode an autoscaler without its unknown fields, so that the other fields are checked as well."""
    try:
        return decode_autoscaler(content, strict=True), ()
    except DecodeError as error:
        errors = error.errors
    try:
        return decode_autoscaler(content), errors
    except DecodeError:
        raise ConfigInvalid(Problem(error.path, error.message) for error in errors) from None


def _check_hpa(document: Document, backends: Backends) -> Iterator[str]:
    version = document.content.get("apiVersion")
    if version != "autoscaling/v2":
        raise ConfigInvalid([Problem("apiVersion", "only autoscaling/v2 can be checked", value=version)])
    yield from _check_autoscaler(document, backends)
    for index, metric in enumerate(document.content["spec"].get("metrics") or ()):
        if (metric.get("external") or {}).get("fallback"):
            yield f"spec.metrics[{index}].external.fallback: released API servers drop this field; use a PodAutoscaler"


_CHECKS: Final[Mapping[str, Callable[[Document, Backends], Iterator[str]]]] = {
    "": _check_configs,
    "ConfigMap": _check_configs,
    "ExternalMetric": _check_external_metric,
    "PodAutoscaler": _check_autoscaler,
    "HorizontalPodAutoscaler": _check_hpa,
}
