"""The program that parses queries with the parsers of Prometheus and VictoriaMetrics."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from tests.missing_programs import missing

_ROOT: Final = Path(__file__).parents[3]
_INSTALL: Final = Path(__file__).with_name("install")


class Parsed(msgspec.Struct):
    """How one parser reads a confined query."""

    selectors: list[list[str]] | None = None
    calls: list[str] | None = None
    tree: str = ""


class Verdicts(msgspec.Struct):
    """How all parsers read a query and its confined form."""

    plain: str
    experimental: str
    metricsql: str
    expected_tree: str = msgspec.field(name="expectedTree")
    readings: dict[str, Parsed]


_decode = msgspec.json.Decoder(Verdicts).decode


def require() -> Path:
    """Build the program if needed and return its path; if that is impossible, skip the test, or fail it in CI."""
    if shutil.which("go") is None:
        missing("go", "https://go.dev/dl; it builds the parsers of Prometheus and VictoriaMetrics")
    try:
        return install()
    except subprocess.CalledProcessError:
        missing("parsers of Prometheus and VictoriaMetrics", f"{_INSTALL.relative_to(_ROOT)} cannot build them")


def install() -> Path:
    done = subprocess.run([_INSTALL], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - own script
    return Path(done.stdout.strip())


def parse_all(program: Path, pairs: Iterable[tuple[str, str]], namespace: str) -> list[Verdicts]:
    """Return the verdicts on pairs of an original query and its confined form; the latter is empty if refused."""
    lines = [
        msgspec.json.encode({"original": original, "confined": confined, "namespace": namespace})
        for original, confined in pairs
    ]
    done = subprocess.run([program], input=b"\n".join(lines), stdout=subprocess.PIPE, check=True)  # noqa: S603 - own program
    return [_decode(line) for line in done.stdout.splitlines()]
