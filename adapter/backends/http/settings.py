"""Which server, and where in its documents the numbers are."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final, Literal
from urllib.parse import unquote

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters

_PATH: Final = re.compile(r"/[!-~]*", re.ASCII)


class HttpParameters(Parameters, frozen=True):
    """Which document, and where the numbers are in it."""

    path: str = ""
    """Comes behind the backend's ``url``; with a query, if it needs one. Left out: the ``url`` alone."""

    format: Literal["json", "xml", "text"] = "json"
    """What the document is."""

    value: str = ""
    """Where the numbers are. In JSON a JMESPath that finds a number, or a list of ``{labels, value}`` with a series in
    each. In XML a path of elements or ``element/@attribute``, each that is found being a series with the element's
    other attributes as labels. In text a regular expression, each match being a series; the group ``value`` or else
    the first is the number, named groups are labels. Left out: the whole document is a number."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        path = self.path
        if path and not _PATH.fullmatch(path):
            yield f"{at}.path: must begin with / and hold no spaces or characters that need encoding"
        elif ".." in unquote(path.partition("?")[0]).split("/"):
            yield f"{at}.path: must not lead out of the backend's url"
        if self.format == "xml" and not self.value:
            yield f"{at}.value: is needed with xml: a document of elements is no number"


class Http(HttpSettings, frozen=True):
    """A server with numbers in JSON, XML or text."""

    opened_by: ClassVar[str] = "adapter.backends.http.backend:HttpBackend"
    library: ClassVar[tuple[str, ...]] = ("jmespath", "regex")
    extra: ClassVar[str] = "http"
    asked_with: ClassVar[type[Parameters] | None] = HttpParameters
    questions_checked_by: ClassVar[str] = "adapter.backends.http.parse:expression_problems"
    rules_write_labels: ClassVar[bool] = True

    ping_path: str = ""
    """What to ask for to see whether it is there; any answer will do that is not an error."""

    max_response_bytes: int = 1024 * 1024
    """In bytes. More is refused before it fills our memory, and before it is searched."""
