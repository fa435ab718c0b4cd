"""Lease objects of the Kubernetes API: where they are, and how they are decoded."""

from typing import NamedTuple

import msgspec

from autoscaler.kube.client import Json
from autoscaler.kube.errors import MalformedResponse
from autoscaler.kube.objects import decode_response
from autoscaler.kube.paths import api_path
from autoscaler.settings import ControllerOptions
from autoscaler.sharding.lease_state import LeaseSpec


class DecodedLease(NamedTuple):
    """A Lease as the API server sent it, and its spec."""

    content: Json
    spec: LeaseSpec


def lease_collection(options: ControllerOptions) -> str:
    """Return the path of the Leases in the namespace of the options."""
    return f"/apis/coordination.k8s.io/v1{api_path('namespaces', options.lease_namespace, 'leases')}"


def decode_lease(content: Json) -> DecodedLease:
    """Decode a Lease; raise ``MalformedResponse`` if it is invalid."""
    return decode_response("Lease", _decode, content)


def holder_of(content: Json) -> str:
    """Return the holder of a Lease; empty if it has none or cannot be decoded."""
    try:
        return decode_lease(content).spec.holder_identity or ""
    except MalformedResponse:
        return ""


def _decode(content: Json) -> DecodedLease:
    return DecodedLease(content, msgspec.convert(content.get("spec") or {}, LeaseSpec))
