"""The API server logs no errors about the discovery and the OpenAPI documents of Steadyscale."""

import re
from http.client import HTTPSConnection
from typing import Final

import pytest

from tests.integration.service import METRIC, Service, until

pytestmark = pytest.mark.apiserver

ADMIN: Final = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
FETCHED: Final = ("groups", "openapi_v2", "openapi_v3")
"""Endpoints that the API server fetches after the registration, and then about once a minute."""

ERROR: Final = re.compile(r"^[EW]\d{4} .*(openapi|discovery|external\.metrics\.k8s\.io|apiservice)", re.IGNORECASE)


def fetches(running: Service) -> dict[str, int]:
    """Return how often each endpoint was requested, from the metrics of the process."""
    tls = running.tls(running.plane.front_proxy)
    connection = HTTPSConnection("localhost", running.port, timeout=15, context=tls)
    try:
        connection.request("GET", "/metrics", headers=ADMIN)
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    counts = dict.fromkeys(FETCHED, 0)
    for endpoint, count in re.findall(
        r'^steadyscale_requests_total\{.*?endpoint="(\w+)".*\} (\S+)$', text, re.MULTILINE
    ):
        if endpoint in counts:
            counts[endpoint] += int(float(count))
    return counts


def test_api_server_logs_no_errors_about_discovery_and_openapi(running: Service) -> None:
    plane = running.plane
    begin, before = len(plane.apiserver.log.read_text(errors="replace")), fetches(running)
    plane.kubectl("get", "--raw", METRIC)
    until(
        lambda: all(count > before[endpoint] for endpoint, count in fetches(running).items()),
        "the API server has fetched discovery and both OpenAPI documents again",
    )
    logged = plane.apiserver.log.read_text(errors="replace")[begin:].splitlines()
    assert [line for line in logged if ERROR.search(line)] == []


def test_openapi_documents_of_the_api_server_contain_the_group(running: Service) -> None:
    until(
        lambda: "apis/external.metrics.k8s.io/v1beta1" in running.plane.kubectl("get", "--raw", "/openapi/v3"),
        "the group is in the index",
    )
    path = "/openapi/v3/apis/external.metrics.k8s.io/v1beta1"
    assert "ExternalMetricValueList" in running.plane.kubectl("get", "--raw", path)
