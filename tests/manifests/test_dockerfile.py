"""The Dockerfile: what its instructions promise, and its steps really taken, in a tree with nothing else in it.

There is no container runtime where the tests run, so no image is built here. What can go wrong without one is proven:
that what is copied is all an installation needs, that the steps succeed, and that the command starts from their result.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.manifests.rendered import MANIFESTS, ROOT, Json

IGNORED = (".git/", ".venv/", "tests/control_plane/", "docs/", "id_rsa", "token")
SECRET = re.compile(r"(?i)\b\w*(password|secret|token|api_?key)\w*\s*=")


@dataclass(frozen=True)
class Instruction:
    stage: int
    word: str
    rest: str


def instructions() -> list[Instruction]:
    """Read the Dockerfile: one instruction for each line, continued lines joined, comments left out."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found, stage = [], -1
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, rest = line.split(maxsplit=1)
        stage += word == "FROM"
        found.append(Instruction(stage, word, rest))
    return found


def of(word: str, stage: int | None = None) -> list[str]:
    return [one.rest for one in instructions() if one.word == word and stage in (None, one.stage)]


def deployed() -> Json:
    """Give the pod of the Deployment."""
    pod: Json = yaml.safe_load((MANIFESTS / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    return pod


def last() -> int:
    return instructions()[-1].stage


def test_there_are_two_stages_and_only_what_was_installed_goes_from_one_to_the_other() -> None:
    assert last() == 1
    assert of("COPY", last()) == ["--from=build /opt/steadyscale /opt/steadyscale"]


def test_every_base_is_a_slim_image_of_a_fixed_version() -> None:
    for base in of("FROM"):
        image, _, tag = base.split()[0].partition(":")
        assert (image, tag) == ("python", "3.11-slim-bookworm")


def test_it_runs_as_a_user_that_is_a_number_and_not_root_and_nothing_is_run_after_that() -> None:
    final = [one for one in instructions() if one.stage == last()]
    assert of("USER", last()) == ["65532:65532"]
    after = final[[one.word for one in final].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & {one.word for one in after}


def test_it_runs_as_the_user_whom_the_deployment_names() -> None:
    pod = deployed()
    context = pod["securityContext"]
    assert of("USER", last()) == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert str(pod["containers"][0]["ports"][0]["containerPort"]) in of("EXPOSE")


def test_no_tool_that_installs_is_left() -> None:
    assert any("pip uninstall --yes pip" in run for run in of("RUN", 0))
    assert any("pip uninstall --yes pip" in run for run in of("RUN", last()))
    assert not any("apt-get" in run for run in of("RUN"))


def test_nothing_secret_is_in_it_and_nothing_is_fetched_from_a_url() -> None:
    assert not of("ADD")
    for word in ("ARG", "ENV", "RUN", "LABEL"):
        assert not [rest for rest in of(word) if SECRET.search(rest) or "://" in rest]


def test_it_is_labelled_and_says_whether_it_is_well() -> None:
    (labels,) = of("LABEL")
    for name in ("title", "description", "licenses", "version", "revision", "base.name"):
        assert f"org.opencontainers.image.{name}=" in labels
    (check,) = of("HEALTHCHECK")
    assert "/livez" in check
    compile(re.search(r'"-c", "(.*)"\]', check)[1], "healthcheck", "exec")  # type: ignore[index]


def test_versions_agree() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"VERSION={version[1]}" in of("ARG", last())
    chart = (MANIFESTS / "helm" / "steadyscale" / "Chart.yaml").read_text()
    assert f"\nversion: {version[1]}\nappVersion: {version[1]}\n" in chart
    assert deployed()["containers"][0]["image"] == f"steadyscale:{version[1]}"


def test_every_dependency_is_installed_in_the_version_that_was_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in {"dev", "all"}}
    fixed = {re.sub(r"[-_.]+", "-", name).lower() for name in _constrained()}
    for wanted in (*project["dependencies"], *(need for needs in extras.values() for need in needs)):
        assert re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", wanted)[0]).lower() in fixed, wanted  # type: ignore[index]


def test_it_has_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["all"] == [f"steadyscale[{','.join(name for name in extras if name not in {'dev', 'all'})}]"]
    assert any("'.[all]'" in run for run in of("RUN", 0))


def _constrained() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line.partition("==")[0] for line in lines if line and not line.startswith("#")]


def sent(path: str) -> bool:
    """Say whether a file goes to the builder, by .dockerignore: the last line that matches decides."""
    goes = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.lstrip("!")
        if not line or line.startswith("#"):
            continue
        inside = pattern.removeprefix("**/")
        if fnmatch(path, pattern) or path.startswith(f"{pattern}/") or f"/{inside}/" in f"/{path}/" or pattern == "*":
            goes = line.startswith("!")
    return goes


def test_only_what_is_copied_goes_to_the_builder() -> None:
    assert [path for path in IGNORED if sent(path)] == []
    assert not sent("adapter/__pycache__/app.pyc")
    for copied in of("COPY", 0):
        assert [path for path in copied.split()[:-1] if not sent(path)] == []


@pytest.mark.image
def test_its_steps_install_a_command_that_starts_where_nothing_else_is(tmp_path: Path) -> None:
    source, prefix = tmp_path / "src", tmp_path / "opt" / "steadyscale"
    source.mkdir()
    prefix.parent.mkdir()
    for copied in of("COPY", 0):
        *paths, into = copied.split()
        for path in paths:
            _copy(ROOT / path, source / (Path(path).name if into == "./" else into))
    for run in of("RUN", 0):
        here = run.replace("/opt/steadyscale", str(prefix)).replace("python -m", f"{shlex.quote(sys.executable)} -m")
        done = subprocess.run(["sh", "-ec", here], cwd=source, capture_output=True, text=True, timeout=540, check=False)  # noqa: S603, S607
        assert done.returncode == 0, f"{run}\n{done.stdout}{done.stderr}"
    shutil.rmtree(source)
    for program in ("pip", "easy_install", "gcc"):
        assert not (prefix / "bin" / program).exists()
    assert "external.metrics.k8s.io" in _started(prefix, tmp_path, "--help")
    config = tmp_path / "config.yaml"
    config.write_text("rules: [{name: queue-depth, static: [{value: 1}]}]")
    assert "1 checked, 0 problems" in _started(prefix, tmp_path, "check", str(config))
    assert not (tmp_path / "home").exists()


def _copy(what: Path, into: Path) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    if what.is_dir():
        shutil.copytree(what, into, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(what, into)


def _started(prefix: Path, folder: Path, *words: str) -> str:
    """Start the command with no environment but the image's, from a place where the source is not."""
    environment = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder / "home")}
    command = [str(prefix / "bin" / "steadyscale"), *words]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
