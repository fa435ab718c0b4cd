"""The import contracts of pyproject.toml hold."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_import_contracts_hold():
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command, "import-linter is a development dependency: make check installs it"

    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
