"""GET .../namespaces/{namespace}/{metric}: parse, call the reader, serialization."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

from adapter import errors
from adapter.auth.attributes import ResourceAttributes
from adapter.metrics.read_history import Asked
from adapter.metrics.reader import MetricReader
from adapter.rules.rule import INDEX
from adapter.sample import Sample
from adapter.server import protobuf, serialization
from adapter.server.content_negotiation import JSON, PROTOBUF, YAML, Offer
from adapter.server.group import GROUP
from adapter.server.request_context import RequestContext
from adapter.server.serialization import Named
from adapter.server.table import table
from adapter.server.values import Values
from autoscaler.values import selector
from autoscaler.values.selector import Selector, SelectorError

_OFFERS = (
    JSON,
    YAML,
    PROTOBUF,
    *(Offer(each.media, "Table", "meta.k8s.io", version) for each in (JSON, YAML) for version in ("v1", "v1beta1")),
)
_KNOWN_FIELDS = ("metadata.name", "metadata.namespace")
_INCLUDES = frozenset({"None", "Metadata", "Object"})
_LONGEST_REMEMBERED = 1024
_INDEX_PATIENCE = 1.0
_MOST_WRITTEN, _LONGEST_WRITTEN = 4096, 4096
_Form: TypeAlias = tuple[ResourceAttributes, Selector, Offer, bool]
"""What makes two answers with the same samples the same bytes: what was asked, in what form, and pretty or not."""

_log = logging.getLogger(__name__)


class ExternalMetrics:
    """The values of a metric in a namespace, and the index of all of them."""

    def __init__(self, reader: MetricReader, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._clock = clock
        self._written: dict[_Form, tuple[tuple[Sample, ...], bytes]] = {}

    async def read(self, exchange: RequestContext) -> Values:
        """Answer with the metric's values now, or say why there are none."""
        asked = exchange.attributes
        if not isinstance(asked, ResourceAttributes):
            raise errors.PathNotFound
        offer = exchange.wants(_OFFERS)
        wanted = _wanted(exchange, asked)
        if asked.resource == INDEX:
            body = self._body(exchange, offer, await self._index(asked.namespace, wanted), asked.namespace)
        else:
            try:
                samples = await self._reader.read(asked.namespace, asked.resource, wanted)
            except errors.AdapterError as error:
                error.group, error.resource = GROUP, asked.resource
                raise
            body = self._same_body(exchange, samples, (asked, wanted, offer, exchange.pretty()))
        return Values(body, offer.media)

    async def _index(self, namespace: str, wanted: Selector) -> list[Named]:
        """Read every metric of the namespace; one that fails or is slow is left out, and never in another's way."""
        reads = [asyncio.create_task(self._one(namespace, metric, wanted)) for metric in self._reader.names(namespace)]
        if not reads:
            return []
        try:
            await asyncio.wait(reads, timeout=_INDEX_PATIENCE)
            return [value for read in reads if read.done() for value in read.result()]
        finally:
            for read in reads:
                read.cancel()

    async def _one(self, namespace: str, metric: str, wanted: Selector) -> list[Named]:
        try:
            return serialization.in_order(metric, await self._reader.read(namespace, metric, wanted))
        except errors.AdapterError:
            return []
        except Exception:  # noqa: BLE001
            _log.exception("a metric failed in a way nobody foresaw", extra={"namespace": namespace, "metric": metric})
            return []

    def _same_body(self, exchange: RequestContext, samples: tuple[Sample, ...], form: _Form) -> bytes:
        """Write samples, unless the very same ones were written so before: who asks again is told the same."""
        before = self._written.get(form)
        if before is not None and before[0] is samples:
            return before[1]
        asked, wanted, offer, _ = form
        body = self._body(exchange, offer, serialization.in_order(asked.resource, samples), asked.namespace)
        is_light = Asked(asked.namespace, asked.resource, wanted).is_light and len(body) <= _LONGEST_WRITTEN
        if is_light and not offer.kind:  # a table tells the age of each value
            if len(self._written) >= _MOST_WRITTEN:
                self._written.clear()
            self._written[form] = samples, body
        return body

    def _body(self, exchange: RequestContext, offer: Offer, values: list[Named], namespace: str) -> bytes:
        if offer == PROTOBUF:
            return protobuf.encode_list(values)
        if offer.kind:
            include = exchange.query.get("includeObject") or "Metadata"
            if include not in _INCLUDES:
                raise errors.BadRequest(f"includeObject must be None, Metadata or Object, is {include!r}")
            now = self._clock()
            content: object = table(values, namespace=namespace, version=offer.version, include=include, now=now)
        else:
            content = serialization.document(values)
        return serialization.to_bytes(content, offer.media, pretty=exchange.pretty())


def _wanted(exchange: RequestContext, asked: ResourceAttributes) -> Selector:
    """Check what the caller may add to the path, and return the selector."""
    query = exchange.query
    if asked.verb == "watch":
        raise errors.MethodNotAllowed(
            f'watch is not supported on resources of kind "{asked.resource}.{GROUP}"',
            group=GROUP,
            resource=asked.resource,
        )
    limit = query.get("limit", "")
    if limit and not limit.removeprefix("-").isdecimal():
        raise errors.BadRequest(f"limit must be a whole number, is {limit!r}")
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        field = part.partition("=")[0].removesuffix("!")
        if field not in _KNOWN_FIELDS:
            raise errors.BadRequest(
                f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    text = query.get("labelSelector", "")
    try:
        return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else selector.parse(text)
    except SelectorError as error:
        raise errors.BadRequest(f"unable to parse the label selector: {error}") from error


@lru_cache(maxsize=4096)
def _remembered(text: str) -> Selector:
    """Parse a selector; the same few arrive again every fifteen seconds."""
    return selector.parse(text)
