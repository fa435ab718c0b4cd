"""Direct access to the API server without kubectl, which costs too much processor time in many concurrent tests."""

import http.client
import json
import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from tests.control_plane.cluster import ControlPlane

Json = dict[str, Any]

GROUPS: Final = {
    "Deployment": "apis/apps/v1",
    "PodAutoscaler": "apis/steadyscale.dev/v1beta1",
    "Lease": "apis/coordination.k8s.io/v1",
    "Event": "api/v1",
}


class Refused(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclass(frozen=True)
class Api:
    """The API server of a control plane, as an administrator."""

    plane: ControlPlane

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        folder = self.plane.folder
        context = ssl.create_default_context(cafile=folder / "ca.crt")
        context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        return context

    def request(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Any:
        """Send one request on a new connection."""
        connection = http.client.HTTPSConnection(urlsplit(self.plane.server).netloc, timeout=30, context=self._tls)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(response.status, text.decode(errors="replace"))
        return json.loads(text)

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def patch(self, path: str, patch: Json) -> Any:
        return self.request("PATCH", path, patch, "application/merge-patch+json")

    def apply(self, content: Json) -> Any:
        """Create or replace the given fields of an object."""
        path = path_of(content["kind"], content["metadata"]["namespace"], content["metadata"]["name"])
        query = "?fieldManager=tests&force=true"
        return self.request("PATCH", path + query, content, "application/apply-patch+yaml")

    def delete(self, path: str) -> None:
        """Delete an object; succeed if it does not exist."""
        try:
            self.request("DELETE", path, {"propagationPolicy": "Background"})
        except Refused as error:
            if error.status != 404:
                raise


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """Return the path of an object or, without a name, of a collection."""
    kind = next(known for known in GROUPS if known.lower() == kind.lower())
    collection = f"/{GROUPS[kind]}/namespaces/{namespace}/{kind.lower()}s"
    return f"{collection}/{name}" if name else collection
