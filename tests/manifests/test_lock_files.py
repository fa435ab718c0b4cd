"""The lock files of the image agree with pyproject.toml and have hashes for every distribution and platform."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.manifests.rendered import ROOT
from tools.release import lock

PLATFORMS = {
    machine: [f"--platform={tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    for machine in ("x86_64", "aarch64")
}
LOCKS = sorted(lock.sources())
_ENTRY = re.compile(r"(?m)^(?P<need>[^#\s].*?)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)$")


def locked(path: Path) -> dict[str, Requirement]:
    """Return the entries of a lock file by name."""
    needs = [Requirement(entry["need"]) for entry in _ENTRY.finditer(path.read_text())]
    return {canonicalize_name(need.name): need for need in needs}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_entry_has_one_version_and_hashes(path: Path) -> None:
    entries = locked(path)
    assert all(re.fullmatch(r"==[^,*]+", str(need.specifier)) for need in entries.values())
    text = path.read_text()
    assert text == lock.HEADER + "".join(f"{entry[0]}\n" for entry in _ENTRY.finditer(text)), "a line is no entry"


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_locked_versions_are_those_that_pyproject_accepts(path: Path) -> None:
    entries = locked(path)
    for wanted in map(Requirement, lock.sources()[path]):
        found = entries[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(str(found.specifier).removeprefix("==")), wanted


def test_extra_all_has_every_backend() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["all"] == [f"steadyscale[{','.join(name for name in extras if name not in {'dev', 'all'})}]"]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock_files_name_no_index(path: Path) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", path.read_text())


@pytest.mark.image
def test_lock_files_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.release.lock", "--check"], cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0


@pytest.mark.image
@pytest.mark.parametrize("machine", PLATFORMS)
def test_every_entry_has_a_wheel_for_the_machine(machine: str, tmp_path: Path) -> None:
    options = ["--dry-run", "--quiet", "--ignore-installed", f"--target={tmp_path}", f"--python-version={lock.PYTHON}"]
    strict = ["--require-hashes", "--only-binary=:all:", "--no-deps", *PLATFORMS[machine]]
    files = [f"--requirement={ROOT / path.name}" for path in LOCKS if path.name == "requirements.txt"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pip", "install", *options, *strict, *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
