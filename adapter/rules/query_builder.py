"""What is sent to a backend: a rule's query, whole, or filled with a namespace and a selector."""

from collections.abc import Hashable

import msgspec

from adapter import errors
from adapter.rules.go_template.nodes import TemplateError
from adapter.rules.promql.matchers import NotExpressible
from adapter.rules.query_template import rendered
from adapter.rules.rule import STATIC, Rule, Series
from autoscaler.types.record import Record
from autoscaler.values.selector import Selector

_in_order = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


class Query(Record, frozen=True):
    """One question to one backend."""

    backend: str
    """Which of the configured backends."""

    text: str
    """The question as it is sent and shown. One in parts, such as CloudWatch's, is JSON with its keys in order."""

    numbers: tuple[Series, ...] = ()
    """The answer, where it is written in the rule."""

    @property
    def key(self) -> Hashable:
        """What makes two questions the same."""
        return self.backend, self.text


def whole(rule: Rule) -> Query:
    """Ask for all series of a rule."""
    if rule.is_static:
        return Query(STATIC, _in_order(rule.static).decode(), rule.static)
    return Query(rule.backend, rule.query or _in_order(rule.parameters).decode())


def filled(rule: Rule, namespace: str, selector: Selector) -> Query:
    """Ask for the series of one namespace that one selector matches; raise if the query cannot say that."""
    try:
        return Query(rule.backend, rendered(rule, namespace, selector))
    except NotExpressible as error:
        raise errors.BadRequest(f"metric {rule.name!r}: the selector cannot be part of its query: {error}") from error
    except TemplateError as error:
        raise errors.BadQuery("its template cannot be filled", detail=str(error)) from error
