"""A real Prometheus on loopback: with blocks of fixed data, or scraping a live target; made to be killed."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program

_HOW: Final = "the package prometheus has both programs"


def require() -> None:
    """Make sure that there is a Prometheus; without, skip loudly, or fail where nothing may be skipped."""
    missing = [program for program in ("prometheus", "promtool") if shutil.which(program) is None]
    if missing:
        why = f"no real Prometheus here: {', '.join(missing)} not found ({_HOW})"
        if os.environ.get("CI") == "true" or os.environ.get("STEADYSCALE_REQUIRE_PROMETHEUS"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


class Server:
    """One Prometheus."""

    def __init__(self, folder: Path, port: int, target: str = "") -> None:
        self.port, self._folder = port, folder
        folder.mkdir(exist_ok=True)
        scrape = {
            "job_name": "live",
            "scrape_interval": "200ms",
            "scrape_timeout": "200ms",
            "honor_labels": True,
            "static_configs": [{"targets": [target]}],
        }
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [scrape] if target else []}))
        command = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={self.data}",
            "--storage.tsdb.retention.time=50y",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=error",
        ]
        self.program = Program(command, folder / "log", self._is_ready)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def ask(self, query: str, **parameters: str) -> list[Any]:
        """Ask it ourselves, past everything that is under test."""
        asked = urlencode({"query": query, **parameters})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=10) as answer:  # noqa: S310 - loopback
            found: list[Any] = json.loads(answer.read())["data"]["result"]
            return found

    def figure(self, name: str, **labels: str) -> float:
        """Read one of its own figures, added up over the series that have these labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:  # noqa: S310 - loopback
            lines = answer.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        named = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        found = [line for line in named if all(each in line for each in wanted)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def prometheus(folder: Path, *, target: str = "", samples: str = "") -> Iterator[Server]:
    """Run a Prometheus for the length of the block, with samples in OpenMetrics' text form in it."""
    server = Server(folder, free_port(), target)
    if samples:
        fill(server.data, samples)
    server.program.start()
    try:
        yield server
    finally:
        server.program.stop()


def fill(data: Path, samples: str) -> None:
    """Make blocks of samples; only while nobody runs on them."""
    source = data.parent / "samples.om"
    source.write_text(f"{samples}# EOF\n", encoding="utf-8")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(source), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def line(name: str, labels: Mapping[str, str], value: str, at: float) -> str:
    """Write one sample in OpenMetrics' text form."""
    escaped = {key: text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for key, text in labels.items()}
    inside = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    return f"{name}{{{inside}}} {value} {at}\n"
