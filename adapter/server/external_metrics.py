"""GET .../namespaces/{namespace}/{metric}: the values of a metric, and the index of all metrics of a namespace."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

from aiohttp import web
from cachetools import LRUCache

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.metrics.read_history import ReadKey
from adapter.rules.rule import INDEX
from adapter.sample import Sample
from adapter.server import protobuf, serialization
from adapter.server.content_negotiation import JSON, PROTOBUF, YAML, Offer
from adapter.server.request_context import RequestContext
from adapter.server.serialization import GROUP, NamedSample, table
from autoscaler.values import selector
from autoscaler.values.selector import MAX_REQUIREMENTS, MAX_SELECTOR_LENGTH, Selector, SelectorError

_OFFERS: Final = (
    JSON,
    YAML,
    PROTOBUF,
    *(Offer(offer.media, "Table", "meta.k8s.io", version) for offer in (JSON, YAML) for version in ("v1", "v1beta1")),
)
_FIELD_SELECTORS: Final = ("metadata.name", "metadata.namespace")
_INCLUDE_OBJECT: Final = frozenset({"None", "Metadata", "Object"})
_INDEX_TIMEOUT: Final = 1.0
_MAX_CACHED_SELECTOR: Final = 1024
_MAX_CACHED_BODIES: Final = 4096
_MAX_CACHED_BODY: Final = 4096

_BodyKey: TypeAlias = tuple[ResourceAttributes, Selector, Offer, bool]
"""Attributes, selector, representation and whether it is indented: with equal samples the body is equal."""

_log = logging.getLogger(__name__)


class SampleReader(Protocol):
    """Reads metrics."""

    def names(self, namespace: str) -> tuple[str, ...]:
        """Return the names of the metrics with a rule in this namespace."""

    async def read_samples(self, namespace: str, metric: str, selector: Selector) -> tuple[Sample, ...]:
        """Return the current samples, at least one; raise an ``AdapterError`` otherwise."""


class ExternalMetrics:
    """Serves the values of metrics."""

    def __init__(self, reader: SampleReader, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._clock = clock
        self._bodies: LRUCache[_BodyKey, tuple[tuple[Sample, ...], bytes]] = LRUCache(_MAX_CACHED_BODIES)

    async def read(self, context: RequestContext) -> web.Response:
        """Serve the current values of a metric."""
        attributes = context.attributes
        if not isinstance(attributes, ResourceAttributes):
            raise errors.PathNotFound
        offer = context.negotiate(_OFFERS)
        label_selector = _selector(context, attributes)
        if attributes.resource == INDEX:
            values = await self._index(attributes.namespace, label_selector)
            body = self._encode(context, offer, values, attributes.namespace)
        else:
            try:
                samples = await self._reader.read_samples(attributes.namespace, attributes.resource, label_selector)
            except errors.AdapterError as error:
                error.group, error.resource = GROUP, attributes.resource
                raise
            body = self._cached_body(context, samples, (attributes, label_selector, offer, context.is_pretty()))
        return web.Response(body=body, content_type=offer.media)

    async def _index(self, namespace: str, label_selector: Selector) -> list[NamedSample]:
        """Read all metrics of the namespace concurrently, without those that fail or take too long."""
        metrics = self._reader.names(namespace)
        reads = [asyncio.create_task(self._read_or_skip(namespace, metric, label_selector)) for metric in metrics]
        if not reads:
            return []
        try:
            await asyncio.wait(reads, timeout=_INDEX_TIMEOUT)
            return [value for read in reads if read.done() for value in read.result()]
        finally:
            for read in reads:
                read.cancel()

    async def _read_or_skip(self, namespace: str, metric: str, label_selector: Selector) -> list[NamedSample]:
        try:
            return serialization.named_samples(
                metric, await self._reader.read_samples(namespace, metric, label_selector)
            )
        except errors.AdapterError:
            return []
        except Exception:  # noqa: BLE001
            _log.exception("unexpected error while reading a metric", extra={"namespace": namespace, "metric": metric})
            return []

    def _cached_body(self, context: RequestContext, samples: tuple[Sample, ...], key: _BodyKey) -> bytes:
        """Encode samples, or return the body of the last response with the same samples."""
        try:  # Cache.get() would look the key up twice
            cached_samples, cached_body = self._bodies[key]
            if cached_samples is samples:
                return cached_body
        except KeyError:
            pass
        attributes, label_selector, offer, _ = key
        values = serialization.named_samples(attributes.resource, samples)
        body = self._encode(context, offer, values, attributes.namespace)
        is_cacheable = ReadKey(attributes.namespace, attributes.resource, label_selector).is_cacheable
        if is_cacheable and len(body) <= _MAX_CACHED_BODY and not offer.kind:  # a Table contains the age of each value
            self._bodies[key] = samples, body
        return body

    def _encode(self, context: RequestContext, offer: Offer, values: list[NamedSample], namespace: str) -> bytes:
        if offer == PROTOBUF:
            return protobuf.encode_list(values)
        if offer.kind:
            include = context.query.get("includeObject") or "Metadata"
            if include not in _INCLUDE_OBJECT:
                raise errors.InvalidRequest(f"includeObject must be None, Metadata or Object, is {include!r}")
            now = self._clock()
            content: object = table(values, namespace=namespace, version=offer.version, include=include, now=now)
        else:
            content = serialization.document(values)
        return serialization.to_bytes(content, offer.media, pretty=context.is_pretty())


def _selector(context: RequestContext, attributes: ResourceAttributes) -> Selector:
    """Check the query parameters and return the label selector."""
    query = context.query
    if attributes.verb == "watch":
        raise errors.MethodNotAllowed(
            f'watch is not supported on resources of kind "{attributes.resource}.{GROUP}"',
            group=GROUP,
            resource=attributes.resource,
        )
    limit = query.get("limit", "")
    if limit and not limit.removeprefix("-").isdecimal():
        raise errors.InvalidRequest(f"limit must be a whole number, is {limit!r}")
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        field = part.partition("=")[0].removesuffix("!")
        if field not in _FIELD_SELECTORS:
            raise errors.InvalidRequest(
                f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    text = query.get("labelSelector", "")
    if len(text) > MAX_SELECTOR_LENGTH:  # before it is parsed
        raise errors.InvalidRequest(
            f"the label selector is longer than {MAX_SELECTOR_LENGTH} characters: use fewer labels and values"
        )
    parse = _parse_selector_cached if len(text) <= _MAX_CACHED_SELECTOR else selector.parse
    try:
        return parse(text, MAX_REQUIREMENTS)
    except SelectorError as error:
        raise errors.InvalidRequest(f"unable to parse the label selector: {error}") from error


_parse_selector_cached = lru_cache(maxsize=4096)(selector.parse)
