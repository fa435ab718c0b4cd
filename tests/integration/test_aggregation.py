"""Registered by its manifests, served through a real API server, guarded by the cluster's own roles."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.control_plane.certificates import DAY, TODAY, Authority
from tests.control_plane.cluster import ControlPlane
from tests.integration.service import APISERVICE, GROUP, METRIC, Service, apply_manifests, condition, until

pytestmark = pytest.mark.apiserver

FORGED = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}


def test_the_api_server_finds_it_available_by_a_verified_certificate(running: Service) -> None:
    registration = running.plane.get(APISERVICE)
    assert condition(registration, "Available") == "True"
    assert registration["spec"]["caBundle"]
    assert not registration["spec"].get("insecureSkipTLSVerify")


def test_applying_the_manifests_again_changes_nothing(running: Service, port: int) -> None:
    before = running.plane.get(APISERVICE)["spec"]
    apply_manifests(running.plane, port)
    assert running.plane.get(APISERVICE)["spec"] == before


def test_kubectl_reads_a_metric(running: Service) -> None:
    read = json.loads(running.plane.kubectl("get", "--raw", METRIC))
    assert read["kind"] == "ExternalMetricValueList"
    assert {item["metricLabels"]["queue"]: item["value"] for item in read["items"]} == {"a": "20", "b": "10"}


def test_kubectl_reads_a_metric_by_selector(running: Service) -> None:
    read = json.loads(running.plane.kubectl("get", "--raw", f"{METRIC}?labelSelector=queue%3Da"))
    assert [item["value"] for item in read["items"]] == ["20"]


def test_kubectl_lists_the_group_without_a_complaint(running: Service) -> None:
    printed = running.plane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", "-o", "name", check=False)
    assert printed.split() == ["externalmetrics.external.metrics.k8s.io"]


def test_kubectl_lists_all_groups_without_a_complaint(running: Service) -> None:
    until(lambda: "error" not in running.plane.kubectl("api-resources", check=False).lower(), "discovery is complete")


def test_kubectl_get_prints_a_table_without_a_complaint(running: Service) -> None:
    # The whole name: `externalmetrics` alone is also the plural of our ExternalMetric objects.
    printed = running.plane.kubectl(
        "get", "externalmetrics.external.metrics.k8s.io", "--namespace=default", check=False
    )
    assert "queue-depth" in printed
    assert "error" not in printed.lower()


def test_aggregated_discovery_shows_the_group_as_current(running: Service) -> None:
    def is_current() -> bool:
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        document = discovery(running.plane, accept)
        ours = [group for group in document["items"] if group["metadata"]["name"] == "external.metrics.k8s.io"]
        return bool(ours) and ours[0]["versions"][0]["freshness"] == "Current" and ours[0]["versions"][0]["resources"]

    until(is_current, "the group is current", within=75)


def discovery(plane: ControlPlane, accept: str) -> Any:
    trusting = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    trusting.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    asked = urllib.request.Request(f"{plane.server}/apis", headers={"Accept": accept})  # noqa: S310
    with urllib.request.urlopen(asked, context=trusting, timeout=10) as answer:  # noqa: S310
        return json.load(answer)


def test_a_namespace_can_still_be_deleted(running: Service) -> None:
    running.plane.kubectl("create", "namespace", "short-lived")
    running.plane.kubectl("delete", "namespace", "short-lived", "--timeout=60s")


def test_a_user_without_a_role_is_refused_by_the_api_server_and_by_us(running: Service) -> None:
    running.plane.kubeconfig("mallory")
    refused = running.plane.kubectl("get", "--raw", METRIC, user="mallory", check=False)
    assert "Forbidden" in refused
    code, status = running.ask(show=running.plane.authority.client("mallory"))
    assert (code, status["reason"]) == (403, "Forbidden")
    assert 'User "mallory" cannot list resource "queue-depth"' in status["message"]


def test_a_user_with_exactly_the_documented_role_reads_and_can_do_nothing_else(running: Service) -> None:
    bind = ("create", "clusterrolebinding", "reader", "--clusterrole=steadyscale:metric-reader", "--user=reader")
    running.plane.kubectl(*bind)
    running.plane.kubeconfig("reader")
    until(
        lambda: "ExternalMetricValueList" in running.plane.kubectl("get", "--raw", METRIC, user="reader", check=False),
        "the role is in force",
    )
    code, _ = running.ask(show=running.plane.authority.client("reader"))
    assert code == 200
    assert "Forbidden" in running.plane.kubectl("get", "--raw", f"{METRIC}/one", user="reader", check=False)
    assert running.ask("/metrics", show=running.plane.authority.client("reader"))[0] == 403


def test_a_service_account_reads_with_its_token_at_the_port_and_through_the_api_server(running: Service) -> None:
    plane = running.plane
    plane.kubectl("create", "serviceaccount", "worker")
    bind = ("--role=metrics", "--serviceaccount=default:worker")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "metrics", "namespace": "default"},
        "rules": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["queue-depth"], "verbs": ["list"]}],
    }
    plane.kubectl("apply", "--filename=-", stdin=json.dumps(role))
    plane.kubectl("create", "rolebinding", "metrics", *bind)
    token = plane.kubectl("create", "token", "worker").strip()
    plane.kubeconfig_with_token("worker", token)
    until(
        lambda: running.ask(headers={"Authorization": f"Bearer {token}"})[0] == 200, "the role is in force", within=10
    )
    assert "queue-depth" in plane.kubectl("get", "--raw", METRIC, user="worker")


def test_a_token_that_nobody_signed_is_refused(running: Service) -> None:
    assert running.ask(headers={"Authorization": "Bearer not.a.token"})[0] == 401


def test_forged_headers_straight_at_the_port_are_refused(running: Service) -> None:
    code, status = running.ask(headers=FORGED)
    assert code == 403
    assert "system:anonymous" in status["message"]


def test_forged_headers_with_a_users_certificate_are_the_users_own(running: Service) -> None:
    code, status = running.ask(show=running.plane.authority.client("mallory"), headers=FORGED)
    assert code == 403
    assert '"mallory"' in status["message"]


def test_forged_headers_through_the_api_server_are_the_users_own(running: Service) -> None:
    plane = running.plane
    trusting = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    trusting.load_cert_chain(*plane.authority.client("reader").save(plane.folder, "reader"))
    asked = urllib.request.Request(f"{plane.server}{GROUP}/namespaces/default/queue-depth/x", headers=FORGED)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, context=trusting, timeout=10)  # noqa: S310
    assert '\\"reader\\"' in refused.value.read().decode()
    refused.value.close()


def test_the_front_proxys_certificate_opens_the_door_that_headers_alone_do_not(running: Service) -> None:
    assert running.ask(show=running.plane.front_proxy, headers=FORGED)[0] == 200
    assert running.ask(show=running.plane.front_proxy_authority.client("somebody-else"), headers=FORGED)[0] == 401


def test_an_expired_certificate_is_refused(running: Service) -> None:
    expired = running.plane.authority.client("admin", ["system:masters"], until=TODAY - DAY)
    with pytest.raises(OSError, match=r"(?i)certificate expired|reset|closed"):
        running.ask(show=expired)


def test_a_foreign_certificate_is_refused(running: Service) -> None:
    foreign = Authority.new("cluster").client("front-proxy-client", ["system:masters"])
    with pytest.raises(OSError, match=r"(?i)unknown ca|decrypt error|reset|closed"):
        running.ask(show=foreign, headers=FORGED)


@pytest.mark.parametrize(
    ("verb", "what", "may"),
    [
        ("create", "tokenreviews.authentication.k8s.io", "yes"),
        ("create", "subjectaccessreviews.authorization.k8s.io", "yes"),
        ("get", "secrets/steadyscale-serving-cert", "yes"),
        ("update", "secrets/steadyscale-serving-cert", "yes"),
        ("patch", APISERVICE, "yes"),
        ("get", "secrets/another", "no"),
        ("list", "secrets", "no"),
        ("delete", "secrets/steadyscale-serving-cert", "no"),
        ("patch", "apiservices/v1beta1.metrics.k8s.io", "no"),
        ("create", "apiservices", "no"),
        ("get", "pods", "no"),
    ],
)
def test_the_manifests_allow_what_it_needs_and_no_more(running: Service, verb: str, what: str, may: str) -> None:
    us = "--as=system:serviceaccount:steadyscale:steadyscale"
    said = running.plane.kubectl("auth", "can-i", verb, what, "--namespace=steadyscale", us, check=False)
    assert said.split()[0] == may
