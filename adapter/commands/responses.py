"""Responses of the service and of the API server in front of it: the content, or an error with a next step."""

from typing import Any, Final

import msgspec

from adapter.commands.registered_service import RequestFailed
from adapter.server.debug_api_paths import API_SERVICE, GROUP

_NEXT_STEPS: Final = {
    401: "log in to the cluster again; the credentials of the kubeconfig are not valid",
    404: f"the APIService {API_SERVICE} is missing: apply the manifests or the chart of this version",
    503: f"Steadyscale does not respond: look at `kubectl get apiservice {API_SERVICE}` and "
    "`kubectl get pods -n steadyscale`",
}
"""What to do after an error of the API server, by status code."""

_ALL_NAMESPACES: Final = "the ClusterRole steadyscale:debug, which shows all namespaces"


def decoded(status: int, body: bytes, *, is_aggregated: bool) -> dict[str, Any]:
    """Return the content of a response; raise ``RequestFailed`` with its message, and a next step if it is known.

    The API server sends plain text if no APIService serves the group, or if the service does not respond.
    """
    try:
        content = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        content = None
    if status == 200 and isinstance(content, dict):
        return content
    text = body.decode(errors="replace").strip()[:200]
    message = content.get("message", text) if isinstance(content, dict) else text
    is_from_service = isinstance(content, dict) and status in {404, 503} and not _is_of_api_server(content)
    next_step = _missing_role(message) if status == 403 else _NEXT_STEPS.get(status)
    step = next_step if is_aggregated and not is_from_service else None
    raise RequestFailed(f"{status}: {message or 'no content'}" + (f"\n{step}" if step else ""))


def _missing_role(message: str) -> str:
    """Return which role grants what a message of the authorizer names."""
    is_metric = 'resource "metrics"' in message
    if "cluster scope" in message:
        select = "select a namespace with -n, or " if is_metric else ""
        return f"{select}ask an administrator for {_ALL_NAMESPACES}"
    role = "edit" if is_metric else "view"
    return f"ask an administrator for the role `{role}` in the namespace, or for {_ALL_NAMESPACES}"


def _is_of_api_server(content: dict[str, Any]) -> bool:
    """Return whether a Status is that of the API server for a group that is not served."""
    details = content.get("details") or {}
    return content.get("message") in _API_SERVER_MESSAGES or (
        content.get("code") == 404 and isinstance(details, dict) and details.get("group") == GROUP
    )


_API_SERVER_MESSAGES: Final = frozenset(
    {
        "the server could not find the requested resource",
        "the server is currently unable to handle the request",
        "service unavailable",
    }
)
