"""``steadyscale autoscale``: prints or creates a PodAutoscaler, like ``kubectl autoscale`` does with an HPA."""

import sys
from argparse import Namespace as Options
from collections.abc import Mapping
from typing import Any, Final

import yaml

from adapter.commands.service_client import client_command
from adapter.custom_resources.object_problems import autoscaler_problems
from autoscaler.kube.client import KubeClient
from autoscaler.kube.connection import connect
from autoscaler.types.spec import AVERAGE_VALUE, EXTERNAL, RESOURCE, UTILIZATION, VALUE
from autoscaler.validation import warnings
from autoscaler.wire import decode_autoscaler

_API_VERSION: Final = "steadyscale.dev/v1beta1"
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "deployment": ("apps/v1", "Deployment"),
    "statefulset": ("apps/v1", "StatefulSet"),
    "replicaset": ("apps/v1", "ReplicaSet"),
    "replicationcontroller": ("v1", "ReplicationController"),
}
_SHORT_NAMES: Final = {"deploy": "deployment", "sts": "statefulset", "rs": "replicaset", "rc": "replicationcontroller"}
_INVALID: Final = 1


class InvalidArguments(Exception):
    """Arguments that describe no valid autoscaler; the arguments of the exception are the problems."""


def run(options: Options) -> int:
    """Print or create the autoscaler; return the exit code."""
    try:
        document = _document(options)
        advice = _check(document)
    except InvalidArguments as error:
        sys.stderr.writelines(f"{problem}\n" for problem in error.args)
        return _INVALID
    sys.stderr.writelines(f"warning: {text}\n" for text in advice)
    if options.apply:
        return client_command(_create)(Options(**vars(options), document=document))
    sys.stdout.write(yaml.safe_dump(document, sort_keys=False))
    return 0


async def _create(options: Options) -> int:
    document = options.document
    namespace = document["metadata"].setdefault("namespace", "default")
    path = f"/apis/{_API_VERSION}/namespaces/{namespace}/podautoscalers"
    async with KubeClient.open(await connect(options.kubeconfig)) as client:
        await client.create(path, document)
    sys.stdout.write(f"podautoscaler.steadyscale.dev/{document['metadata']['name']} created\n")
    return 0


def _document(options: Options) -> dict[str, Any]:
    if options.misplaced:
        raise InvalidArguments(
            *(f"{name}: put it after the --external that it belongs to" for name in options.misplaced)
        )
    target = _target(options)
    metrics = [*map(_external_metric, options.external), *_resource_metrics(options)]
    spec: dict[str, Any] = {"scaleTargetRef": target, "minReplicas": options.min, "maxReplicas": options.max}
    spec |= {"mode": options.mode} if options.mode else {}
    spec |= {"metrics": metrics} if metrics else {}
    metadata = {"name": options.name or target["name"]}
    metadata |= {"namespace": options.namespace} if options.namespace else {}
    return {"apiVersion": _API_VERSION, "kind": "PodAutoscaler", "metadata": metadata, "spec": spec}


def _target(options: Options) -> dict[str, str]:
    kind, _, name = options.target.partition("/")
    if not kind or not name or "/" in name:
        raise InvalidArguments(f"{options.target!r} does not have the form KIND/NAME, such as deployment/web")
    if options.api_version:
        return {"apiVersion": options.api_version, "kind": kind, "name": name}
    lower = kind.lower()
    known = _KINDS.get(_SHORT_NAMES.get(lower, lower.removesuffix("s")))
    if known is None:
        raise InvalidArguments(f"{kind}: set --api-version, such as apps/v1, and write the kind as in a manifest")
    return {"apiVersion": known[0], "kind": known[1], "name": name}


def _external_metric(options: Mapping[str, Any]) -> dict[str, Any]:
    metric: dict[str, Any] = {"name": options["external"]}
    if "selector" in options:
        metric["selector"] = {"matchLabels": dict(map(_label, options["selector"].split(",")))}
    targets = {"averageValue": options.get("average"), "value": options.get("value")}
    present = {key: value for key, value in targets.items() if value is not None}
    target = {"type": VALUE if "value" in present else AVERAGE_VALUE, **present}
    names = {
        "fallback_replicas": "replicas",
        "fallback_after": "failureDurationSeconds",
        "fallback_strategy": "strategy",
    }
    fallback = {key: options[name] for name, key in names.items() if name in options}
    external = {"metric": metric, "target": target, **({"fallback": fallback} if fallback else {})}
    return {"type": EXTERNAL, "external": external}


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise InvalidArguments(f"--selector: {text!r} does not have the form KEY=VALUE, such as queue=orders")
    return key, value


def _resource_metrics(options: Options) -> list[dict[str, Any]]:
    return [
        {
            "type": RESOURCE,
            "resource": {"name": name, "target": {"type": UTILIZATION, "averageUtilization": percent}},
        }
        for name, percent in (("cpu", options.cpu), ("memory", options.memory))
        if percent is not None
    ]


def _check(document: Mapping[str, Any]) -> list[str]:
    """Return warnings; raise ``InvalidArguments`` with the problems that the API server would report."""
    if found := autoscaler_problems(document):
        raise InvalidArguments(*map(str, found))
    return [str(warning) for warning in warnings(decode_autoscaler(document))]
