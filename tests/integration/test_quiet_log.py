"""The API server has nothing to complain about."""

import re
import time
from typing import Final

import pytest

from tests.integration.service import METRIC, Service, until

pytestmark = pytest.mark.apiserver

LONG_ENOUGH: Final = 120
"""Seconds. Discovery and both OpenAPI documents are fetched once a minute."""

COMPLAINT: Final = re.compile(r"^[EW]\d{4} .*(openapi|discovery|external\.metrics\.k8s\.io|apiservice)", re.IGNORECASE)


def test_in_two_minutes_it_logs_no_complaint_about_our_openapi_or_discovery(running: Service) -> None:
    plane = running.plane
    before = len(plane.apiserver.log.read_text(errors="replace"))
    deadline = time.monotonic() + LONG_ENOUGH
    while time.monotonic() < deadline:
        plane.kubectl("get", "--raw", METRIC)
        time.sleep(5)
    logged = plane.apiserver.log.read_text(errors="replace")[before:].splitlines()
    assert [line for line in logged if COMPLAINT.search(line)] == []


def test_its_openapi_documents_contain_ours(running: Service) -> None:
    until(
        lambda: "apis/external.metrics.k8s.io/v1beta1" in running.plane.kubectl("get", "--raw", "/openapi/v3"),
        "our document is in the index",
        within=75,
    )
    path = "/openapi/v3/apis/external.metrics.k8s.io/v1beta1"
    assert "ExternalMetricValueList" in running.plane.kubectl("get", "--raw", path)
