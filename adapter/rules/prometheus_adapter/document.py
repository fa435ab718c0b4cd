"""Detection of prometheus-adapter rules in a YAML file.

The file is the configuration of prometheus-adapter itself, a ConfigMap with it, or the values of its Helm chart.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

from adapter.decoding.problem import ConfigInvalid, Problem

Document: TypeAlias = Mapping[str, Any]

_KEYS: Final = ("externalRules", "rules", "resourceRules")
_CHART_KEYS: Final = {"external": "externalRules", "custom": "rules", "resource": "resourceRules"}
_PARENT_KEYS: Final = ("prometheus-adapter", "prometheusAdapter", "values", "spec")
_MAX_DEPTH: Final = 4


def find_rules(documents: list[object]) -> Document:
    """Return ``externalRules``, ``rules`` and ``resourceRules``; raise ``ConfigInvalid`` if no document has them."""
    for document in documents:
        for candidate in _candidates(document, _MAX_DEPTH):
            return candidate
    message = "not a prometheus-adapter configuration: expected its config file, a ConfigMap with it, or Helm values"
    raise ConfigInvalid([Problem("", message)])


def parse_yaml(text: str) -> list[object]:
    """Parse the YAML documents of a file; raise ``ConfigInvalid`` if it is not YAML."""
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ConfigInvalid([Problem("", f"invalid YAML: {' '.join(str(error).split())}")]) from error


def _candidates(document: object, depth: int) -> Iterator[Document]:
    if not isinstance(document, Mapping) or not depth:
        return
    if document.get("kind") == "ConfigMap":
        for text in (document.get("data") or {}).values():
            for inner in parse_yaml(text) if isinstance(text, str) else ():
                yield from _candidates(inner, depth - 1)
    elif document.get("kind") == "List":
        for item in document.get("items") or ():
            yield from _candidates(item, depth - 1)
    elif isinstance(document.get("rules"), Mapping):
        chart = document["rules"]
        yield {key: chart[name] for name, key in _CHART_KEYS.items() if chart.get(name)}
    elif any(isinstance(document.get(key), list) for key in _KEYS[:2]) or "resourceRules" in document:
        yield {key: document[key] for key in _KEYS if document.get(key)}
    else:
        for key in _PARENT_KEYS:
            yield from _candidates(document.get(key), depth - 1)
