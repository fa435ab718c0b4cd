"""Names in objects never change which path of the Kubernetes API is requested.

The names reach the API client without validation here, as if another version had stored them.
"""

import ast
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.kube.client import KubeClient
from autoscaler.kube.discovery import Discovery, Resource
from autoscaler.kube.errors import BadRequest, KubeError
from autoscaler.kube.metrics_apis import MetricsApis
from autoscaler.kube.paths import api_path, api_url
from autoscaler.types.spec import (
    ExternalSource,
    Metric,
    MetricIdentifier,
    MetricTarget,
    ObjectReference,
    ObjectSource,
    PodsSource,
)
from autoscaler.values.selector import Selector
from tests.fakes.cluster import Cluster

ROOT = Path(__file__).parents[2]
HOSTILE = (
    *("..", ".", "", "../../secrets/x", "a/b", "a/../b", "/", "a?watch=1", "a#b", "%2e%2e", "%2F", "%", "a%00b"),
    *(
        "a b",
        "a\nb",
        "a\r\nHost: x",
        "\x00",
        "ü",
        "\uff0e\uff0e",
        "‥",
        "a;b",
        "a\\b",
        "..\\",
        "*",
        "@",
        "http://x/",
        "a&b=c",
        "a+b",
    ),
)
NAMES = st.sampled_from(HOSTILE) | st.text(max_size=20)


@settings(deadline=None, max_examples=300)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_path_has_exactly_the_given_segments_or_is_rejected(names: list[str]) -> None:
    path = api_path("apis", *names, "status")
    assert [unquote(segment, errors="surrogateescape") for segment in path.split("/")[1:]] == ["apis", *names, "status"]
    try:
        url = api_url("https://server:6443/prefix", path)
    except BadRequest:
        return
    assert url.raw_path == f"/prefix{path}"
    assert (url.host, url.port, url.raw_query_string, url.raw_fragment) == ("server", 6443, "", "")
    # A server that decodes the path before it splits it sees the same segments.
    assert unquote(url.raw_path).split("/")[2:] == ["apis", *names, "status"]
    assert not {"", ".", ".."} & set(names)


@pytest.mark.parametrize(
    "path", ["", "x", "/a/../b", "/a/./b", "/a//b", "/a?b", "/a#b", "/a/%2e%2e", "/a/%2E", "/a%2Fb", "/a b"]
)
def test_path_that_was_not_built_from_names_is_rejected(path: str) -> None:
    with pytest.raises(BadRequest):
        api_url("https://server", path)


@asynccontextmanager
async def recorded_paths() -> AsyncIterator[tuple[KubeClient, list[str]]]:
    """Provide a client of a server that answers everything, and the raw paths of its requests."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.raw_path.partition("?")[0])
        versions = [{"groupVersion": "custom.metrics.k8s.io/v1beta2", "version": "v1beta2"}]
        resources = [{"name": "widgets", "kind": "Widget"}, {"name": "widgets/scale", "kind": "Scale"}]
        return web.json_response({"items": [], "versions": versions, "resources": resources})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server, Cluster.serving() as cluster:
        connection = replace(cluster.connection, server=str(server.make_url("")).rstrip("/"))
        async with KubeClient.open(connection) as client:
            yield client, paths


def metric(name: str, described: str, api_version: str) -> list[Metric]:
    identifier, target = MetricIdentifier(name), MetricTarget("Value")
    reference = ObjectReference(kind="Widget", name=described, api_version=api_version)
    return [
        Metric(type="External", external=ExternalSource(metric=identifier, target=target)),
        Metric(type="Pods", pods=PodsSource(metric=identifier, target=target)),
        Metric(type="Object", object=ObjectSource(described_object=reference, target=target, metric=identifier)),
    ]


async def test_metric_and_object_names_stay_single_segments_of_the_requested_path() -> None:
    async with recorded_paths() as (client, paths):
        apis = MetricsApis(client, Discovery(client))
        for name in HOSTILE:
            for each in (*metric(name, "it", "g/v1"), *metric("it", name, "g/v1"), *metric("it", "it", f"{name}/v1")):
                await apis.read("shop", each, Selector())
                await apis.read(name, each, Selector())
    shapes = {
        ("external.metrics.k8s.io", 6),
        ("custom.metrics.k8s.io", 2),
        ("custom.metrics.k8s.io", 8),
    }
    for path in paths:
        words = unquote(path).split("/")[1:]
        is_metric = words[1].endswith("metrics.k8s.io")
        assert (words[1], len(words)) in shapes if is_metric else len(words) in {2, 3}, path
        assert "watch=1" not in path


async def test_scale_paths_stay_single_segments() -> None:
    async with recorded_paths() as (client, paths):
        for name in HOSTILE:
            for resource in (Resource("apps", "v1", "widgets", "Widget"), Resource(name, "v1", name, "Widget")):
                for namespace, target in (("shop", name), (name, "web")):
                    try:
                        await client.get(resource.path(namespace, target, "scale"))
                    except KubeError as error:
                        assert isinstance(error, BadRequest)  # noqa: PT017 - other names succeed
    assert paths
    for path in paths:
        words = unquote(path).split("/")
        assert (len(words), words[1], words[4], words[-1]) == (9, "apis", "namespaces", "scale"), path


def test_all_paths_with_variables_are_built_by_api_path() -> None:
    """An f-string with ``/{name}`` puts a name into a path without encoding it."""
    folders = ("autoscaler/kube", "adapter/custom_resources", "adapter/tls")
    files = [file for folder in folders for file in (ROOT / folder).glob("*.py")]
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.JoinedStr) and _inserts_segment(node)
    ]
    assert found == []


def _inserts_segment(text: ast.JoinedStr) -> bool:
    """Return whether a text starts like a path and inserts a variable that is not a constant after a slash."""
    parts: list[Any] = text.values
    starts_like_path = isinstance(parts[0], ast.Constant) and str(parts[0].value).startswith(("/api/", "/apis/"))
    variables = [
        following.value
        for part, following in pairwise(parts)
        if isinstance(part, ast.Constant)
        and str(part.value).endswith("/")
        and isinstance(following, ast.FormattedValue)
    ]
    constants = [isinstance(each, ast.Name) and each.id.strip("_").isupper() for each in variables]
    return starts_like_path and not all(constants)
