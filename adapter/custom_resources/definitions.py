"""The CustomResourceDefinitions of the project, from the wheel or from the source tree."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml

_SOURCE_TREE: Final = Path(__file__).parents[2] / "manifests" / "crds"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C implementation, if available, loads the CRDs a second faster."""


@cache
def definition_of(plural: str) -> dict[str, Any]:
    """Return a definition, such as that of ``podautoscalers``; it must not be changed."""
    packaged = resources.files("adapter.custom_resources") / "crds"
    folder = packaged if packaged.is_dir() else _SOURCE_TREE
    definition: dict[str, Any] = yaml.load((folder / f"{plural}.yaml").read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - safe
    return definition


def schema_of(plural: str) -> dict[str, Any]:
    """Return the schema of the only version of a definition."""
    (version,) = definition_of(plural)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema
