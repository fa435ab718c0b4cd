"""A file fits in one's head and a function on one's screen; the largest are printed, so that drift is seen."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES_OF_A_FILE = 300
MOST_LINES_OF_A_FUNCTION = 45
FILES = sorted((ROOT / "autoscaler").rglob("*.py"))


def functions():
    """Give every function with its place and its length, comments and docstring included."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_no_function_is_longer_than_a_screen(capsys):
    by_length = sorted(functions(), reverse=True)
    with capsys.disabled():
        shown = ", ".join(f"{name.split()[-1]} {lines}" for lines, name in by_length[:5])
        print(f"\nlongest functions: {shown}")  # noqa: T201 - drift should be seen

    assert [one for one in by_length if one[0] > MOST_LINES_OF_A_FUNCTION] == []


def test_no_file_is_longer_than_it_should_be(capsys):
    by_length = sorted(
        ((len(path.read_text().splitlines()), str(path.relative_to(ROOT))) for path in FILES), reverse=True
    )
    with capsys.disabled():
        shown = ", ".join(f"{name} {lines}" for lines, name in by_length[:5])
        print(f"\nlongest files: {shown}; {sum(lines for lines, _ in by_length)} lines in {len(FILES)}")  # noqa: T201

    assert [one for one in by_length if one[0] > MOST_LINES_OF_A_FILE] == []
