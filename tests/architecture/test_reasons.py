"""Every reason that a condition or an event can have is reached by a vector or named by a test."""

import ast
import json
from pathlib import Path

import pytest

from autoscaler.types.steps import NotAppliedReason, ScalingLimit

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "autoscaler" / "algorithm").glob("*.py"))
TESTS = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
VECTORS = sorted((ROOT / "tests" / "vectors").rglob("*.json"))

PLACE_OF_REASON = {"Finding": 2, "Event": 1, "warning": 0, "notice": 0, "_refusal": 0, "Unavailable": 0}
"""Which argument of these is the reason."""


def called(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def constants(tree):
    """Give the module's named strings."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield target.id, node.value.value


def reasons_in(source):
    """Give the reasons that a module gives, written out or by name."""
    tree = ast.parse(source.read_text())
    named = dict(constants(tree))
    for name, value in named.items():
        if name.startswith("FAILED_") or name == "UNKNOWN_SOURCE":
            yield value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in PLACE_OF_REASON:
            place = PLACE_OF_REASON[called(node)]
            argument = node.args[place] if len(node.args) > place else None
            if isinstance(argument, ast.Constant):
                yield argument.value
            elif isinstance(argument, ast.Name) and argument.id in named:
                yield named[argument.id]


REASONS = sorted({reason for source in SOURCES for reason in reasons_in(source)} | {*ScalingLimit, *NotAppliedReason})


@pytest.fixture(scope="module")
def reached():
    """Collect every reason that a vector expects, and every word that a test names."""
    found = {reason for path in VECTORS for reason in reasons_expected(json.loads(path.read_bytes()))}
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def reasons_expected(value):
    if isinstance(value, dict):
        if isinstance(value.get("reason"), str):
            yield value["reason"]
        for inner in value.values():
            yield from reasons_expected(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from reasons_expected(inner)


def test_the_reasons_are_found():
    assert {"ScalingDisabled", "FailedGetPodsMetric", "FeatureDisabled", "FallbackActive", "DryRun"} <= set(REASONS)
    assert len(REASONS) > 35


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_reached(reached, reason):
    assert reason in reached
