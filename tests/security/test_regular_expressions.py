"""Every regular expression of the product takes linear time on hostile texts of the length that can reach it."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.security.pumping import all_matches, hostile_texts, is_slow

ROOT: Final = Path(__file__).parents[2]
METHODS: Final = ("match", "fullmatch", "search", "sub", "findall", "finditer", "split")
QUERY, PARAMETER, DURATION, HEADER, SELECTOR, SERVER_TEXT = 16384, 1024, 32, 65536, 32768, 4096
OPERATOR = 1024  # texts in the configuration file, of which the operator is the only author

UNSERVED: Final = {"demo", "fakecluster"}
"""Folders whose code no tenant and no caller of a cluster reaches."""

BOUNDS: Final[dict[str, int]] = {
    "adapter/backends/azure/metrics_batch.py": PARAMETER,
    "adapter/backends/azure/resource_id.py": PARAMETER,
    "adapter/backends/azure/settings.py": OPERATOR,
    "adapter/backends/cloudwatch/expressions.py": QUERY,
    "adapter/backends/cloudwatch/query.py": QUERY,
    "adapter/backends/cloudwatch/settings.py": PARAMETER,
    "adapter/backends/connection/address.py": OPERATOR,
    "adapter/backends/connection/aws/errors.py": SERVER_TEXT,
    "adapter/backends/connection/aws/settings.py": PARAMETER,
    "adapter/backends/connection/redaction.py": SERVER_TEXT,
    "adapter/backends/datadog/settings.py": QUERY,
    "adapter/backends/google/settings.py": PARAMETER,
    "adapter/backends/google/time_series.py": PARAMETER,
    "adapter/backends/http/settings.py": PARAMETER * 2,
    "adapter/backends/http/xml_path.py": PARAMETER * 2,
    "adapter/backends/kafka/settings.py": PARAMETER,
    "adapter/backends/nats/settings.py": PARAMETER,
    "adapter/backends/newrelic/settings.py": QUERY,
    "adapter/backends/postgresql/settings.py": QUERY,
    "adapter/backends/sqs/settings.py": PARAMETER,
    "adapter/backends/upstream/settings.py": PARAMETER,
    "adapter/commands/help_texts.py": OPERATOR,
    "adapter/commands/simulation_variants.py": OPERATOR,
    "adapter/config/loading.py": OPERATOR,
    "adapter/decoding/duration.py": DURATION,
    "adapter/rules/go_template/functions.py": QUERY,
    "adapter/rules/go_template/lexer.py": QUERY,
    "adapter/rules/prometheus_adapter/migration_notes.py": OPERATOR,
    "adapter/rules/prometheus_adapter/naming.py": OPERATOR,
    "adapter/rules/promql/matchers.py": SELECTOR,
    "adapter/rules/promql/metricsql.py": QUERY,
    "adapter/rules/promql/parser.py": QUERY,
    "adapter/rules/promql/printer.py": QUERY,
    "adapter/rules/promql/string_literals.py": QUERY,
    "adapter/server/request_context.py": HEADER,
    "adapter/simulation/html_report.py": OPERATOR,
    "autoscaler/flags.py": OPERATOR,
    "autoscaler/kube/objects.py": SERVER_TEXT,
    "autoscaler/kube/paths.py": SERVER_TEXT,
    "autoscaler/readings.py": SERVER_TEXT,
    "autoscaler/values/amount.py": SELECTOR,
    "autoscaler/values/names.py": SELECTOR,
    "autoscaler/values/notation.py": SERVER_TEXT,
    "autoscaler/values/selector_text.py": SELECTOR,
    "autoscaler/wire/decode_error.py": QUERY,
}
"""The longest text that reaches the expressions of each file."""

DYNAMIC: Final = {
    "adapter/decoding/structural_schema.py: re.search(_python_pattern(schema['pattern']), content)": (
        "the patterns of the project's own CustomResourceDefinitions, matched with texts of at most maxLength"
    ),
    "adapter/rules/prometheus_adapter/naming.py: re.compile(translated.replace('\\\\z', '\\\\Z'), re.ASCII)": (
        "the operator's file of prometheus-adapter, matched with names of the operator's series"
    ),
}
"""Expressions that are not constants, with the reason why they are safe."""


_SINGLE_CHARACTERS: Final = {
    getattr(re._constants, name) for name in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY")
}


class Expression(NamedTuple):
    file: str
    line: int
    pattern: re.Pattern[str]
    methods: frozenset[str]


def expressions() -> tuple[list[Expression], list[str]]:
    """Return the constant expressions of the product, and the places of those that are not constant."""
    found, dynamic = [], []
    files = [file for folder in ("adapter", "autoscaler") for file in (ROOT / folder).rglob("*.py")]
    sources = {file: file.read_text() for file in files if not UNSERVED & set(file.parts)}
    everything = "\n".join(sources.values())
    for file, source in sorted(sources.items()):
        names: dict[ast.AST, str] = {}
        nodes: list[Any] = list(ast.walk(ast.parse(source)))
        for node in nodes:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                names[node.value] = node.target.id
            if not _is_call(node):
                continue
            path = str(file.relative_to(ROOT))
            try:
                module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
                pattern = _evaluated(node, vars(module))
            except NameError:
                dynamic.append(f"{path}: {ast.unparse(node)}")
                continue
            method, name = node.func.attr, names.get(node, "")
            scope = source if name.startswith("_") else everything
            calls = rf"\.({'|'.join(METHODS)})\("
            used = re.findall(rf"\b{name}{calls}", scope) if name else re.findall(rf"(?<!\bre){calls}", source)
            used = used or re.findall(rf"\bpattern{calls}", source)
            found.append(Expression(path, node.lineno, pattern, frozenset(used if method == "compile" else [method])))
    return found, dynamic


def _is_call(node: Any) -> bool:
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and getattr(node.func.value, "id", "") == "re" and node.func.attr in {"compile", *METHODS}


def _evaluated(node: Any, namespace: dict[str, Any]) -> re.Pattern[str]:
    """Compile the expression of a call with the constants of its module."""
    flags = (
        node.args[1:] if node.func.attr == "compile" else [each for each in node.args[2:] if "re." in ast.unparse(each)]
    )
    arguments = ", ".join(ast.unparse(each) for each in (node.args[0], *flags))
    compiled: re.Pattern[Any] = eval(f"re.compile({arguments})", {**namespace, "re": re})  # noqa: S307
    if isinstance(compiled.pattern, bytes):
        return re.compile(compiled.pattern.decode(), compiled.flags)
    return compiled


CONSTANT, NOT_CONSTANT = expressions()


def test_every_expression_is_registered() -> None:
    assert sorted({each.file for each in CONSTANT} ^ BOUNDS.keys()) == []
    assert sorted(set(NOT_CONSTANT) ^ DYNAMIC.keys()) == []


@pytest.mark.parametrize("file", sorted(BOUNDS))
def test_expression_takes_linear_time_on_hostile_texts(file: str) -> None:
    for expression in (each for each in CONSTANT if each.file == file):
        for method in expression.methods or {"fullmatch", "finditer"}:
            function = all_matches(expression.pattern, method)
            for text in hostile_texts(expression.pattern.pattern, expression.pattern.flags):
                slow = is_slow(function, text, BOUNDS[file])
                assert not slow, f"{file}:{expression.line}: {method} is slow on {slow[:60]!r} ({len(slow)} characters)"


def possessive_groups(pattern: str, flags: int) -> bool:
    """Return whether an expression repeats a group possessively: ``(?:ab?c)*+``."""
    pending: list[Any] = list(re._parser.parse(pattern, flags))
    while pending:
        operator, argument = pending.pop()
        is_possessive = operator is re._constants.POSSESSIVE_REPEAT
        if is_possessive and (len(argument[2]) > 1 or argument[2][0][0] not in _SINGLE_CHARACTERS):
            return True
        pending += _operations(argument)
    return False


def _operations(argument: Any) -> list[Any]:
    """Return all operations in the argument of an operation of a parsed expression."""
    if isinstance(argument, re._parser.SubPattern):
        return list(argument)
    if isinstance(argument, list | tuple):
        return [operation for each in argument for operation in _operations(each)]
    return []


def test_no_expression_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 match such expressions wrongly (CPython gh-106052); atomic groups are correct."""
    wrong = [each for each in CONSTANT if possessive_groups(each.pattern.pattern, each.pattern.flags)]
    assert [f"{each.file}:{each.line}" for each in wrong] == []


@pytest.mark.parametrize("pattern", [r"(?:ab?c)*+", r"x(?:y|(?:ab)?+)"])
def test_possessive_groups_are_found(pattern: str) -> None:
    assert possessive_groups(pattern, 0)


@pytest.mark.parametrize("pattern", [r"(?>(?:ab?c)*)[a-z]++\d?+", r"(\w++)"])
def test_possessive_characters_and_atomic_groups_are_accepted(pattern: str) -> None:
    assert not possessive_groups(pattern, 0)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", r"(\w+\s?)*$", r"/\*.*?\*/", r"'(?:\\.|[^'\\])*'", r"\s*<<-"]
)
def test_the_texts_find_known_slow_expressions(pattern: str) -> None:
    compiled = re.compile(pattern, re.DOTALL)
    texts = hostile_texts(pattern, compiled.flags)
    assert any(is_slow(all_matches(compiled, "findall"), text, QUERY) for text in texts)
