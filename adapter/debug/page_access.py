"""Which requests the local proxy of the debugging page accepts.

The proxy adds the user's credentials, so it must accept only requests of the browser in which the user opened its
address: other users of the machine can connect to the port, and every web page can make the browser send requests to
it. The address contains a secret that can be used once; the browser exchanges it for a cookie.
"""

import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

_PREFIX: Final = "debug"
_DOT_SEGMENTS: Final = frozenset({"", ".", ".."})
_SAME_SITE: Final = frozenset({"same-origin", "none"})


class PageAccess:
    """The secret and the cookie of one proxy, which listens on one port of the loopback address."""

    def __init__(self, port: int) -> None:
        self.cookie_name = f"steadyscale-debug-{port}"  # a browser sends cookies to all ports of a host
        self.cookie = secrets.token_urlsafe(32)
        self._secret: str | None = secrets.token_urlsafe(32)
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})

    @property
    def path(self) -> str:
        """The path of the address for the user."""
        return f"/open/{self._secret}"

    def exchange(self, secret: str) -> bool:
        """Return whether this is the secret; it is invalid afterwards."""
        if self._secret is None or not _equal(secret, self._secret):
            return False
        self._secret = None
        return True

    def has_cookie(self, cookies: Mapping[str, str]) -> bool:
        return _equal(cookies.get(self.cookie_name, ""), self.cookie)

    def is_own_site(self, headers: Mapping[str, str]) -> bool:
        """Return whether the request was not caused by another site.

        The Host header has another name after DNS rebinding. Sec-Fetch-Site and Origin name the page that sends the
        request; programs other than browsers send neither.
        """
        origin = headers.get("Origin")
        return (
            headers.get("Host") in self._hosts
            and headers.get("Sec-Fetch-Site", "none") in _SAME_SITE
            and (origin is None or origin.removeprefix("http://") in self._hosts)
        )


def is_debug_path(raw_path: str) -> bool:
    """Return whether a path that is still percent-encoded is below /debug, for every way to normalize it."""
    root, prefix, *segments = raw_path.split("/")
    return root == "" and prefix == _PREFIX and bool(segments) and all(map(_is_plain, segments))


def _is_plain(segment: str) -> bool:
    text = unquote(segment, errors="strict") if segment.isascii() else ""
    return text not in _DOT_SEGMENTS and text.isprintable() and not any(character in text for character in "/\\%;?#")


def _equal(left: str, right: str) -> bool:
    return secrets.compare_digest(left.encode(errors="surrogateescape"), right.encode())
