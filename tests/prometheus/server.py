"""A real Prometheus on the loopback interface, with fixed data or scraping a target."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests import missing_programs
from tests.control_plane.cluster import LOOPBACK, free_port
from tests.control_plane.process import Program
from tests.waiting import GIVE_UP


def require() -> None:
    """Skip the test if Prometheus is not installed; fail instead in CI."""
    is_installed = all(shutil.which(program) for program in ("prometheus", "promtool"))
    missing_programs.require("prometheus", "apt install prometheus", is_installed=is_installed)


class Server:
    """One Prometheus process."""

    def __init__(self, folder: Path, port: int, target: str = "") -> None:
        self.port, self._folder = port, folder
        folder.mkdir(exist_ok=True)
        scrape = {
            "job_name": "live",
            "scrape_interval": "1s",
            "scrape_timeout": "1s",  # a shorter one expires on a busy machine, and the series become stale
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

    def query(self, query: str, **parameters: str) -> list[Any]:
        """Send a query without the code under test."""
        encoded = urlencode({"query": query, **parameters})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{encoded}", timeout=GIVE_UP) as response:  # noqa: S310 - loopback
            result: list[Any] = json.loads(response.read())["data"]["result"]
            return result

    def own_metric(self, name: str, **labels: str) -> float:
        """Return the sum of the series of one of its own metrics that have these labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=GIVE_UP) as response:  # noqa: S310 - loopback
            lines = response.read().decode().splitlines()
        matchers = [f'{key}="{value}"' for key, value in labels.items()]
        named = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        matching = [line for line in named if all(matcher in line for matcher in matchers)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in matching)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as response:  # noqa: S310
                return bool(response.status == 200)
        except OSError:
            return False


@contextmanager
def prometheus(folder: Path, *, target: str = "", samples: str = "") -> Iterator[Server]:
    """Run a Prometheus during the block, with samples given in the OpenMetrics text format."""
    server = Server(folder, free_port(), target)
    if samples:
        fill(server.data, samples)
    server.program.start()
    try:
        yield server
    finally:
        server.program.stop()


def fill(data: Path, samples: str) -> None:
    """Create TSDB blocks from samples, before Prometheus is started."""
    source = data.parent / "samples.om"
    source.write_text(f"{samples}# EOF\n", encoding="utf-8")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(source), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed arguments
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


def line(name: str, labels: Mapping[str, str], value: str, at: float) -> str:
    """Format one sample in the OpenMetrics text format."""
    escaped = {key: text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for key, text in labels.items()}
    inside = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    return f"{name}{{{inside}}} {value} {at}\n"
