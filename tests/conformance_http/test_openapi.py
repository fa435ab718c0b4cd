"""The OpenAPI documents that the API server merges into its own."""

from tests.conformance_http.client import Target

KEY = "apis/external.metrics.k8s.io/v1beta1"


def test_version_2_has_only_paths_of_the_group_and_supports_etags(target: Target):
    response = target.get("/openapi/v2", "application/json")

    assert (response.status, response.media, response.json["swagger"]) == (200, "application/json", "2.0")
    assert all(path.startswith(f"/{KEY}/") for path in response.json["paths"])
    cached = target.request("/openapi/v2", ("If-None-Match", response.headers["ETag"]))
    assert (cached.status, cached.body) == (304, b"")


def test_version_3_index_has_only_the_group(target: Target):
    response = target.get("/openapi/v3")

    assert response.status == 200
    assert list(response.json["paths"]) == [KEY]


def test_version_3_document_is_immutable_under_its_hash(target: Target):
    url = target.get("/openapi/v3").json["paths"][KEY]["serverRelativeURL"]
    response = target.get(url)

    assert (response.status, response.media) == (200, "application/json")
    assert response.json["openapi"].startswith("3.")
    assert {"public", "immutable"} <= {part.strip() for part in response.headers["Cache-Control"].split(",")}
    assert response.headers["ETag"]
    assert response.headers["Vary"] == "Accept"


def test_wrong_hash_redirects_to_the_current_one(target: Target):
    url = target.get("/openapi/v3").json["paths"][KEY]["serverRelativeURL"]
    response = target.get(f"/openapi/v3/{KEY}?hash=0123")

    assert (response.status, response.headers["Location"]) == (301, url)


def test_document_without_a_hash_is_not_immutable(target: Target):
    response = target.get(f"/openapi/v3/{KEY}")

    assert response.status == 200
    assert "immutable" not in response.headers.get("Cache-Control", "")


def test_every_reference_has_a_definition(target: Target):
    for path, keys in (("/openapi/v2", ("definitions",)), (f"/openapi/v3/{KEY}", ("components", "schemas"))):
        document = target.get(path, "application/json").json
        definitions = document
        for key in keys:
            definitions = definitions[key]
        names = {ref.rpartition("/")[2] for ref in _references(document)}
        assert names
        assert names <= definitions.keys()


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in node.values()))
    return set().union(*(_references(item) for item in node)) if isinstance(node, list) else set()
