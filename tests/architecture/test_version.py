"""pyproject.toml is the one source of the version; every other place that names it agrees."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLACES = {
    "Dockerfile": r"(?:ARG VERSION=|--tag=steadyscale:)(\S+)",
    "README.md": r"(?:--tag=steadyscale:|newTag: )([^\s}]+)",
    "manifests/base/deployment.yaml": r"image: steadyscale:(\S+)",
    "manifests/helm/steadyscale/Chart.yaml": r"(?m)^(?:version|appVersion): (\S+)",
}


@pytest.mark.parametrize("path", PLACES)
def test_version_equals_that_of_pyproject(path):
    found = re.findall(PLACES[path], (ROOT / path).read_text())

    assert found
    assert set(found) == {VERSION}
