"""Every reason of a condition or event is expected by a vector or named by a test."""

import ast
import json
from pathlib import Path

import pytest

from autoscaler.types.steps import NotAppliedReason, ScalingLimit

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "autoscaler" / "algorithm").glob("*.py"))
TESTS = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
VECTORS = sorted((ROOT / "tests" / "vectors").rglob("*.json"))

REASON_ARGUMENT = {
    "_able_to_scale": 1,
    "_scaling_active": 1,
    "_scaled_to_zero": 1,
    "_fallback_active": 1,
    "Event": 1,
    "warning_event": 0,
    "normal_event": 0,
    "_problem": 0,
    "UnavailableMetric": 0,
}
"""The position of the reason among the arguments of each function."""


def function_name(call):
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def constants(tree):
    """Yield the string constants of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            assert isinstance(target, ast.Name)
            yield target.id, node.value.value


def reasons_in(source):
    """Yield the reasons in a module, as literals or constants."""
    tree = ast.parse(source.read_text())
    named = dict(constants(tree))
    for name, value in named.items():
        if name.startswith("FAILED_") or name == "UNKNOWN_SOURCE":
            yield value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and function_name(node) in REASON_ARGUMENT:
            position = REASON_ARGUMENT[function_name(node)]
            argument = node.args[position] if len(node.args) > position else None
            if isinstance(argument, ast.Constant):
                yield argument.value
            elif isinstance(argument, ast.Name) and argument.id in named:
                yield named[argument.id]


REASONS = sorted({reason for source in SOURCES for reason in reasons_in(source)} | {*ScalingLimit, *NotAppliedReason})


@pytest.fixture(scope="module")
def tested_strings():
    """Return every reason in the vectors and every string in the tests."""
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


def test_reasons_are_collected():
    assert {"ScalingDisabled", "FailedGetPodsMetric", "FeatureDisabled", "FallbackActive", "DryRun"} <= set(REASONS)
    assert len(REASONS) > 35


@pytest.mark.parametrize("reason", REASONS)
def test_reason_is_tested(tested_strings, reason):
    assert reason in tested_strings
