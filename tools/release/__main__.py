"""Build the files of a release into `dist/`: sdist, wheel, Helm chart, SBOM and SHA-256 checksums.

    make release

The version is that of `pyproject.toml`. Helm is the one on the PATH, or the one that `make control-plane` builds. The
base image of the Dockerfile must be pinned to a digest.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.release import base_image

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"


def main() -> int:
    """Build everything and print the checksums."""
    helm, unpinned = find_helm(), base_image.problem(base_image.DOCKERFILE.read_text())
    if unpinned is not None or helm is None:
        print(unpinned or "helm not found: install it, or run `make control-plane`", file=sys.stderr)
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    run(sys.executable, "-m", "build", "--outdir", str(DIST))
    run(helm, "package", "manifests/helm/steadyscale", "--destination", str(DIST))
    sbom = DIST / f"steadyscale-{version}.cdx.json"
    run(sys.executable, "-m", "cyclonedx_py", "requirements", "requirements.txt", "--output-file", str(sbom))
    checksums = "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(DIST.iterdir()))
    (DIST / "SHA256SUMS").write_text(checksums)
    print(checksums, end="")
    return 0


def find_helm() -> str | None:
    """Return the path of helm, or None."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    built = Path(os.environ.get("STEADYSCALE_HELM") or cache / "steadyscale" / "helm")
    folders = (str(complete.parent) for complete in sorted(built.glob("*/complete"), reverse=True))
    return shutil.which("helm") or next(filter(None, (shutil.which("helm", path=each) for each in folders)), None)


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str) -> None:
    """Run a command in the project's folder; raise if it fails."""
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - fixed commands


if __name__ == "__main__":
    sys.exit(main())
