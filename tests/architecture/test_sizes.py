"""Limits on the size of files and functions; the largest are printed, so that growth is visible."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAX_FILE_LINES = 270
MAX_FUNCTION_LINES = 45
FILES = sorted(path for package in ("adapter", "autoscaler") for path in (ROOT / package).rglob("*.py"))


def functions():
    """Yield the length and the location of every function, comments and docstring included."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def report(capsys, title, rows):
    with capsys.disabled():
        print(f"\n{title}: " + ", ".join(f"{name} ({lines})" for lines, name in rows[:5]))  # noqa: T201


def test_functions_fit_on_a_screen(capsys):
    by_length = sorted(functions(), reverse=True)
    report(capsys, "longest functions", by_length)

    assert [row for row in by_length if row[0] > MAX_FUNCTION_LINES] == []


def test_files_are_short(capsys):
    lines = ((len(path.read_text().splitlines()), str(path.relative_to(ROOT))) for path in FILES)
    by_length = sorted(lines, reverse=True)
    report(capsys, f"longest of {len(FILES)} files", by_length)

    assert [row for row in by_length if row[0] > MAX_FILE_LINES] == []
