"""Names follow docs/glossary.md: retired words are gone, and every class name has one meaning."""

import ast
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from adapter.backends.configuration import BackendEntry
from adapter.telemetry import Telemetry

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for folder in ("adapter", "autoscaler", "bench", "tools") for path in (ROOT / folder).rglob("*.py")
)

RETIRED_KEYS = """
tokenMemory allowMemory denyMemory breaker failures rest longest largestAnswer mostSeries mostRows questionsPerCall pace
lookEvery passOn reads lookback concurrentRequests drain headerCount headerBytes authorityLifetime overlap basic
connections
"""
RETIRED_MODULES = """
about access aside asking book bound breaker carrier conclude confine director door draft encode exchange fill gate
given guard hear journal lanes lessons line lines load memory notice outcome pace pacing page_door passing peer picture
place plan question reads refusals refuse report scene setting setting_apart shelf strict supply suspects tell
tell_metrics text trust turns values verdict way ways weather wire words working world
"""
NOT_RETIRED_HERE = {
    "autoscaler/conformance/report.py",
    "autoscaler/conformance/values.py",
    "autoscaler/values",
    "autoscaler/wire",
}
RETIRED_METRIC_WORDS = {"stretch", "lateness", "leading", "figures", "told", "asked"}
RETIRED_EVERYWHERE = """
tokenMemory allowMemory denyMemory largestAnswer mostSeries mostRows questionsPerCall lookEvery passOn period_stretch
SteadyscaleNobodyLeads figures-reader steadyscale:trust steadyscale:leadership setting_apart Turnstile Deposed Suspects
Halves MetricSupply RuleBook SettingApart
"""
BAD_FIRST_WORDS = re.compile(r"(Say|Tell|Let|Hear|Give|Whether|Who|What|How)\b")


def docstrings(tree):
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_property = any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)
        if not is_property and (text := ast.get_docstring(node)):
            yield node.name, text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_start_with_what_the_function_does(path):
    assert [name for name, text in docstrings(ast.parse(path.read_text())) if BAD_FIRST_WORDS.match(text)] == []


def test_no_module_or_folder_has_a_retired_name():
    parts = {part for path in MODULES for part in (path, *path.parents) if ROOT in part.parents}
    names = {str(part.relative_to(ROOT)) for part in parts if part.stem in RETIRED_MODULES.split()}

    assert names - NOT_RETIRED_HERE == set()


def test_no_configuration_key_has_a_retired_name():
    keys = set(re.findall(r"(?m)^\| `(\w+)` \|", (ROOT / "docs" / "configuration.md").read_text()))  # generated

    assert "circuitBreaker" in keys
    assert keys & set(RETIRED_KEYS.split()) == set()


def test_no_metric_has_a_retired_name():
    names = set(re.findall(r"# HELP (\w+) ", Telemetry().render()[0].decode()))

    assert names
    assert {name for name in names if RETIRED_METRIC_WORDS & set(name.split("_"))} == set()


def test_retired_names_are_nowhere_in_the_tree():
    command = ["git", "grep", "--fixed-strings", "--name-only", *(f"-e{word}" for word in RETIRED_EVERYWHERE.split())]
    command += ["--", ".", f":!{Path(__file__).relative_to(ROOT)}"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603

    assert found.returncode in {0, 1}, found.stderr
    assert found.stdout.split() == []


def test_public_class_names_have_one_meaning():
    places = defaultdict(list)
    for path in (each for each in MODULES if each.relative_to(ROOT).parts[0] in {"adapter", "autoscaler"}):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))

    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_every_backend_has_the_same_file_names():
    kinds = {field.name for field in msgspec.structs.fields(BackendEntry)} - {"external_metrics"}
    for kind in kinds:
        files = {path.stem for path in (ROOT / "adapter" / "backends" / kind).glob("*.py")}
        assert {"settings", "backend"} <= files, kind
