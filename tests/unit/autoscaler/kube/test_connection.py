"""Kubeconfigs that cannot be used: one line with the file and the reason, never a traceback."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.kube.connection import connect
from autoscaler.kube.errors import Unavailable

PREFIX = "cannot load the Kubernetes client configuration from "
KUBECONFIG: dict[str, Any] = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
NO_CONTEXT = "it has no current-context; set one with kubectl config use-context NAME"


def failure(path: Path) -> str:
    with pytest.raises(Unavailable) as raised:
        asyncio.run(connect(path))
    message = str(raised.value)
    assert message.startswith(f"{PREFIX}{path}: ")
    assert "\n" not in message
    assert "Errno" not in message
    return message.removeprefix(f"{PREFIX}{path}: ")


def test_missing_file_and_directory_are_reported_with_the_reason(tmp_path: Path):
    assert failure(tmp_path / "missing") == "No such file or directory"
    assert failure(tmp_path) == "Is a directory"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is not a kubeconfig"),
        ("- a list", "it is not a kubeconfig"),
        ("{}", NO_CONTEXT),
        ("current-context: ''", NO_CONTEXT),
        ("a: [", "it is not YAML: line 1"),
        (b"\xff\xfe\x00", "it is not YAML"),
        (yaml.safe_dump({**KUBECONFIG, "current-context": "y"}), "y"),
        (yaml.safe_dump({**KUBECONFIG, "clusters": []}), "c"),
    ],
    ids=["empty", "list", "no context", "empty context", "no YAML", "no text", "unknown context", "unknown cluster"],
)
def test_file_that_is_no_kubeconfig_is_reported_with_the_reason(content: str | bytes, reason: str, tmp_path: Path):
    file = tmp_path / "kubeconfig"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    assert reason in failure(file)


def test_certificate_that_cannot_be_loaded_is_reported(tmp_path: Path):
    file = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "missing.crt"}}
    file.write_text(yaml.safe_dump({**KUBECONFIG, "clusters": [cluster]}))

    assert "missing.crt" in failure(file)


scalars = st.none() | st.booleans() | st.text("ax:/", max_size=3)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2))


@st.composite
def kubeconfigs(draw: st.DrawFn) -> Any:
    """A kubeconfig with one value replaced by another or removed."""
    document = yaml.safe_load(yaml.safe_dump(KUBECONFIG))
    parent: Any = document
    while True:
        key = draw(st.sampled_from(sorted(parent) if isinstance(parent, dict) else range(len(parent))))
        if not isinstance(parent[key], dict | list) or draw(st.booleans()):
            parent[key] = draw(values)
            return document
        parent = parent[key]


@given(kubeconfigs())
def test_no_kubeconfig_raises_another_error(tmp_path_factory: pytest.TempPathFactory, document: Any):
    file = tmp_path_factory.getbasetemp() / "kubeconfig"
    file.write_text(yaml.safe_dump(document))

    with suppress(Unavailable):
        asyncio.run(connect(file))
