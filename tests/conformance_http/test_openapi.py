"""The documents that the API server merges into its own."""

from tests.conformance_http.client import Target

KEY = "apis/external.metrics.k8s.io/v1beta1"


def test_version_2_has_only_our_paths_and_a_304(target: Target):
    answer = target.get("/openapi/v2", "application/json")

    assert (answer.status, answer.media, answer.json["swagger"]) == (200, "application/json", "2.0")
    assert all(path.startswith(f"/{KEY}/") for path in answer.json["paths"])
    again = target.ask("/openapi/v2", ("If-None-Match", answer.headers["ETag"]))
    assert (again.status, again.body) == (304, b"")


def test_version_3_has_an_index_of_our_group_alone(target: Target):
    answer = target.get("/openapi/v3")

    assert answer.status == 200
    assert list(answer.json["paths"]) == [KEY]


def test_version_3_is_kept_for_ever_under_its_hash(target: Target):
    url = target.get("/openapi/v3").json["paths"][KEY]["serverRelativeURL"]
    answer = target.get(url)

    assert (answer.status, answer.media) == (200, "application/json")
    assert answer.json["openapi"].startswith("3.")
    assert {"public", "immutable"} <= {part.strip() for part in answer.headers["Cache-Control"].split(",")}
    assert answer.headers["ETag"]
    assert answer.headers["Vary"] == "Accept"


def test_another_hash_leads_to_the_right_one(target: Target):
    url = target.get("/openapi/v3").json["paths"][KEY]["serverRelativeURL"]
    answer = target.get(f"/openapi/v3/{KEY}?hash=0123")

    assert (answer.status, answer.headers["Location"]) == (301, url)


def test_without_a_hash_the_document_is_not_for_ever(target: Target):
    answer = target.get(f"/openapi/v3/{KEY}")

    assert answer.status == 200
    assert "immutable" not in answer.headers.get("Cache-Control", "")


def test_every_reference_leads_somewhere(target: Target):
    for path, shelf in (("/openapi/v2", ("definitions",)), (f"/openapi/v3/{KEY}", ("components", "schemas"))):
        document = target.get(path, "application/json").json
        shelved = document
        for step in shelf:
            shelved = shelved[step]
        names = {ref.rpartition("/")[2] for ref in _references(document)}
        assert names
        assert names <= shelved.keys()


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in node.values()))
    return set().union(*(_references(item) for item in node)) if isinstance(node, list) else set()
