"""TokenReview and SubjectAccessReview requests.

Both are sent as the creation of an object that the API server does not store; the result is in its status.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Unavailable
from autoscaler.kube.objects import decode_response

_AUTHENTICATION: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_AUTHORIZATION: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_TIMEOUT: Final = timedelta(seconds=4)
"""Shorter than the 15 seconds after which an HPA controller repeats the request that waits for the review."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The user of a review."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The result of a SubjectAccessReview."""

    allowed: bool
    reason: str


async def review_token(client: KubeClient, token: str) -> Subject | None:
    """Return the user of a token; None if the token is not authenticated."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = await _create_review(client, _AUTHENTICATION, body)
    if status.get("authenticated") is not True:
        return None
    return decode_response("TokenReview", _subject, status.get("user") or {})


async def review_access(client: KubeClient, subject: Subject, attributes: Json) -> AccessDecision:
    """Check whether ``subject`` is authorized.

    ``attributes`` is the part of the review's spec with ``resourceAttributes`` or ``nonResourceAttributes``.
    """
    spec = {
        "user": subject.name,
        "uid": subject.uid,
        "groups": list(subject.groups),
        "extra": {key: list(values) for key, values in subject.extra.items()},
        **attributes,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status = await _create_review(client, _AUTHORIZATION, body)
    allowed = status.get("allowed") is True and status.get("denied") is not True
    return AccessDecision(allowed, str(status.get("reason") or status.get("evaluationError") or ""))


async def _create_review(client: KubeClient, path: str, body: Json) -> Json:
    """Create a review and return its status; retry once, because a review changes nothing and servers restart."""
    try:
        response = await client.request("POST", path, body=body, timeout=_TIMEOUT)
    except Unavailable:
        response = await client.request("POST", path, body=body, timeout=_TIMEOUT)
    status = response.get("status")
    if not isinstance(status, dict):
        raise Unavailable(f"POST {path}: response has no status")
    return status


def _subject(user: Json) -> Subject:
    return Subject(
        name=str(user.get("username", "")),
        uid=str(user.get("uid", "")),
        groups=tuple(map(str, user.get("groups") or ())),
        extra={str(key): tuple(map(str, values)) for key, values in (user.get("extra") or {}).items()},
    )
