"""The Dockerfile: its instructions, and its steps run without a container runtime.

The steps run in an empty folder with only the copied files. That shows that the copied files are sufficient, that the
steps succeed, and that the installed command starts.
"""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.manifests.rendered import MANIFESTS, ROOT, Json
from tools.release import base_image

BUILD = 1  # the second stage installs
IGNORED = (".git/", ".venv/", "tests/control_plane/", "docs/", "id_rsa", "token")
SECRET = re.compile(r"(?i)\b\w*(password|secret|token|api_?key)\w*\s*=")


@dataclass(frozen=True)
class Instruction:
    stage: int
    word: str
    rest: str


def instructions() -> list[Instruction]:
    """Return the instructions of the Dockerfile, with continued lines joined and without comments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found, stage = [], -1
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, rest = line.split(maxsplit=1)
        stage += word == "FROM"
        found.append(Instruction(stage, word, rest))
    return found


def arguments(word: str, stage: int | None = None) -> list[str]:
    return [
        instruction.rest
        for instruction in instructions()
        if instruction.word == word and stage in (None, instruction.stage)
    ]


def deployed() -> Json:
    """Return the pod spec of the Deployment."""
    pod: Json = yaml.safe_load((MANIFESTS / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    return pod


def final_stage() -> int:
    return instructions()[-1].stage


def test_final_stage_copies_only_the_installation() -> None:
    assert arguments("COPY", final_stage()) == ["--from=build /opt/steadyscale /opt/steadyscale"]


def test_all_stages_have_one_slim_base_image_with_a_fixed_version() -> None:
    base, *others = arguments("FROM")
    assert re.fullmatch(r"python:3\.11-slim-bookworm(@sha256:[0-9a-f]{64})? AS base", base)
    assert others == ["base AS build", "base"]


def test_release_is_refused_without_the_digest_of_the_base_image() -> None:
    unpinned = re.sub(r"@sha256:\w+", "", (ROOT / "Dockerfile").read_text())
    message = base_image.problem(unpinned)
    assert message is not None
    assert "python:3.11-slim-bookworm has no digest" in message
    pinned = base_image.pinned(unpinned, f"sha256:{'0' * 64}")
    assert base_image.problem(pinned) is None
    assert pinned.replace(f"@sha256:{'0' * 64}", "") == unpinned
    assert base_image.pinned(pinned, f"sha256:{'1' * 64}").count("1" * 64) == 1


@pytest.mark.parametrize(
    "digest", ["", "latest", "sha256:", f"sha256:{'0' * 63}", f"sha512:{'0' * 64}", "sha256:x\nRUN"]
)
def test_only_a_digest_is_written_into_the_dockerfile(digest: str) -> None:
    with pytest.raises(ValueError, match="is not a digest"):
        base_image.pinned((ROOT / "Dockerfile").read_text(), digest)


def test_final_user_is_numeric_and_not_root() -> None:
    final = [instruction for instruction in instructions() if instruction.stage == final_stage()]
    assert arguments("USER", final_stage()) == ["65532:65532"]
    after = final[[instruction.word for instruction in final].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & {instruction.word for instruction in after}


def test_user_and_port_equal_those_of_the_deployment() -> None:
    pod = deployed()
    context = pod["securityContext"]
    assert arguments("USER", final_stage()) == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert str(pod["containers"][0]["ports"][0]["containerPort"]) in arguments("EXPOSE")


def test_image_has_no_installer() -> None:
    assert any("pip uninstall --yes pip" in run for run in arguments("RUN", BUILD))
    assert any("pip uninstall --yes pip" in run for run in arguments("RUN", final_stage()))
    assert not any("apt-get" in run for run in arguments("RUN"))


def test_image_has_no_secrets_and_no_downloads() -> None:
    assert not arguments("ADD")
    for word in ("ARG", "ENV", "RUN", "LABEL"):
        assert not [rest for rest in arguments(word) if SECRET.search(rest) or "://" in rest]


def test_image_has_labels_and_a_health_check() -> None:
    (labels,) = arguments("LABEL")
    for name in ("title", "description", "licenses", "version", "revision", "base.name"):
        assert f"org.opencontainers.image.{name}=" in labels
    (check,) = arguments("HEALTHCHECK")
    assert "/livez" in check
    compile(re.search(r'"-c", "(.*)"\]', check)[1], "healthcheck", "exec")  # type: ignore[index]


def test_every_installation_from_an_index_requires_hashes_and_wheels() -> None:
    installs = [step for run in arguments("RUN") for step in run.split("&&") if "pip install" in step]
    assert installs
    for step in installs:
        words = set(shlex.split(step))
        assert {"--require-hashes", "--only-binary=:all:"} <= words or {"--no-index", "--no-deps"} <= words, step


def is_sent(path: str) -> bool:
    """Return whether .dockerignore sends a file to the builder; the last matching line decides."""
    goes = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.lstrip("!")
        if not line or line.startswith("#"):
            continue
        inside = pattern.removeprefix("**/")
        if fnmatch(path, pattern) or path.startswith(f"{pattern}/") or f"/{inside}/" in f"/{path}/" or pattern == "*":
            goes = line.startswith("!")
    return goes


def test_only_copied_files_are_sent_to_the_builder() -> None:
    assert [path for path in IGNORED if is_sent(path)] == []
    assert not is_sent("adapter/__pycache__/app.pyc")
    for copied in arguments("COPY", BUILD):
        assert [path for path in copied.split()[:-1] if not is_sent(path)] == []


@pytest.mark.image
def test_steps_install_a_command_that_starts(tmp_path: Path) -> None:
    source, prefix = tmp_path / "src", tmp_path / "opt" / "steadyscale"
    source.mkdir()
    prefix.parent.mkdir()
    for copied in arguments("COPY", BUILD):
        *paths, into = copied.split()
        for path in paths:
            _copy(ROOT / path, source / (Path(path).name if into == "./" else into))
    for run in arguments("RUN", BUILD):
        here = run.replace("/opt/", f"{prefix.parent}/").replace("python -m", f"{shlex.quote(sys.executable)} -m")
        done = subprocess.run(["sh", "-ec", here], cwd=source, capture_output=True, text=True, timeout=540, check=False)  # noqa: S603, S607
        assert done.returncode == 0, f"{run}\n{done.stdout}{done.stderr}"
    shutil.rmtree(source)
    for program in ("pip", "easy_install", "gcc"):
        assert not (prefix / "bin" / program).exists()
    assert "external.metrics.k8s.io" in _run_command(prefix, tmp_path, "--help")
    config = tmp_path / "config.yaml"
    config.write_text("rules: [{name: queue-depth, static: [{value: 1}]}]")
    assert "1 document checked, 0 problems" in _run_command(prefix, tmp_path, "check", str(config))
    assert not (tmp_path / "home").exists()


def _copy(source: Path, into: Path) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, into, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, into)


def _run_command(prefix: Path, folder: Path, *words: str) -> str:
    """Run the command with the environment of the image, outside the source folder."""
    environment = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder / "home")}
    command = [str(prefix / "bin" / "steadyscale"), *words]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
