"""The Helm chart renders the same objects as kustomize and rejects invalid values."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config.model import Config
from tests.manifests.rendered import (
    CHART,
    MANIFESTS,
    Json,
    Key,
    kustomized,
    kustomized_with_components,
    rejection,
    templated,
)

pytestmark = pytest.mark.apiserver  # helm and kubectl come with the control plane

EVERYTHING = (
    "--set=serviceMonitor.enabled=true",
    "--set=alerts.enabled=true",
    "--set=dashboard.enabled=true",
    "--set=shards=16",
)
DIGEST = f"sha256:{'5' * 64}"
HELM_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart")


def comparable(objects: dict[Key, Json]) -> dict[Key, Json]:
    """Remove expected differences: Helm's labels, the order of keys in ConfigMaps, and the Namespace."""
    compared = {}
    for key, item in objects.items():
        if key[0] == "Namespace":
            continue  # created by `helm install --create-namespace`
        labels = item["metadata"].get("labels") or {}
        kept = {name: value for name, value in labels.items() if name not in HELM_LABELS}
        if key[0] == "CustomResourceDefinition":
            kept = {}  # files in crds/ are not templates and have no labels
        compared[key] = {**item, "metadata": {**item["metadata"], "labels": kept}}
        if key[0] == "ConfigMap":
            compared[key]["data"] = {name: yaml.safe_load(text) for name, text in item["data"].items()}
    return compared


def test_chart_renders_the_same_objects_as_the_base() -> None:
    base, chart = comparable(kustomized(MANIFESTS / "base")), comparable(templated())
    assert chart.keys() == base.keys()
    for key, item in base.items():
        assert chart[key] == item, key


def test_chart_with_all_options_renders_the_same_objects_as_the_components(tmp_path: Path) -> None:
    base, chart = comparable(kustomized_with_components(tmp_path)), comparable(templated(*EVERYTHING))
    assert chart.keys() == base.keys()
    for key, item in base.items():
        assert chart[key] == item, key


def test_chart_has_the_crds_of_the_base() -> None:
    for definition in (MANIFESTS / "crds").glob("*s.yaml"):
        assert (CHART / "crds" / definition.name).read_text() == definition.read_text(), "run `make manifests`"


def test_chart_has_the_dashboard_of_the_component() -> None:
    dashboard = MANIFESTS / "components" / "grafana" / "steadyscale.json"
    assert (CHART / "dashboard.json").read_text() == dashboard.read_text(), "run `make manifests`"


def test_chart_can_be_installed_in_another_namespace() -> None:
    elsewhere = templated(*EVERYTHING, namespace="autoscaling")
    assert {namespace for _, namespace, _ in elsewhere} == {"", "autoscaling", "kube-system"}
    container = elsewhere["Deployment", "autoscaling", "steadyscale"]["spec"]["template"]["spec"]["containers"][0]
    assert "--leader-elect-resource-namespace=autoscaling" in container["args"]
    monitor = elsewhere["ServiceMonitor", "autoscaling", "steadyscale"]["spec"]["endpoints"][0]
    assert monitor["tlsConfig"]["serverName"] == "steadyscale.autoscaling.svc"
    subjects = [one for item in elsewhere.values() for one in item.get("subjects", ())]
    assert {one["namespace"] for one in subjects if one["name"] == "steadyscale"} == {"autoscaling"}


def test_values_are_applied_to_the_objects() -> None:
    made = templated(
        "--set=image.repository=registry.example/steadyscale,image.tag=1.2.3,replicas=3",
        "--set=flags={--horizontal-pod-autoscaler-tolerance=0.05}",
        "--set=config.log.level=debug,config.serving.tls.files.certFile=/c,config.serving.tls.files.keyFile=/k",
        "--set=apiService.enabled=false,networkPolicy.enabled=false,credentialsSecret=shop-credentials",
        r"--set=serviceAccountAnnotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/x",
    )
    account = made["ServiceAccount", "steadyscale", "steadyscale"]["metadata"]
    assert account["annotations"] == {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}
    deployment = made["Deployment", "steadyscale", "steadyscale"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    assert deployment["replicas"] == 3
    assert container["image"] == "registry.example/steadyscale:1.2.3"
    assert container["args"][-1] == "--horizontal-pod-autoscaler-tolerance=0.05"
    volumes = {volume["name"]: volume for volume in deployment["template"]["spec"]["volumes"]}
    assert volumes["credentials"]["secret"] == {"secretName": "shop-credentials", "optional": True}
    config = yaml.safe_load(made["ConfigMap", "steadyscale", "steadyscale"]["data"]["config.yaml"])
    assert config["log"] == {"level": "debug"}
    assert config["serving"]["tls"] == {"files": {"certFile": "/c", "keyFile": "/k"}}
    assert "NetworkPolicy" not in {kind for kind, _, _ in made}
    assert [name for kind, _, name in made if kind == "APIService"] == ["v1alpha1.debug.steadyscale.dev"]


@pytest.mark.parametrize("rendered", [lambda: kustomized(MANIFESTS / "base"), templated], ids=["kustomize", "helm"])
def test_no_version_contains_configuration_or_credentials_of_the_user(rendered: Callable[[], dict[Key, Json]]) -> None:
    """An upgrade would overwrite them."""
    objects = rendered()
    assert [key for key in objects if key[0] in {"ConfigMap", "Secret"}] == []
    volumes = objects["Deployment", "steadyscale", "steadyscale"]["spec"]["template"]["spec"]["volumes"]
    sources = {volume["name"]: volume.get("configMap") or volume.get("secret") for volume in volumes}
    assert sources["config"] == {"name": "steadyscale", "optional": True}
    assert sources["credentials"] == {"secretName": "steadyscale-credentials", "optional": True}


def test_chart_accepts_every_key_of_the_configuration_file() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]["config"]["properties"]) == set(Config.__struct_encode_fields__)


def image_of(objects: dict[Key, Json]) -> str:
    pod = objects["Deployment", "steadyscale", "steadyscale"]["spec"]["template"]["spec"]
    return str(pod["containers"][0]["image"])


def test_image_can_be_pinned_to_a_digest(tmp_path: Path) -> None:
    made = templated(f"--set=image.repository=registry.example/steadyscale,image.digest={DIGEST}")
    assert image_of(made) == f"registry.example/steadyscale:0.1.0@{DIGEST}"
    image = {"name": "steadyscale", "newName": "registry.example/steadyscale", "digest": DIGEST}
    overlay = {"resources": [os.path.relpath(MANIFESTS / "base", tmp_path)], "images": [image]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
    assert image_of(kustomized(tmp_path)) == f"registry.example/steadyscale@{DIGEST}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("replicas=0", "replicas"),
        ("image.tag=latest", "tag"),
        ("image.digest=latest", "digest"),
        (f"image.digest={DIGEST}0", "digest"),
        ("imagee.tag=1", "imagee"),
        ("config.rulez=1", "rulez"),
        ("flags={tolerance=1}", "flags"),
        ("serviceMonitor.interval=soon", "interval"),
    ],
)
def test_invalid_values_are_rejected(value: str, message: str) -> None:
    assert message in rejection(f"--set={value}")


def schema_paths(schema: Json, prefix: str = "") -> set[str]:
    found = set()
    for name, inner in schema.get("properties", {}).items():
        found |= {f"{prefix}{name}"} | schema_paths(inner, f"{prefix}{name}.")
    return found


def value_paths(values: Any, prefix: str = "") -> set[str]:
    if not isinstance(values, dict):
        return set()
    return {f"{prefix}{name}" for name in values} | {
        path for name, inner in values.items() for path in value_paths(inner, f"{prefix}{name}.")
    }


def test_schema_describes_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    free = ("config.", "resources.", "dashboard.labels.")
    written = {path for path in value_paths(values) if not path.startswith(free)}
    known = {path for path in schema_paths(schema) if not path.startswith(free)}
    assert written == known - {"image.pullSecrets.name"}


def test_ingress_can_be_restricted_to_known_peers():
    peers = [{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"podSelector": {"matchLabels": {"app": "konnectivity-agent"}}}]
    objects = templated(f"--set-json=networkPolicy.ingressFrom={json.dumps(peers)}")
    (policy,) = [item for key, item in objects.items() if key[0] == "NetworkPolicy"]

    assert policy["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": "https"}], "from": peers}]
