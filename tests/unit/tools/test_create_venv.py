"""The Python that `make` uses for its virtual environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "create_venv"


def python(path: Path, version: str) -> Path:
    """Write a program that behaves as a Python of this version; ``-m venv`` makes an environment with its copy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then echo {version}; else mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with only the programs of a shell in PATH, and with ``bin`` for Pythons."""
    (tmp_path / "bin").mkdir()
    for program in ("sh", "mkdir", "cp", "rm"):
        (tmp_path / "bin" / program).symlink_to(f"/bin/{program}")
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {"PATH": str(folder / "bin")}
    command = ["/bin/sh", str(SCRIPT), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode, done.stdout + done.stderr


def version_of(folder: Path) -> str:
    command = [str(folder / ".venv/bin/python"), "-c", ""]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def test_environment_is_made_by_the_first_supported_python(folder: Path):
    python(folder / "bin/python3", "3.9")
    python(folder / "bin/python3.12", "3.12")

    assert run(folder, "", ".venv") == (0, "")
    assert version_of(folder) == "3.12"
    assert run(folder, "--check", "", ".venv") == (0, "")


@pytest.mark.parametrize(
    ("requested", "found"),
    [("", "python3 is 3.9, which is too old"), ("python9", "python9 is not found"), ("python3", "python3 is 3.9")],
)
def test_unsupported_python_is_reported_with_the_supported_versions(requested: str, found: str, folder: Path):
    python(folder / "bin/python3", "3.9")

    code, output = run(folder, requested, ".venv")

    assert code == 1
    assert output.startswith(f"Steadyscale needs Python 3.11 or later; {found}")
    assert "make PYTHON=" in output
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize(
    ("made_by", "requested", "message"),
    [
        ("3.9", "", "Replacing .venv: it was made by Python 3.9.\n"),
        ("3.12", "python3", "Replacing .venv: it was made by Python 3.12.\n"),
        ("", "", "Replacing .venv: it has no working Python.\n"),
    ],
    ids=["too old", "another one is requested", "removed"],
)
def test_environment_of_a_wrong_python_is_replaced(made_by: str, requested: str, message: str, folder: Path):
    python(folder / "bin/python3", "3.11")
    (folder / ".venv/bin").mkdir(parents=True)
    if made_by:
        python(folder / ".venv/bin/python", made_by)

    assert run(folder, "--check", requested, ".venv")[0] != 0
    assert run(folder, requested, ".venv") == (0, message)
    assert version_of(folder) == "3.11"


def test_environment_of_another_supported_python_is_kept_unless_one_is_requested(folder: Path):
    python(folder / "bin/python3", "3.11")
    python(folder / ".venv/bin/python", "3.13")

    assert run(folder, "", ".venv") == (0, "")
    assert version_of(folder) == "3.13"


def test_real_python_is_accepted():
    assert os.access(SCRIPT, os.X_OK)
    assert run(Path("/"), "--check", sys.executable, sys.prefix)[0] == 0
