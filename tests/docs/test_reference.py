"""docs/configuration.md is what the types make of it, and says something of every setting."""

import re
import subprocess

import pytest

from autoscaler.settings import FLAGS
from tests.control_plane import programs
from tools.reference.__main__ import PLACE
from tools.reference.page import UPSTREAM, page


def test_the_page_is_what_the_types_make_of_it() -> None:
    assert PLACE.read_text() == page(), "run `make manifests`"


def test_every_setting_has_a_meaning() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if not re.split(r"(?<!\\)\|", row)[-2 if row.count("|") < 5 else -3].strip()] == []


def test_flags_of_kube_controller_manager_are_among_ours() -> None:
    assert UPSTREAM.keys() <= {flag.name for flag in FLAGS}


@pytest.mark.apiserver
def test_its_flags_have_the_defaults_that_the_page_says() -> None:
    manager = programs.require()["kube-controller-manager"]
    told = subprocess.run([manager, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S603
    for name, default in UPSTREAM.items():
        (about,) = re.findall(rf"\n\s+--{name}\b(?!-)([\s\S]*?)(?=\n\s+--|\n\n)", told)
        said = re.search(r'\(default "?([^")]*)"?\)', about)
        assert (said[1] if said else "") == default, name
