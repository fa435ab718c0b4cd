"""Decoding of the parameters of a query."""

from typing import TypeVar

import msgspec

from adapter.backends.settings import Parameters
from adapter.decoding import documents
from adapter.decoding.problem import ConfigInvalid
from adapter.errors import BadQuery
from adapter.rules.query_builder import Query

P = TypeVar("P", bound=Parameters)


def parameters(query: Query, parameters_type: type[P]) -> P:
    """Return the parameters of a query; they were validated when the rule was loaded."""
    try:
        return documents.decode(msgspec.json.decode(query.text), parameters_type)
    except (ConfigInvalid, msgspec.DecodeError) as error:
        raise BadQuery("invalid parameters", detail=str(error)[:300]) from None
