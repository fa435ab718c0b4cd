"""Text files are read and written as UTF-8, also where the locale has another encoding."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT_METHODS = {"read_text": 0, "write_text": 1}
"""The position of the argument ``encoding``."""


def calls_without_encoding(path: Path) -> list[str]:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and (position := TEXT_METHODS.get(call.func.attr)) is not None
        and len(call.args) <= position
        and all(keyword.arg != "encoding" for keyword in call.keywords)
    ]


def test_text_files_have_an_explicit_encoding():
    files = [path for package in ("adapter", "autoscaler") for path in sorted((ROOT / package).rglob("*.py"))]

    assert [call for path in files for call in calls_without_encoding(path)] == []
