"""The CustomResourceDefinitions are found in the source tree and in a wheel."""

import tomllib
from pathlib import Path

import pytest

from adapter.custom_resources import definitions

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("plural", ["podautoscalers", "externalmetrics"])
def test_definition_of_the_source_tree_is_found(plural: str) -> None:
    assert definitions.definition_of(plural)["metadata"]["name"] == f"{plural}.steadyscale.dev"


def test_wheel_contains_the_definitions_where_they_are_read() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    package = Path(definitions.__file__).parent.relative_to(ROOT)
    assert included["manifests/crds"] == str(package / "crds")
