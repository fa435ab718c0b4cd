"""Settings of the HTTP backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal
from urllib.parse import unquote

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters
from adapter.decoding.problem import Problem

_PATH: Final = re.compile(r"/[!-~]*", re.ASCII)


class HttpParameters(Parameters, frozen=True):
    """A document, and where the values are in it."""

    path: str = ""
    """Path and query that are appended to the ``url`` of the backend. Default: the ``url`` itself."""

    format: Literal["json", "xml", "text"] = "json"
    """Format of the document."""

    value: str = ""
    """Where the values are in the document. JSON: a JMESPath expression that yields a number, or a list of
    ``{labels, value, timestamp}``, one per series. XML: a path to elements, or ``element/@attribute``; each match is a
    series whose labels are the other attributes of the element. Text: a regular expression; each match is a series
    whose value is the group ``value`` or the first group, and whose labels are the other named groups. Default: the
    whole document is one number."""

    def problems(self, path: str) -> Iterator[Problem]:
        if self.path and not _PATH.fullmatch(self.path):
            yield Problem(f"{path}.path", "must start with / and be percent-encoded")
        elif ".." in unquote(self.path.partition("?")[0]).split("/"):
            yield Problem(f"{path}.path", "must not contain ..")
        if self.format == "xml" and not self.value:
            yield Problem(f"{path}.value", "required with format xml")


class Http(HttpSettings, frozen=True):
    """An HTTP server with values in JSON, XML or text documents."""

    backend_class: ClassVar[str] = "adapter.backends.http.backend:HttpBackend"
    required_modules: ClassVar[tuple[str, ...]] = ("jmespath", "regex")
    extra: ClassVar[str] = "http"
    parameters_type: ClassVar[type[Parameters] | None] = HttpParameters
    parameters_validator: ClassVar[str] = "adapter.backends.http.parse:expression_problems"
    labels_controlled_by_rules: ClassVar[bool] = True

    ping_path: str = ""
    """Path that is fetched to check whether the server is available. Any successful response counts."""

    max_response_bytes: int = 1024 * 1024
    """Larger responses are rejected, which bounds memory and parsing time."""
