"""Regular expressions of tenants on text documents, with RE2.

RE2 needs time proportional to the size of the compiled expression times the length of the text. Expressions of Python's
``re`` and of ``regex`` may need exponential time, and ``regex`` needs unbounded memory for ``((a{999}){999}){999}``.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import re2

from adapter.errors import BadQuery

_MAX_MEMORY: Final = 1024 * 1024
_MAX_WORK: Final = 200_000_000
"""Size of the compiled expression times length of the text; RE2 needs about two seconds for it."""

_MAX_SECONDS: Final = 0.5
"""Processor time for all matches: each match may read the whole rest of the text, as with ``(?s)a.*z|a``."""


def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - re2 has no types
    """Compile a pattern; raise ``ValueError`` if it is invalid."""
    options = re2.Options()
    options.max_mem, options.log_errors = _MAX_MEMORY, False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        cause = error.args[0] if error.args else ""
        raise ValueError(cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(error)) from None
    finally:
        re2.purge()  # the library's cache has 128 entries of up to 1 MiB each


def matches(pattern: str, text: str) -> Iterator[dict[str, str]]:
    """Return the named groups of each match, and its value as ``value``: that group, the first group or the match."""
    compiled = compile_pattern(pattern)
    if compiled.programsize * len(text) > _MAX_WORK:
        raise BadQuery("the regular expression is too complex for a document of this size: simplify it")
    deadline = time.thread_time() + _MAX_SECONDS
    for match in compiled.finditer(text):
        if time.thread_time() > deadline:
            raise BadQuery(f"the regular expression needs more than {_MAX_SECONDS}s of processor time")
        first = match[1] if compiled.groups else match[0]
        yield {"value": first, **{name: text for name, text in match.groupdict().items() if text is not None}}
