"""Hostile ExternalMetric and PodAutoscaler objects."""

import json
from typing import Any

from tests.integration.scaling import autoscaler, deployment, external
from tests.security.soak.attacks.attacker import Attacker, HostileTenant
from tests.security.soak.tenant import external_metric

CHURNED = 200
BYTES = 16_000


def nested(depth: int, inner: str = "1") -> bytes:
    """Return JSON objects of this depth; a JSON encoder would need as many stack frames."""
    return b'{"a":' * depth + inner.encode() + b"}" * depth


def with_parameters(name: str, backend: str, parameters: bytes) -> bytes:
    """Return an ExternalMetric with parameters that are given as JSON."""
    item = external_metric(name, backend=backend, parameters="PARAMETERS")
    return json.dumps(item).encode().replace(b'"PARAMETERS"', parameters)


def hostile_parameters(attacker: Attacker, kind: str) -> bytes:
    """Return parameters that are expensive to decode, to check or to use."""
    pick = attacker.random.choice
    match kind:
        case "depth":
            return nested(pick([100, 3_000, 9_000]))
        case "deep list":
            return b'{"value":' + b"[" * 3_000 + b"]" * 3_000 + b"}"
        case "xpath":
            return json.dumps({"path": "/xml", "format": "xml", "value": pick(["/a", "a/", "//a"]) * 40_000}).encode()
        case "jmespath":
            return json.dumps({"path": "/large", "value": "|".join(["[@,@]"] * pick([12, 30, 400]))}).encode()
        case "regex":
            return json.dumps(
                {"path": "/large", "format": "text", "value": "(a|a)*" * pick([5, 300]) + "(?P<value>b)"}
            ).encode()
        case _:
            return json.dumps({f"k{number}": "x" * 100 for number in range(3_000)}).encode()


async def hostile_objects(attacker: Attacker, kind: str) -> str:
    tenant = attacker.tenant()
    backend = attacker.random.choice(["jobs", "closed", "main", "none"])
    name = f"hostile-{kind.replace(' ', '-')}-{attacker.random.randrange(5)}"
    outcome = await tenant.create(
        "externalmetrics", name, with_parameters(name, backend, hostile_parameters(attacker, kind))
    )
    await attacker.pause(1)
    return outcome


def large_query(attacker: Attacker) -> str:
    """Return a valid query of about 16 KB."""
    term = f'sum(orders{{queue!="{attacker.random.randrange(10**6)}"}})'
    return " + ".join([term] * (BYTES // (len(term) + 3)))


async def change_large_object(attacker: Attacker) -> str:
    """Create one of 200 objects of 16 KB, or change its query."""
    tenant, number = attacker.tenants[0], attacker.random.randrange(CHURNED)
    name, path = f"large-{number}", tenant.path("externalmetrics")
    spec: Any = {"backend": "main", "query": large_query(attacker)}
    status, _ = await tenant.api.send("PATCH", f"{path}/{name}", {"spec": spec})
    if status == 404:
        status, _ = await tenant.api.send("POST", path, external_metric(name, **spec))
    return "stored" if status in {200, 201} else f"refused by the API server ({status})"


async def change_labels(attacker: Attacker) -> str:
    """Change only the metadata of a large object."""
    tenant, number = attacker.tenants[0], attacker.random.randrange(CHURNED)
    labels = {"changed": str(attacker.random.randrange(10**6))}
    path = f"{tenant.path('externalmetrics')}/large-{number}"
    status, _ = await tenant.api.send("PATCH", path, {"metadata": {"labels": labels}})
    return "stored" if status == 200 else f"refused by the API server ({status})"


async def huge_names(attacker: Attacker) -> str:
    tenant = attacker.tenant()
    name = "n" * attacker.random.choice([63, 200, 253])
    labels = {f"{'l' * 50}{number}": "v" * 1000 for number in range(60)}
    aliases = [f"{'m' * 250}{number}" for number in range(16)]
    item = external_metric(name, static=[{"value": 1, "labels": labels}] * 5, aliases=aliases, metric="x" * 253)
    return await tenant.create("externalmetrics", name, json.dumps(item).encode())


async def hostile_autoscaler(attacker: Attacker) -> str:
    tenant, name = attacker.tenant(), f"hostile-{attacker.random.randrange(40)}"
    return await tenant.create("podautoscalers", name, json.dumps(_autoscaler(attacker, tenant, name)).encode())


def _autoscaler(attacker: Attacker, tenant: HostileTenant, name: str) -> dict[str, Any]:
    text = attacker.random.choice(["..", "a/../../b", "%2e%2e", "x" * 253, "é", "a?b=c", "a\nb", "web"])
    value = attacker.random.choice(["1e308", "inf", "NaN", "9" * 400, "-1", "0", "1n", "1e-400"])
    metrics = attacker.random.choice([1, 10, 1000])
    hostile = {"type": "External", "external": {"metric": {"name": text}, "target": {"type": "Value", "value": value}}}
    window = attacker.random.choice([0, 3600, 2**31 - 1, 2**63])
    behavior = {"scaleDown": {"stabilizationWindowSeconds": window}}
    target = {
        "apiVersion": attacker.random.choice(["apps/v1", "none.example/v1", "v1"]),
        "kind": "Deployment",
        "name": text,
    }
    scaler = autoscaler(name, *[hostile] * metrics, external("orders"), target=target, behavior=behavior)
    return {**scaler, "metadata": {"name": name, "namespace": tenant.namespace}, "status": hostile_status()}


async def hostile_workload(attacker: Attacker) -> str:
    """Create a Deployment, a pod or a custom resource that is large, deep or has hostile fields, with an autoscaler."""
    tenant, name = attacker.tenant(), f"workload-{attacker.random.randrange(10)}"
    collection, body = attacker.random.choice(_WORKLOADS)(tenant.namespace, name)
    status = await tenant.api.replace(collection, name, body)
    kind = "Widget" if "widgets" in collection else "Deployment"
    target = {"apiVersion": "example.com/v1" if kind == "Widget" else "apps/v1", "kind": kind, "name": name}
    scaler = json.dumps(autoscaler(name, external("orders"), target=target)).encode()
    await tenant.create("podautoscalers", name, scaler)
    return "stored" if status == 201 else f"refused by the API server ({status})"


def _widget(namespace: str, name: str) -> tuple[str, bytes]:
    item = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": "SPEC"}
    spec = b'{"size":2,"deep":' + nested(3_000) + b"}"
    return f"/apis/example.com/v1/namespaces/{namespace}/widgets", json.dumps(item).encode().replace(b'"SPEC"', spec)


def _large_deployment(namespace: str, name: str) -> tuple[str, bytes]:
    item = deployment(name, 1)
    item["metadata"]["annotations"] = {f"a{number}": "x" * 20_000 for number in range(12)}
    return f"/apis/apps/v1/namespaces/{namespace}/deployments", json.dumps(item).encode()


def _large_pod(namespace: str, name: str) -> tuple[str, bytes]:
    item = deployment(name, 1)["spec"]["template"]
    item["metadata"] |= {"name": name, "annotations": {f"a{number}": "x" * 20_000 for number in range(12)}}
    item["spec"]["containers"] = [{"name": f"c{number}", "image": "i" * 200} for number in range(500)]
    return f"/api/v1/namespaces/{namespace}/pods", json.dumps({"apiVersion": "v1", "kind": "Pod", **item}).encode()


_WORKLOADS = (_widget, _large_deployment, _large_pod)


def hostile_status() -> dict[str, Any]:
    """Return a status with times and numbers outside the usual ranges."""
    time, number = "9999-12-31T23:59:59Z", 2**31 - 1
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": time, "message": "m" * 30_000}
    return {"lastScaleTime": time, "desiredReplicas": number, "currentReplicas": number, "conditions": [condition]}
