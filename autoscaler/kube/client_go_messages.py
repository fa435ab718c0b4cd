"""Error messages with the exact text of client-go, because they appear in conditions and events.

The message of a Status response is quoted. For a response without one, client-go derives a message from the code.
"""

from collections.abc import Mapping
from typing import Final

from autoscaler.kube.errors import KubeError

NO_RESOURCE: Final = "the server could not find the requested resource"

_BY_CODE: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: NO_RESOURCE,
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    410: "the server could not find the requested resource",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def client_go_message(error: KubeError, action: str) -> str:
    """Return the message that client-go would show; ``action`` is verb and resource, such as ``get web.apps``."""
    if error.server_message is not None:
        return error.server_message
    if error.code == 0:
        return str(error)  # no response was received
    message = _BY_CODE.get(
        error.code, f"an error on the server ({str(error)!r}) has prevented the request from succeeding"
    )
    return f"{message} ({action})"


def group_resource(group: str, plural: str) -> str:
    """Return the resource name as shown in messages: ``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> str:
    """Return the message of the API server for a missing object."""
    return f'{group_resource(group, plural)} "{name}" not found'
