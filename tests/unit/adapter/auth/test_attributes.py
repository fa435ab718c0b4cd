import pytest

from adapter.auth.attributes import Attributes, NonResourceAttributes, ResourceAttributes, attributes_of

G, V = "external.metrics.k8s.io", "v1beta1"
ROOT = f"/apis/{G}/{V}"


def resource(verb: str, **more: str) -> ResourceAttributes:
    return ResourceAttributes(verb, G, V, **more)


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", f"{ROOT}/namespaces/ns/m", {}, resource("list", namespace="ns", resource="m")),
        ("HEAD", f"{ROOT}/namespaces/ns/m/", {}, resource("list", namespace="ns", resource="m")),
        ("GET", f"{ROOT}/namespaces/ns/m", {"watch": "1"}, resource("watch", namespace="ns", resource="m")),
        ("GET", f"{ROOT}/namespaces/ns/m", {"watch": ""}, resource("watch", namespace="ns", resource="m")),
        ("GET", f"{ROOT}/namespaces/ns/m", {"watch": "False"}, resource("list", namespace="ns", resource="m")),
        ("GET", f"{ROOT}/namespaces/ns/m/foo", {}, resource("get", namespace="ns", resource="m", name="foo")),
        (
            "GET",
            f"{ROOT}/namespaces/ns/m/foo/bar",
            {},
            resource("get", namespace="ns", resource="m", name="foo", subresource="bar"),
        ),
        (
            "GET",
            f"{ROOT}/namespaces/ns/status",
            {},
            resource("get", namespace="ns", resource="namespaces", name="ns", subresource="status"),
        ),
        (
            "GET",
            f"{ROOT}/namespaces/ns/m",
            {"fieldSelector": "metadata.name=x"},
            resource("list", namespace="ns", resource="m", name="x"),
        ),
        ("POST", f"{ROOT}/namespaces/ns/m", {}, resource("create", namespace="ns", resource="m")),
        ("PUT", f"{ROOT}/namespaces/ns/m", {}, resource("update", namespace="ns", resource="m")),
        ("PATCH", f"{ROOT}/namespaces/ns/m", {}, resource("patch", namespace="ns", resource="m")),
        ("DELETE", f"{ROOT}/namespaces/ns/m", {}, resource("deletecollection", namespace="ns", resource="m")),
        ("DELETE", f"{ROOT}/namespaces/ns/m/x", {}, resource("delete", namespace="ns", resource="m", name="x")),
        ("GET", f"{ROOT}/m", {}, resource("list", resource="m")),
        ("GET", f"{ROOT}/namespaces/ns", {}, resource("get", namespace="ns", resource="namespaces", name="ns")),
        ("GET", ROOT, {}, NonResourceAttributes("get", ROOT)),
        ("GET", f"{ROOT}/", {}, NonResourceAttributes("get", f"{ROOT}/")),
        ("POST", "/metrics", {}, NonResourceAttributes("post", "/metrics")),
        ("GET", "/openapi/v3/apis/x/y", {}, NonResourceAttributes("get", "/openapi/v3/apis/x/y")),
        ("GET", "/", {}, NonResourceAttributes("get", "/")),
        ("GET", "", {}, NonResourceAttributes("get", "")),
    ],
)
def test_attributes_are_parsed_as_kubernetes_does(method: str, path: str, query: dict[str, str], expected: Attributes):
    assert attributes_of(method, path, query) == expected
