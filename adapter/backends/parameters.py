"""What a rule asks, as the record that its kind of metric system understands."""

from functools import lru_cache
from typing import TypeVar

import msgspec

from adapter.backends.settings import Parameters
from adapter.decoding import documents
from adapter.errors import BadQuery, ConfigInvalid
from adapter.rules.query_builder import Query

P = TypeVar("P", bound=Parameters)


def parameters(query: Query, shape: type[P]) -> P:
    """Read a query in parts; that it makes sense was seen when the rule was loaded."""
    try:
        found = _decoded(query.text, shape)
    except (ConfigInvalid, msgspec.DecodeError) as error:
        raise BadQuery("its parameters make no sense", detail=str(error)[:300]) from None
    if not isinstance(found, shape):  # the memory below does not know which type goes with which
        raise TypeError(shape)
    return found


@lru_cache(maxsize=4096)  # the same questions come every interval
def _decoded(text: str, shape: type[Parameters]) -> Parameters:
    return documents.decode(msgspec.json.decode(text), shape)
