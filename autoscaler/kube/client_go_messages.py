"""What went wrong, in the words that client-go has for it: they end up in conditions and events, where they are known.

A Status carries its own sentence, and that is quoted. Where an answer has none, client-go makes one up from the code.
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


def in_words(error: KubeError, asked: str) -> str:
    """Say what an error says; `asked` names what was asked for, such as ``get web.apps``, where the server does not."""
    if error.said is not None:
        return error.said
    if error.code == 0:
        return str(error)  # there was no answer at all
    told = _BY_CODE.get(
        error.code, f"an error on the server ({str(error)!r}) has prevented the request from succeeding"
    )
    return f"{told} ({asked})"


def group_resource(group: str, plural: str) -> str:
    """Name a resource as messages do: ``deployments.apps``, or just ``pods``."""
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> str:
    """Say, as the API server does, that an object is not there."""
    return f'{group_resource(group, plural)} "{name}" not found'
