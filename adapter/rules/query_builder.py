"""Construction of the query that is sent to a backend for a rule."""

from collections.abc import Hashable

import msgspec

from adapter import errors
from adapter.rules.go_template.nodes import TemplateError
from adapter.rules.promql.matchers import NotExpressible
from adapter.rules.query_template import render_query
from adapter.rules.rule import STATIC, Rule, Series
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector

_encode_sorted = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


class Query(Record, frozen=True):
    """A query for one backend."""

    backend: str
    """Name of the configured backend."""

    text: str
    """The query as it is sent and shown. A query that consists of parameters is JSON with sorted keys."""

    static_series: tuple[Series, ...] = ()
    """The series of a static metric."""

    @property
    def key(self) -> Hashable:
        """Return the identity of the query: queries with equal keys have equal results."""
        return self.backend, self.text


def snapshot_query(rule: Rule) -> Query:
    """Return the query for all series of a rule."""
    if rule.is_static:
        return Query(STATIC, _encode_sorted(rule.static).decode(), rule.static)
    return Query(rule.backend, rule.query or _encode_sorted(rule.parameters).decode())


def template_query(rule: Rule, namespace: str, selector: Selector) -> Query:
    """Render the template of a rule for one namespace and selector.

    Raise ``InvalidRequest`` if PromQL cannot express the selector, and ``BadQuery`` if the template cannot be rendered.
    """
    try:
        return Query(rule.backend, render_query(rule, namespace, selector))
    except NotExpressible as error:
        raise errors.InvalidRequest(
            f"metric {rule.name!r}: the selector cannot be expressed in its query: {error}"
        ) from error
    except TemplateError as error:
        raise errors.BadQuery("the query template cannot be rendered", detail=str(error)) from error
