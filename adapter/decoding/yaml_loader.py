"""Loading of YAML as kubectl loads it, with the place of an error as a problem. Pure."""

from collections.abc import Hashable
from typing import Any, Final

import yaml

from adapter.decoding.problem import ConfigInvalid, Problem

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_MERGE: Final = "tag:yaml.org,2002:merge"


class _KubernetesLoader(yaml.SafeLoader):
    """Loads YAML as kubectl does: a timestamp is a string, 5.0 is 5 as in JSON, and a duplicate key is an error."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and type of yaml's attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - yaml's signature
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add((key.tag, key.value))
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def construct_number(self, node: yaml.ScalarNode) -> float:
        number = float(self.construct_yaml_float(node))
        return int(number) if number.is_integer() and abs(number) < 2**53 else number


_KubernetesLoader.add_constructor("tag:yaml.org,2002:float", _KubernetesLoader.construct_number)


def load_yaml(text: str) -> list[Any]:
    """Return the documents of a text; raise ``ConfigInvalid`` with the place of an error."""
    try:
        return list(yaml.load_all(text, Loader=_KubernetesLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigInvalid([Problem(place, f"invalid YAML: {error.problem}")]) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigInvalid([Problem("", f"invalid YAML: {' '.join(str(error).split())}")]) from error
