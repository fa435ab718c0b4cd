"""Authorization by SubjectAccessReview, with cached results.

Members of system:masters are authorized without a review, as in Kubernetes' own servers: the API server's availability
checks then pass even when reviews fail. For every other caller a failed review denies the request.
"""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from html import escape
from typing import Any, Final, TypeAlias

import msgspec

from adapter.auth.attributes import Attributes, NonResourceAttributes, ResourceAttributes
from adapter.auth.authentication import ANONYMOUS, Caller
from adapter.auth.review_budget import ReviewBudget, ReviewEntries
from adapter.config.model import Auth
from adapter.errors import AccessDenied, ReviewUnavailable
from adapter.ttl_cache import TTLCache
from autoscaler.kube.errors import KubeError
from autoscaler.kube.reviews import AccessDecision, Subject

MASTERS: Final = "system:masters"

_MAX_KEY_BYTES: Final = 1000
"""A longer key is replaced by its digest, so that long made-up names cannot fill the memory."""

Review = Callable[[Subject, dict[str, Any]], Awaitable[AccessDecision]]
_Key: TypeAlias = tuple[Caller, Attributes] | bytes


class SubjectAccessAuthorizer:
    """Authorizes callers through the API server."""

    def __init__(self, review: Review, settings: Auth) -> None:
        self._review = review
        self._settings = settings
        self._entries: ReviewEntries[_Key, AccessDecision] = ReviewEntries(lambda decision: decision.allowed)
        self._cache: TTLCache[_Key, AccessDecision] = TTLCache(entries=self._entries)
        self._anonymous = ReviewBudget(burst=50, per_second=2, max_concurrent=32)
        self._authenticated = ReviewBudget(burst=256, per_second=20, max_concurrent=256)

    async def authorize(self, caller: Caller, attributes: Attributes, source: str = "") -> None:
        """Return if the caller is authorized; raise ``AccessDenied`` if not, ``ReviewUnavailable`` if reviews fail.

        An anonymous caller is known only by the source address of its connection.
        """
        if MASTERS in caller.groups:
            return
        review = self._cache.get((caller, attributes))
        if review is None:
            review = await self._cached_review(caller, attributes, source)
        if not review.allowed:
            raise forbidden(caller, attributes)

    async def _cached_review(self, caller: Caller, attributes: Attributes, source: str) -> AccessDecision:
        subject, key = Subject(caller.name, caller.uid, caller.groups, dict(caller.extra)), _key(caller, attributes)

        async def review() -> AccessDecision:
            return await self._review(subject, _spec(attributes))

        async def paid_review() -> AccessDecision:
            if key in self._entries.accepted:  # allowed before
                return await review()
            budget, payer = (self._anonymous, source) if caller is ANONYMOUS else (self._authenticated, caller.name)
            return await budget.pay(payer, review, lambda decision: _is_refunded(decision, attributes))

        try:
            return await self._cache.get_or_load(key, paid_review, self._ttl)
        except KubeError as error:
            raise ReviewUnavailable(f"SubjectAccessReview failed: {error}") from error

    def _ttl(self, review: AccessDecision) -> timedelta:
        return self._settings.authorized_ttl if review.allowed else self._settings.unauthorized_ttl


def _is_refunded(decision: AccessDecision, attributes: Attributes) -> bool:
    """Return whether a review costs nothing: the controller reads many metrics, but no caller needs many paths.

    Every authenticated caller may get invented paths below /apis, by the ClusterRole system:discovery.
    """
    return decision.allowed and isinstance(attributes, ResourceAttributes)


def _key(caller: Caller, attributes: Attributes) -> _Key:
    try:
        text = msgspec.json.encode((caller, attributes))
    except UnicodeEncodeError:
        raise AccessDenied(
            "forbidden: the caller's name, groups or extra fields are not UTF-8 and cannot be sent in a review"
        ) from None
    return hashlib.sha256(text).digest() if len(text) > _MAX_KEY_BYTES else (caller, attributes)


def forbidden(caller: Caller, attributes: Attributes) -> AccessDenied:
    """Return the error with exactly the message of Kubernetes' own servers."""
    subject = f'User "{caller.name}" cannot {attributes.verb}'
    match attributes:
        case NonResourceAttributes(path=path):
            return AccessDenied(escape(f'forbidden: {subject} path "{path}"', quote=False))
        case ResourceAttributes(group=group, resource=resource, subresource=subresource, namespace=namespace):
            full = f"{resource}/{subresource}" if subresource else resource
            name = f' "{attributes.name}"' if attributes.name else ""
            scope = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
            message = f'{full}.{group}{name} is forbidden: {subject} resource "{full}" in API group "{group}"{scope}'
            return AccessDenied(escape(message, quote=False), group=group, resource=resource)


def _spec(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes as fields of a SubjectAccessReview's spec."""
    field = "nonResourceAttributes" if isinstance(attributes, NonResourceAttributes) else "resourceAttributes"
    return {field: msgspec.to_builtins(attributes)}
