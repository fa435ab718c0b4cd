"""May this caller do this: the cluster's own authorizer decides, and we remember its answer briefly.

Whoever is in system:masters may do anything, without asking; Kubernetes' own servers do the same, and it keeps the API
server's probes alive when reviews are not. In every other case no answer means no.
"""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, TypeAlias

import msgspec

from adapter.auth.attributes import Attributes, NonResourceAttributes, ResourceAttributes
from adapter.auth.caller import Caller
from adapter.auth.ttl_cache import Memory
from adapter.errors import Forbidden, ReviewUnavailable
from autoscaler.kube.errors import KubeError
from autoscaler.kube.reviews import Subject, Verdict

MASTERS: Final = "system:masters"

ALLOWED_FOR: Final = timedelta(seconds=30)
"""How long a permission outlives its revocation. An HPA asks every 15 seconds; the usual 10 would never be of use."""

DENIED_FOR: Final = timedelta(seconds=10)
"""How long a new permission may take to be noticed."""

_REMEMBERED: Final = 8192
_LONG: Final = 1000
"""Of a longer question only a digest is kept: whoever sends such names must not fill the memory with them."""

Review = Callable[[Subject, dict[str, Any]], Awaitable[Verdict]]
_Question: TypeAlias = tuple[Caller, Attributes] | bytes


class Access:
    """Asks, remembers, refuses."""

    def __init__(
        self, review: Review, *, allowed_for: timedelta = ALLOWED_FOR, denied_for: timedelta = DENIED_FOR
    ) -> None:
        self._review = review
        self._memory: Memory[_Question, Verdict] = Memory(
            _REMEMBERED, lambda verdict: allowed_for if verdict.allowed else denied_for
        )

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Return if `caller` may; raise Forbidden if not, ReviewUnavailable if nobody could say."""
        if MASTERS in caller.groups:
            return
        try:
            verdict = await self._verdict(caller, attributes)
        except KubeError as error:
            raise ReviewUnavailable(f"access could not be reviewed: {error}") from error
        if not verdict.allowed:
            raise refused(caller, attributes)

    async def _verdict(self, caller: Caller, attributes: Attributes) -> Verdict:
        known = self._memory.known((caller, attributes))
        if known is not None:
            return known

        async def ask() -> Verdict:
            subject = Subject(caller.name, caller.uid, caller.groups, dict(caller.extra))
            return await self._review(subject, _wanted(attributes))

        return await self._memory.recall(_key(caller, attributes), ask)


def _key(caller: Caller, attributes: Attributes) -> _Question:
    try:
        text = msgspec.json.encode((caller, attributes))
    except UnicodeEncodeError:
        raise Forbidden(
            "forbidden: the caller's name, groups or extra are not UTF-8, so nobody can review them"
        ) from None
    return hashlib.sha256(text).digest() if len(text) > _LONG else (caller, attributes)


def refused(caller: Caller, attributes: Attributes) -> Forbidden:
    """Say no in Kubernetes' own words, which people search for."""
    who = f'User "{caller.name}" cannot {attributes.verb}'
    match attributes:
        case NonResourceAttributes(path=path):
            return Forbidden(_escaped(f'forbidden: {who} path "{path}"'))
        case ResourceAttributes(group=group, resource=resource, subresource=subresource, namespace=namespace):
            whole = f"{resource}/{subresource}" if subresource else resource
            named = f' "{attributes.name}"' if attributes.name else ""
            where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
            message = f'{whole}.{group}{named} is forbidden: {who} resource "{whole}" in API group "{group}"{where}'
            return Forbidden(_escaped(message), group=group, resource=resource)


def _wanted(attributes: Attributes) -> dict[str, Any]:
    kind = "nonResourceAttributes" if isinstance(attributes, NonResourceAttributes) else "resourceAttributes"
    return {kind: msgspec.to_builtins(attributes)}


def _escaped(message: str) -> str:
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
