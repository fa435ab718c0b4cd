"""Paths of the Kubernetes API.

Names come from objects that users write. ``api_path`` encodes each of them as one segment. That is not enough: servers
decode a path before they split it, so ``a%2Fb`` is two segments for them, and HTTP clients resolve ``%2E%2E``. So
``api_url`` rejects a path with a segment that cannot be a name in Kubernetes.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from yarl import URL

from autoscaler.kube.errors import BadRequest
from autoscaler.values.names import path_segment_problems

_ENCODED: Final = re.compile(r"(?>(?:/(?:[A-Za-z0-9._~*:@-]|%[0-9A-F]{2})+)+)")


def api_path(*segments: str) -> str:
    """Return the path with these segments, percent-encoded: ``/apis/apps/v1/namespaces/shop/deployments/web``."""
    return "".join(f"/{quote(segment, safe='*:@', errors='surrogatepass')}" for segment in segments)


def api_url(server: str, path: str) -> URL:
    """Return the URL of a path of the API server; raise ``BadRequest`` if a segment of it cannot be a name."""
    if not _ENCODED.fullmatch(path):
        raise BadRequest(f"{path[:256]!r} is not a path of the Kubernetes API", code=400)
    for segment in path.split("/")[1:]:
        name = unquote(segment, errors="surrogateescape")
        if (problems := path_segment_problems(name)) or not name.isprintable():
            message = f"invalid name {name[:256]!r}: {'; '.join(problems) or 'may not contain control characters'}"
            raise BadRequest(message, code=400, server_message=message)
    return URL(f"{server}{path}", encoded=True)
