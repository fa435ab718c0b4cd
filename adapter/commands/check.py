"""``steadyscale check FILE...``: everything that is wrong with rules and autoscalers, before it is applied.

What a file is, its documents say: ``kind`` for Kubernetes' objects, none for our own configuration. A configuration
inside a ConfigMap is found there. An object of a kind that is none of ours is passed over, and said to be.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import msgspec
import yaml

from adapter.backends.configuration import BackendEntry, price_per_day
from adapter.commands.documents import Document, Finding, documents
from adapter.commands.undefined_metrics import undefined
from adapter.config import loading, model
from adapter.custom_resources.external_metric import rule_from_object
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.prometheus_adapter import conversion
from autoscaler.defaults import with_defaults
from autoscaler.settings import FeatureGates, Settings
from autoscaler.types.autoscaler import Autoscaler
from autoscaler.validation import prepared, problems, warnings
from autoscaler.wire import DecodeError, FieldError, decode_autoscaler

BAD: Final = 1
NOTHING_TO_CHECK: Final = 2
_SHOWN: Final = 0.005
"""Dollars; less would be shown as none."""

_OURS_BY: Final = ("rules", "backends", "serving", "auth", "limits", "log", "externalRules")

Backends: TypeAlias = Mapping[str, BackendEntry]


def run(options: argparse.Namespace) -> int:
    """Check the files; return the exit code."""
    return check(options.files, sys.stdout, form=options.output)


def check(files: Sequence[Path], out: TextIO, *, form: str = "text") -> int:
    """Check files and say what was found; return the exit code: 0 if nothing is wrong."""
    found: list[Finding] = []
    read: list[Document] = []
    for file in files:
        try:
            read += documents(file)
        except ConfigInvalid as error:
            found += [Finding(str(file), message) for message in error.messages]
    backends = _backends(read)
    found += [finding for document in read for finding in _findings(document, backends)]
    found += undefined(read)
    checked = sum(document.kind in _CHECKS for document in read)
    bad = [finding for finding in found if finding.is_problem]
    if form == "json":
        listed = [{"where": each.where, "text": each.text, "problem": each.is_problem} for each in found]
        out.write(msgspec.json.encode({"documents": checked, "problems": len(bad), "findings": listed}).decode() + "\n")
    else:
        out.writelines(f"{each.where}: {'' if each.is_problem else 'note: '}{each.text}\n" for each in found)
        out.write(f"{checked} checked, {len(bad)} {'problem' if len(bad) == 1 else 'problems'}\n")
    return BAD if bad else 0 if checked else NOTHING_TO_CHECK


def _backends(read: Sequence[Document]) -> dict[str, BackendEntry]:
    """Give the backends of all configurations at hand that make sense."""
    found: dict[str, BackendEntry] = {}
    for content in (each for document in read for each in _configurations(document)):
        try:
            found |= loading.decode(content).backends
        except ConfigInvalid:
            continue  # what is wrong with it is told where it is checked
    return found


def _configurations(document: Document) -> Iterator[object]:
    if document.kind == "":
        yield document.content
    elif document.kind == "ConfigMap":
        yield from (inside for _, inside in _inside(document.content))


def _findings(document: Document, backends: Backends) -> Iterator[Finding]:
    examine = _CHECKS.get(document.kind)
    if examine is None:
        yield Finding(
            document.where, f"passed over: {document.kind} is none of the kinds that are checked", is_problem=False
        )
        return
    try:
        yield from (Finding(document.where, text, is_problem=False) for text in examine(document.content, backends))
    except ConfigInvalid as error:
        yield from (Finding(document.where, message) for message in error.messages)


def _configuration(content: Any, _: Backends) -> Iterator[str]:  # noqa: ANN401 - whatever stands in the file
    if isinstance(content, dict) and ("externalRules" in content or isinstance(content.get("rules"), dict)):
        return _prometheus_adapter(content)
    return _prices(loading.decode(content))


def _prices(read: model.Config) -> Iterator[str]:
    """Say what asking costs, where somebody charges for that, and how much all of it."""
    total = 0.0
    for number, rule in enumerate(read.rules):
        if (price := price_per_day(rule, read.backends.get(rule.backend))) is not None:
            total += price.dollars
            yield f"rules[{number}]: {_costs(price.dollars)} a day while it is read: {price.because}"
    if total:
        yield f"rules: {_costs(total)} a day in all while all are read"


def _costs(dollars: float) -> str:
    return f"asking costs about ${dollars:,.2f}" if dollars >= _SHOWN else "asking costs less than $0.01"


def _prometheus_adapter(content: Mapping[str, Any]) -> Iterator[str]:
    """Check prometheus-adapter's own file for someone who moves over."""
    found = conversion.parse_file(yaml.safe_dump(dict(content))).notes
    yield from (f"{each.path}: {each.text}" for each in found if each.level != "error")
    if wrong := [Problem(each.path, each.text) for each in found if each.level == "error"]:
        raise ConfigInvalid(wrong)


def _config_map(content: Mapping[str, Any], backends: Backends) -> Iterator[str]:
    """Check each entry that looks like our configuration."""
    for key, inside in _inside(content):
        try:
            yield from _configuration(inside, backends)
        except ConfigInvalid as error:
            raise ConfigInvalid(problem.below(f"data[{key}]") for problem in error.problems) from None


def _inside(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, text in (content.get("data") or {}).items():
        try:
            inside = yaml.safe_load(text)
        except yaml.YAMLError:
            continue  # somebody else's file
        if isinstance(inside, dict) and any(part in inside for part in _OURS_BY):
            yield key, inside


def _external_metric(content: Mapping[str, Any], backends: Backends) -> Iterator[str]:
    """Check an object, by the configuration if that is at hand: it says what parameters there are."""
    rule = rule_from_object(content, None)
    entry = backends.get(rule.backend)
    if entry is not None:
        rule = rule_from_object(content, backends)
    elif backends and rule.backend:
        yield f"spec.backend: no configuration in these files has a backend {rule.backend!r}"
    if (price := price_per_day(rule, entry)) is not None:
        yield f"spec: {_costs(price.dollars)} a day while it is read: {price.because}"
    if (content.get("spec") or {}).get("onEmpty") == "zero":
        yield "spec.onEmpty: zero scales the workload down whenever the series disappear, for whatever reason"


def _autoscaler(content: Mapping[str, Any], _: Backends) -> Iterator[str]:
    decoded, faults = _decoded(content)
    gates, settings = FeatureGates(), Settings()
    metadata = msgspec.structs.replace(decoded.metadata, namespace=decoded.metadata.namespace or "default")
    filled = msgspec.structs.replace(decoded, metadata=metadata, spec=with_defaults(decoded.spec))
    found = problems(prepared(filled, gates=gates), gates=gates, settings=settings)
    meant = {fault.meant for fault in faults}  # what is wrong with those follows from their not being there
    if faults or found:
        raise ConfigInvalid(
            [
                *(Problem(fault.path, fault.advice) for fault in faults),
                *(Problem(one.path, one.body) for one in found if one.path not in meant),
            ]
        )
    return (str(advice) for advice in warnings(decoded))


def _decoded(content: Mapping[str, Any]) -> tuple[Autoscaler, tuple[FieldError, ...]]:
    """Read an autoscaler, and say which fields it should not have: what is wrong with the others is told as well."""
    try:
        return decode_autoscaler(content, strict=True), ()
    except DecodeError as error:
        faults = error.faults
    try:
        return decode_autoscaler(content), faults
    except DecodeError:
        raise ConfigInvalid(Problem(fault.path, fault.advice) for fault in faults) from None


def _native_autoscaler(content: Mapping[str, Any], backends: Backends) -> Iterator[str]:
    if content.get("apiVersion") != "autoscaling/v2":
        raise ConfigInvalid(
            [Problem("apiVersion", "must be autoscaling/v2 to be checked", value=content.get("apiVersion"))]
        )
    yield from _autoscaler(content, backends)
    for number, metric in enumerate(content["spec"].get("metrics") or ()):
        if (metric.get("external") or {}).get("fallback"):
            yield f"spec.metrics[{number}].external.fallback: released API servers drop it; use a PodAutoscaler"


_CHECKS: Final[Mapping[str, Callable[[Any, Backends], Iterator[str]]]] = {
    "": _configuration,
    "ConfigMap": _config_map,
    "ExternalMetric": _external_metric,
    "PodAutoscaler": _autoscaler,
    "HorizontalPodAutoscaler": _native_autoscaler,
}
