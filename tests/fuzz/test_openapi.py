"""Requests generated from the OpenAPI document, and responses checked against it."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from adapter.server.openapi import V3
from tests.conformance_http.client import Target
from tests.conformance_http.conftest import masters
from tests.loopback import RULES, loopback

schema = schemathesis.openapi.from_dict(V3)
metric_paths = schema.include(path_regex="metric")
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]
RELAXED = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
FAILING = {"broken", "slow"}  # fail by design: with 500, and after a minute
metrics = st.sampled_from([rule["name"] for rule in RULES if rule["name"] not in FAILING])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with loopback(tmp_path_factory.mktemp("schema")) as running:
        yield masters(running)


def validate(case: schemathesis.Case, target: Target) -> None:
    case.call_and_validate(
        base_url=target.url, checks=CHECKS, headers=dict(target.headers), verify=target.ca, cert=target.certificate
    )


@schema.parametrize()
@RELAXED
def test_response_conforms_to_the_schema(case: schemathesis.Case, target: Target):
    validate(case, target)


@metric_paths.given(metric=metrics)
@metric_paths.parametrize()
@RELAXED
def test_response_for_an_existing_metric_conforms_to_the_schema(case: schemathesis.Case, target: Target, metric: str):
    case.path_parameters = {"namespace": "default", "metric": metric}
    validate(case, target)
