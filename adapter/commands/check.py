"""``steadyscale check``: validates configuration, rules and autoscalers, in files or in a cluster.

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
from adapter.commands.cluster_documents import cluster_documents
from adapter.commands.documents import CheckMessage, Document, read_all
from adapter.commands.service_client import client_command
from adapter.commands.undefined_metrics import undefined_metrics
from adapter.config import loading, model
from adapter.custom_resources.external_metric import rule_from_object
from adapter.custom_resources.object_problems import autoscaler_problems, external_metric_problems
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.prometheus_adapter import conversion
from autoscaler.validation import warnings
from autoscaler.wire import decode_autoscaler

HAS_PROBLEMS: Final = 1
NOTHING_TO_CHECK: Final = 2

Backends: TypeAlias = Mapping[str, BackendEntry]


def run(options: argparse.Namespace) -> int:
    if options.from_cluster:
        return client_command(_check_cluster)(options)
    if not options.files:
        sys.stderr.write("name files or directories to check, - for stdin, or pass --from-cluster\n")
        return NOTHING_TO_CHECK
    if options.namespace:
        sys.stderr.write("--namespace needs --from-cluster: all documents of files are checked\n")
        return NOTHING_TO_CHECK
    return check(options.files, sys.stdout, output=options.output)


async def _check_cluster(options: argparse.Namespace) -> int:
    messages: list[CheckMessage] = []
    documents = await cluster_documents(options.kubeconfig, options.namespace, messages)
    return check(options.files, sys.stdout, output=options.output, documents=documents, messages=messages)


def check(
    files: Sequence[Path],
    out: TextIO,
    *,
    output: str = "text",
    documents: Sequence[Document] = (),
    messages: Sequence[CheckMessage] = (),
) -> int:
    """Check documents and files and print problems and notes; return the exit code, 0 if there are no problems."""
    listed = list(messages)
    documents = [*documents, *read_all(list(files), listed)]
    configs = list(_valid_configs(documents))
    backends = {name: backend for config in configs for name, backend in config.backends.items()}
    listed += [message for document in documents for message in _check_document(document, backends)]
    listed += undefined_metrics(documents, configs)
    checked = sum(one.kind in _CHECKS and not one.is_of_another_group for one in documents)
    count = sum(message.is_problem for message in listed)
    if output == "json":
        _print_json(listed, checked, count, out)
    else:
        _print_text(listed, checked, count, out)
    return HAS_PROBLEMS if count else 0 if checked else NOTHING_TO_CHECK


def _print_json(messages: Sequence[CheckMessage], checked: int, count: int, out: TextIO) -> None:
    listed = [
        {"location": one.location, "text": one.text, "severity": "error" if one.is_problem else "note"}
        for one in messages
    ]
    out.write(msgspec.json.encode({"documents": checked, "problems": count, "messages": listed}).decode() + "\n")


def _print_text(messages: Sequence[CheckMessage], checked: int, count: int, out: TextIO) -> None:
    out.writelines(f"{one.location}: {'' if one.is_problem else 'note: '}{one.text}\n" for one in messages)
    if not checked and not count:
        out.write("there is no configuration, ExternalMetric, PodAutoscaler or HorizontalPodAutoscaler to check\n")
    found = "document" if checked == 1 else "documents"
    out.write(f"{checked} {found} checked, {count} {'problem' if count == 1 else 'problems'}\n")


def _valid_configs(documents: Sequence[Document]) -> Iterator[model.Config]:
    for document in documents:
        for _, content in document.configs():
            with suppress(ConfigInvalid):  # reported when this document is checked
                yield loading.decode(content)


def _check_document(document: Document, backends: Backends) -> Iterator[CheckMessage]:
    check_content = _CHECKS.get(document.kind)
    if check_content is None or document.is_of_another_group:
        yield CheckMessage(document.location, f"skipped: {document.full_kind} is not checked", is_problem=False)
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
    spec = content.get("spec")
    name = spec.get("backend") if isinstance(spec, dict) else None
    known = backends if isinstance(name, str) and name in backends else None
    if found := external_metric_problems(content, known):
        raise ConfigInvalid(found)
    rule = rule_from_object(content, known)
    if known is None and backends and rule.backend:
        yield f"spec.backend: no configuration in these files has a backend {rule.backend!r}"
    if (price := price_per_day(rule, backends.get(rule.backend))) is not None:
        yield f"spec: {_dollars(price.dollars)} per day while the metric is read: {price.calculation}"
    if content["spec"].get("onEmpty") == "zero":
        yield "spec.onEmpty: zero scales the workload down whenever there are no series, also after a failure"


def _check_autoscaler(document: Document, _: Backends) -> Iterator[str]:
    if found := autoscaler_problems(document.content):
        raise ConfigInvalid(found)
    return (str(warning) for warning in warnings(decode_autoscaler({**document.content, "status": None})))


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
