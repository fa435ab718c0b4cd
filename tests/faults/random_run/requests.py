"""The requests to the API server by which another client performs actions, and what they add to the record."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tests.faults.random_run.actions import Action
from tests.faults.random_run.record import Json
from tests.integration.scaling import deployment

NAMESPACE: Final = "shop"
AUTOSCALERS: Final = f"/apis/steadyscale.dev/v1beta1/namespaces/{NAMESPACE}/podautoscalers"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


@dataclass(frozen=True)
class ApiRequest:
    """A request; a patch is a merge patch."""

    method: str
    path: str
    body: Json | None = None


def request_for(action: Action, now: float) -> ApiRequest | None:
    """Return the request that performs an action on an object; None for other actions."""
    name, detail = action.subject, dict(action.detail)
    match action.kind:
        case "create":
            body = {"apiVersion": "steadyscale.dev/v1beta1", "kind": "PodAutoscaler", "metadata": {"name": name}}
            spec = {field: value for field, value in detail.items() if value is not None}
            return ApiRequest("POST", AUTOSCALERS, {**body, "spec": spec})
        case "edit":
            if (seconds := detail.pop("pausedFor", None)) is not None:
                until = datetime.fromtimestamp(int(now + seconds), UTC)
                detail["pausedUntil"] = until.isoformat().replace("+00:00", "Z")
            return ApiRequest("PATCH", f"{AUTOSCALERS}/{name}", {"spec": detail})
        case "delete":
            return ApiRequest("DELETE", f"{AUTOSCALERS}/{name}")
        case "create target":
            return ApiRequest("POST", DEPLOYMENTS, deployment(name, detail["replicas"]))
        case "resize":
            return ApiRequest("PATCH", f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": detail["replicas"]}})
        case "delete target":
            return ApiRequest("DELETE", f"{DEPLOYMENTS}/{name}")
        case _:
            return None
