"""Hostile objects that an older CRD accepted: the present CRD does not check them again."""

import asyncio
import json
from typing import Any, Final

import yaml

from tests.control_plane.cluster import ControlPlane
from tests.integration.scaling import autoscaler, external
from tests.integration.service import ROOT
from tests.security.soak.api import GROUP, Api
from tests.security.soak.attacks.objects import hostile_status, nested, with_parameters
from tests.security.soak.tenant import external_metric

CRDS: Final = ("externalmetrics", "podautoscalers")


def _definition(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "manifests" / "crds" / f"{name}.yaml").read_text())
    return loaded


def _permissive(definition: dict[str, Any]) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    (version,) = definition["spec"]["versions"]
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    plain = {**version, "schema": schema}
    return {**definition, "spec": {**definition["spec"], "versions": [plain]}}


def hostile() -> dict[tuple[str, str], bytes]:
    """Return the objects by kind and name."""
    long = json.dumps({"path": "/xml", "format": "xml", "value": "/a" * 40_000}).encode()
    doubling = json.dumps({"path": "/large", "value": "|".join(["[@,@]"] * 60)}).encode()
    texts: dict[tuple[str, str], bytes] = {}
    for backend in ("jobs", "closed", "main"):
        for name, parameters in (("deep", nested(3_000)), ("xpath", long), ("doubling", doubling)):
            full = f"stored-{name}-{backend}"
            texts["externalmetrics", full] = with_parameters(full, backend, parameters)
    wrong: dict[str, Any] = {"backend": ["main"], "query": {"a": 1}, "interval": -1, "static": "x", "aliases": 1}
    for field, value in wrong.items():
        name = f"stored-type-{field}"
        texts["externalmetrics", name] = json.dumps(external_metric(name, **{"backend": "main", field: value})).encode()
    for number, spec in enumerate(_autoscaler_specs()):
        name = f"stored-{number}"
        item = autoscaler(name, external("orders"))
        item["spec"] = {**item["spec"], **spec}
        texts["podautoscalers", name] = json.dumps(item).encode()
    return texts


def _autoscaler_specs() -> list[dict[str, Any]]:
    return [
        {},
        {"maxReplicas": 10**30},
        {"minReplicas": "x"},
        {"metrics": "x"},
        {"metrics": [external("x" * 10_000)] * 500},
        {"metrics": [{"type": "External", "external": None}]},
        {"scaleTargetRef": []},
        {"scaleTargetRef": {"apiVersion": "v1", "kind": "../../x", "name": "../../secrets"}},
        {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 10**18}}},
        {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 10**40, "periodSeconds": -1}]}}},
    ]


async def store(plane: ControlPlane, admin: Api, namespace: str) -> int:
    """Replace the CRDs by permissive ones, create the objects, and restore the CRDs; return how many were stored."""
    for crd in CRDS:
        await _replace(plane, _permissive(_definition(crd)))
    await asyncio.sleep(3)  # until the API server serves the changed schema
    stored = 0
    for (kind, name), body in hostile().items():
        status, _ = await admin.send("POST", f"{GROUP}/namespaces/{namespace}/{kind}", body)
        stored += status == 201
        if kind == "podautoscalers":
            path = f"{GROUP}/namespaces/{namespace}/{kind}/{name}/status"
            await admin.send("PATCH", path, {"status": hostile_status()})
    for crd in CRDS:
        await _replace(plane, _definition(crd))
    return stored


async def _replace(plane: ControlPlane, definition: dict[str, Any]) -> None:
    await asyncio.to_thread(plane.kubectl, "replace", "-f", "-", stdin=json.dumps(definition))
