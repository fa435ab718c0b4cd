"""The aggregated API through a real API server: registration, discovery, authentication and authorization."""

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

REMOTE_USER = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}


def test_api_service_is_available_with_a_verified_certificate(running: Service) -> None:
    registration = running.plane.get(APISERVICE)
    assert condition(registration, "Available") == "True"
    assert registration["spec"]["caBundle"]
    assert not registration["spec"].get("insecureSkipTLSVerify")


def test_applying_the_manifests_again_keeps_the_ca_bundle(running: Service, port: int) -> None:
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


def test_kubectl_lists_the_resources_of_the_group(running: Service) -> None:
    printed = running.plane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", "-o", "name", check=False)
    assert printed.split() == ["externalmetrics.external.metrics.k8s.io"]


def test_kubectl_lists_all_groups_without_errors(running: Service) -> None:
    until(lambda: "error" not in running.plane.kubectl("api-resources", check=False).lower(), "discovery is complete")


def test_kubectl_get_prints_a_table(running: Service) -> None:
    # With the group: `externalmetrics` is also the plural of ExternalMetric objects.
    printed = running.plane.kubectl(
        "get", "externalmetrics.external.metrics.k8s.io", "--namespace=default", check=False
    )
    assert "queue-depth" in printed
    assert "error" not in printed.lower()


def test_aggregated_discovery_shows_the_group_as_current(running: Service) -> None:
    def is_current() -> bool:
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        document = discovery(running.plane, accept)
        groups = [group for group in document["items"] if group["metadata"]["name"] == "external.metrics.k8s.io"]
        return (
            bool(groups)
            and groups[0]["versions"][0]["freshness"] == "Current"
            and groups[0]["versions"][0]["resources"]
        )

    until(is_current, "the group is current")


def discovery(plane: ControlPlane, accept: str) -> Any:
    tls = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    tls.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
    request = urllib.request.Request(f"{plane.server}/apis", headers={"Accept": accept})  # noqa: S310
    with urllib.request.urlopen(request, context=tls, timeout=10) as response:  # noqa: S310
        return json.load(response)


def test_namespace_can_be_deleted(running: Service) -> None:
    running.plane.kubectl("create", "namespace", "short-lived")
    running.plane.kubectl("delete", "namespace", "short-lived", "--timeout=60s")


def test_user_without_a_role_is_forbidden_through_the_api_server_and_directly(running: Service) -> None:
    running.plane.kubeconfig("mallory")
    rejected = running.plane.kubectl("get", "--raw", METRIC, user="mallory", check=False)
    assert "Forbidden" in rejected
    code, status = running.request(credentials=running.plane.authority.client("mallory"))
    assert (code, status["reason"]) == (403, "Forbidden")
    assert 'User "mallory" cannot list resource "queue-depth"' in status["message"]


def test_external_metrics_reader_role_allows_only_reading_metrics(running: Service) -> None:
    bind = (
        "create",
        "clusterrolebinding",
        "reader",
        "--clusterrole=steadyscale:external-metrics-reader",
        "--user=reader",
    )
    running.plane.kubectl(*bind)
    running.plane.kubeconfig("reader")
    until(
        lambda: "ExternalMetricValueList" in running.plane.kubectl("get", "--raw", METRIC, user="reader", check=False),
        "the role takes effect",
    )
    code, _ = running.request(credentials=running.plane.authority.client("reader"))
    assert code == 200
    assert "Forbidden" in running.plane.kubectl("get", "--raw", f"{METRIC}/one", user="reader", check=False)
    assert running.request("/metrics", credentials=running.plane.authority.client("reader"))[0] == 403


def test_service_account_token_works_directly_and_through_the_api_server(running: Service) -> None:
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
        lambda: running.request(headers={"Authorization": f"Bearer {token}"})[0] == 200,
        "the role takes effect",
    )
    assert "queue-depth" in plane.kubectl("get", "--raw", METRIC, user="worker")


def test_invalid_token_is_rejected(running: Service) -> None:
    assert running.request(headers={"Authorization": "Bearer not.a.token"})[0] == 401


def test_remote_user_headers_without_a_front_proxy_certificate_are_ignored(running: Service) -> None:
    code, status = running.request(headers=REMOTE_USER)
    assert code == 403
    assert "system:anonymous" in status["message"]


def test_remote_user_headers_with_a_user_certificate_are_ignored(running: Service) -> None:
    code, status = running.request(credentials=running.plane.authority.client("mallory"), headers=REMOTE_USER)
    assert code == 403
    assert '"mallory"' in status["message"]


def test_remote_user_headers_through_the_api_server_are_replaced(running: Service) -> None:
    plane = running.plane
    tls = ssl.create_default_context(cafile=plane.folder / "ca.crt")
    tls.load_cert_chain(*plane.authority.client("reader").save(plane.folder, "reader"))
    request = urllib.request.Request(f"{plane.server}{GROUP}/namespaces/default/queue-depth/x", headers=REMOTE_USER)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as rejected:
        urllib.request.urlopen(request, context=tls, timeout=10)  # noqa: S310
    assert '\\"reader\\"' in rejected.value.read().decode()
    rejected.value.close()


def test_remote_user_headers_are_trusted_from_the_front_proxy_only(running: Service) -> None:
    assert running.request(credentials=running.plane.front_proxy, headers=REMOTE_USER)[0] == 200
    assert (
        running.request(credentials=running.plane.front_proxy_authority.client("somebody-else"), headers=REMOTE_USER)[0]
        == 401
    )


def test_expired_client_certificate_is_rejected(running: Service) -> None:
    expired = running.plane.authority.client("admin", ["system:masters"], until=TODAY - DAY)
    with pytest.raises(OSError, match=r"(?i)certificate expired|reset|closed"):
        running.request(credentials=expired)


def test_client_certificate_of_another_ca_is_rejected(running: Service) -> None:
    foreign = Authority.new("cluster").client("front-proxy-client", ["system:masters"])
    with pytest.raises(OSError, match=r"(?i)unknown ca|decrypt error|reset|closed"):
        running.request(credentials=foreign, headers=REMOTE_USER)


@pytest.mark.parametrize(
    ("verb", "resource", "allowed"),
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
def test_manifests_grant_only_the_needed_permissions(running: Service, verb: str, resource: str, allowed: str) -> None:
    account = "--as=system:serviceaccount:steadyscale:steadyscale"
    answer = running.plane.kubectl("auth", "can-i", verb, resource, "--namespace=steadyscale", account, check=False)
    assert answer.split()[0] == allowed
