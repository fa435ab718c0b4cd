"""Tests wait for events, not for the speed of the machine."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
SHORTEST = 60
VIRTUAL_TIME = ("looptime", "AcceleratedLoop")
EXEMPT = {
    "faults": "its limits are part of what is promised beside a real control plane",
    "integration/test_shutdown.py": "a watch that is closed early",
    "security/soak": "intervals of attackers",
    "backends/faulty_proxy.py": "an interval of polling",
}


def short_limits(path: Path) -> list[str]:
    """Return the places of ``asyncio.timeout(LITERAL)`` and ``asyncio.wait_for(awaitable, LITERAL)``."""
    positions = {"timeout": 0, "wait_for": 1}
    return [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) == "asyncio"
        and call.func.attr in positions
        and len(call.args) > positions[call.func.attr]
        and isinstance(limit := call.args[positions[call.func.attr]], ast.Constant)
        and isinstance(limit.value, int | float)
        and limit.value < SHORTEST
    ]


def test_waits_on_real_time_give_up_late():
    files = [
        path
        for path in sorted(TESTS.rglob("*.py"))
        if not any(path.is_relative_to(TESTS / exempt) for exempt in EXEMPT)
        and not any(name in path.read_text(encoding="utf-8") for name in VIRTUAL_TIME)
    ]

    assert [place for path in files for place in short_limits(path)] == []
