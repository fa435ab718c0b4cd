"""Settings of the HTTP backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal
from unicodedata import normalize
from urllib.parse import unquote

import msgspec

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters
from adapter.decoding.problem import Problem

_PERCENT: Final = r"%[0-9A-Fa-f]{2}"
_PATH: Final = re.compile(
    rf"(?>(?:/(?:[A-Za-z0-9._~!$&'()*+,=:@-]|{_PERCENT})*)+)(?>(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|{_PERCENT})*)?)"
)
"""Path and query with the characters of RFC 3986, except ``;``: some servers ignore ``;`` and the rest of a segment, so
that ``/..;/`` is ``/../``."""

_Expression = Annotated[str, msgspec.Meta(max_length=2048)]


class HttpParameters(Parameters, frozen=True):
    """A document, and where the values are in it."""

    selecting: ClassVar[tuple[str, ...]] = ("path", "value")

    path: _Expression = ""
    """Path and query that are appended to the ``url`` of the backend. Default: the ``url`` itself."""

    format: Literal["json", "xml", "text"] = "json"
    """Format of the document."""

    value: _Expression = ""
    """Where the values are in the document. JSON: a JMESPath expression that yields a number, or a list of
    ``{labels, value, timestamp}``, one per series. XML: a path to elements, or ``element/@attribute``; each match is a
    series whose labels are the other attributes of the element. Text: a regular expression; each match is a series
    whose value is the group ``value`` or the first group, and whose labels are the other named groups. Default: the
    whole document is one number."""

    def selection(self) -> str:
        """Return the path without its query, which may contain a credential, and the expression."""
        return super(HttpParameters, msgspec.structs.replace(self, path=self.path.partition("?")[0])).selection()

    def problems(self, path: str) -> Iterator[Problem]:
        if self.path:
            yield from _path_problems(self.path, f"{path}.path")
        if self.format == "xml" and not self.value:
            yield Problem(f"{path}.value", "required with format xml")


def _path_problems(text: str, path: str) -> Iterator[Problem]:
    if not _PATH.fullmatch(text):
        message = "must start with / and contain only letters, digits and -._~!$&'()*+,=:@, other characters as %XX"
        yield Problem(path, message)
        return
    segments = text.partition("?")[0].split("/")[1:]
    if "" in segments[:-1]:
        yield Problem(path, "must not contain //")
    elif not all(map(_is_plain_segment, segments)):
        yield Problem(path, "must not contain . or .. or an encoded %, \\ or control character")


def _is_plain_segment(segment: str) -> bool:
    """Return whether no server can read a segment as ``.`` or ``..``, in whatever order it decodes and normalizes."""
    try:
        decoded = normalize("NFKC", unquote(segment, errors="strict"))
    except UnicodeDecodeError:
        return False
    parts = decoded.replace(";", "/").split("/")
    return (
        decoded.isprintable() and not {"%", "\\"} & set(decoded) and not {".", ".."} & {each.strip() for each in parts}
    )


class Http(HttpSettings, frozen=True):
    """An HTTP server with values in JSON, XML or text documents."""

    backend_class: ClassVar[str] = "adapter.backends.http.backend:HttpBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("jmespath", "re2")
    extra: ClassVar[str] = "http"
    parameters_type: ClassVar[type[Parameters] | None] = HttpParameters
    parameters_validator: ClassVar[str] = "adapter.backends.http.parse:expression_problems"
    labels_controlled_by_rules: ClassVar[bool] = True

    ping_path: str = ""
    """Path that is fetched to check whether the server is available. Any successful response counts."""

    max_response_bytes: int = 1024 * 1024
    """Larger responses are rejected, which bounds memory and parsing time."""
