"""Pin the base image of the Dockerfile to the digest that its tag has in the registry now.

    python -m tools.release.base_image

The digest covers all platforms of the image. docker with buildx looks it up; no image is pulled. Commit the changed
Dockerfile; afterwards Dependabot proposes each new digest of the tag.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

DOCKERFILE: Final = Path(__file__).parents[2] / "Dockerfile"
_FROM: Final = re.compile(r"(?m)^FROM +(?P<tag>[^\s@]+)(?:@(?P<digest>\S+))? AS base$")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def main() -> int:
    """Write the digest into the Dockerfile."""
    docker = shutil.which("docker")
    if docker is None:
        print("docker not found: install docker with buildx", file=sys.stderr)
        return 1
    text = DOCKERFILE.read_text()
    tag = _base(text)["tag"]
    command = [docker, "buildx", "imagetools", "inspect", tag, "--format={{.Manifest.Digest}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed command
    if done.returncode:
        print(f"docker cannot look up {tag}: {done.stderr.strip()}", file=sys.stderr)
        return 1
    DOCKERFILE.write_text(pinned(text, done.stdout.strip()))
    return 0


def pinned(dockerfile: str, digest: str) -> str:
    """Return the Dockerfile with its base image pinned to a digest."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r} is not a digest: expected sha256: and 64 hexadecimal digits")
    return _FROM.sub(f"FROM {_base(dockerfile)['tag']}@{digest} AS base", dockerfile)


def problem(dockerfile: str) -> str | None:
    """Return why an image of this Dockerfile must not be released, or None."""
    base = _base(dockerfile)
    if _DIGEST.fullmatch(base["digest"] or ""):
        return None
    return f"Dockerfile: the base image {base['tag']} has no digest: run `python -m tools.release.base_image`, commit"


def _base(dockerfile: str) -> re.Match[str]:
    found = list(_FROM.finditer(dockerfile))
    if len(found) != 1:
        raise ValueError("Dockerfile: expected one line `FROM IMAGE:TAG[@DIGEST] AS base`")
    return found[0]


if __name__ == "__main__":
    sys.exit(main())
