"""Decoding of the parameters of a query."""

from functools import lru_cache
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
        decoded = _decode(query.text, parameters_type)
    except (ConfigInvalid, msgspec.DecodeError) as error:
        raise BadQuery("invalid parameters", detail=str(error)[:300]) from None
    if not isinstance(decoded, parameters_type):  # lru_cache loses the type
        raise TypeError(parameters_type)
    return decoded


@lru_cache(maxsize=4096)  # the same queries are sent at every interval
def _decode(text: str, parameters_type: type[Parameters]) -> Parameters:
    return documents.decode(msgspec.json.decode(text), parameters_type)
