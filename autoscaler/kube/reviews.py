"""Asking the API server who a token belongs to, and what somebody may do.

Both are questions put as creations: the answer comes in the status of the object "created"; nothing is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import Json, KubeClient
from autoscaler.kube.errors import Unavailable

_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_PATIENCE: Final = timedelta(seconds=4)
"""How long one review may take. Whoever waits behind it, an HPA for instance, comes again after 15 seconds."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A user as Kubernetes describes one."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the API server's authorizer said."""

    allowed: bool
    reason: str


async def review_token(client: KubeClient, token: str) -> Subject | None:
    """Say whose token this is; None if nobody's."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = await _ask(client, _TOKENS, body)
    if status.get("authenticated") is not True:
        return None
    user: Json = status.get("user") or {}
    return Subject(
        name=user.get("username", ""),
        uid=user.get("uid", ""),
        groups=tuple(user.get("groups") or ()),
        extra={key: tuple(values) for key, values in (user.get("extra") or {}).items()},
    )


async def review_access(client: KubeClient, subject: Subject, wanted: Json) -> Verdict:
    """Say whether `subject` may do what is `wanted`, and why.

    `wanted` is the part of a review's spec that says what for: `resourceAttributes` or `nonResourceAttributes`.
    """
    spec = {
        "user": subject.name,
        "uid": subject.uid,
        "groups": list(subject.groups),
        "extra": {key: list(values) for key, values in subject.extra.items()},
        **wanted,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status = await _ask(client, _ACCESS, body)
    allowed = status.get("allowed") is True and status.get("denied") is not True
    return Verdict(allowed, str(status.get("reason") or status.get("evaluationError") or ""))


async def _ask(client: KubeClient, path: str, body: Json) -> Json:
    """Ask, and once more if there was no answer: a question does no harm, and a restarted server drops connections."""
    try:
        answer = await client.request("POST", path, body=body, deadline=_PATIENCE)
    except Unavailable:
        answer = await client.request("POST", path, body=body, deadline=_PATIENCE)
    status = answer.get("status")
    if not isinstance(status, dict):
        raise Unavailable("the API server answered a review without a verdict")
    return status
