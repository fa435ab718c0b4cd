from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.errors import NotAcceptable
from adapter.server.content_negotiation import JSON, PROTOBUF, YAML, Offer, negotiate

TABLE = Offer(JSON.media, "Table", "meta.k8s.io", "v1")
OFFERS = (JSON, YAML, PROTOBUF, TABLE)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("  ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/json", JSON),
        ("APPLICATION/JSON", JSON),
        ("application/yaml", YAML),
        ("application/vnd.kubernetes.protobuf, */*", PROTOBUF),
        ("application/json;q=0.5, application/yaml", YAML),
        ("application/json;q=0.9,application/yaml;q=0.9", JSON),
        ("text/html, application/json;q=0.5", JSON),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", TABLE),
        ("application/json ; g=meta.k8s.io ; v=v1 ; as=Table", TABLE),
        ("application/json;as=Table;v=v1;g=meta.k8s.io;q=0.1,application/yaml", YAML),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/yaml", YAML),
        ("application/json;foo=bar", JSON),
        ("application/json;stream=watch", JSON),
    ],
)
def test_offer_of_the_matching_clause_with_the_highest_quality(accept: str, expected: Offer):
    assert negotiate(accept, OFFERS) == expected


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/cbor", "application/json;q=0", "application/json;as=Bogus", ",", ";", "x" * 5000],
)
def test_accept_header_without_a_matching_offer_is_not_acceptable(accept: str):
    with pytest.raises(NotAcceptable) as rejected:
        negotiate(accept, OFFERS)

    assert rejected.value.message == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@given(st.text())
def test_any_accept_header_gives_an_offer_or_not_acceptable(accept: str):
    with suppress(NotAcceptable):
        assert negotiate(accept, OFFERS) in OFFERS
