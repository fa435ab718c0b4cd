"""Where the rules are in a document: prometheus-adapter's own file, a ConfigMap with it, or its chart's values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

from adapter.errors import ConfigInvalid

Document: TypeAlias = Mapping[str, Any]

_KEYS: Final = ("externalRules", "rules", "resourceRules")
_CHART_KEYS: Final = {"external": "externalRules", "custom": "rules", "resource": "resourceRules"}
_AROUND_VALUES: Final = ("prometheus-adapter", "prometheusAdapter", "values", "spec")
_DEEPEST: Final = 4


def rules_in(documents: list[object]) -> Document:
    """Return ``externalRules``, ``rules`` and ``resourceRules``, wherever they are; raise ``ConfigInvalid`` if not."""
    for document in documents:
        for found in _candidates(document, _DEEPEST):
            return found
    raise ConfigInvalid(
        ["not a configuration of prometheus-adapter: neither its own file, nor a ConfigMap or chart values with it"]
    )


def parse(text: str) -> list[object]:
    """Read YAML, one document or several."""
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ConfigInvalid([f"not YAML: {' '.join(str(error).split())}"]) from error


def _candidates(document: object, depth: int) -> Iterator[Document]:
    if not isinstance(document, Mapping) or not depth:
        return
    if document.get("kind") == "ConfigMap":
        for text in (document.get("data") or {}).values():
            for inner in parse(text) if isinstance(text, str) else ():
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
        for key in _AROUND_VALUES:
            yield from _candidates(document.get(key), depth - 1)
