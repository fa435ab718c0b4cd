"""Reads the current resourceVersion of a collection at an interval, to determine the age of what is known about it."""

import asyncio
import logging
import random
from datetime import timedelta
from typing import Final

from autoscaler.kube.client import KubeClient
from autoscaler.kube.errors import KubeError
from autoscaler.kube.freshness import Freshness
from autoscaler.kube.objects import decode_page
from autoscaler.kube.watch import ListWatch

log = logging.getLogger(__name__)

_INTERVAL: Final = timedelta(seconds=15)


async def check_freshness(client: KubeClient, source: ListWatch, freshness: Freshness) -> None:
    """Check at an interval, until cancelled; log when the collection becomes out of date and when it is no longer."""
    was_stale = False
    while True:
        await asyncio.sleep(_INTERVAL.total_seconds() * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
        if not freshness.resource_version:
            continue  # not listed yet
        await _check(client, source, freshness)
        if freshness.is_stale != was_stale:
            was_stale = not was_stale
            message = "watched objects are out of date" if was_stale else "watched objects are up to date again"
            log.warning(message, extra={"path": source.path, "age_seconds": round(freshness.age)})


async def _check(client: KubeClient, source: ListWatch, freshness: Freshness) -> None:
    """Read the current resourceVersion with a list of one object, which is a consistent read."""
    started, before = client.now(), freshness.resource_version
    try:
        page = decode_page(await client.get_bytes(source.path, {**source.query(), "limit": "1"}))
    except KubeError:
        return  # what is known becomes older
    if not freshness.checked(started, page.resource_version, before):
        versions = {"known": before, "current": page.resource_version}
        log.warning("resourceVersion went back, listing again", extra={"path": source.path, **versions})
