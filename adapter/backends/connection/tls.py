"""TLS contexts by settings, made anew when their files change. Everything here reads files, so call it in a thread."""

import ssl
from pathlib import Path

from adapter.backends.settings import Tls
from adapter.errors import BackendUnreachable


class TlsFiles:
    """The context for one server, as its files are now."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._stamp: object = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context; the same one as long as the files are the same, so that connections can be kept."""
        now = stamp(self._tls)
        if self._context is None or now != self._stamp:
            self._context, self._stamp = context(self._tls), now
        return self._context


def stamp(tls: Tls) -> tuple[object, ...]:
    """Say which version of its files a TLS context is made of."""
    return tuple(_version(path) for path in (tls.ca_file, tls.cert_file, tls.key_file) if path)


def context(tls: Tls) -> ssl.SSLContext:
    """Make a TLS context as the settings say; raise ``BackendUnreachable`` if its files are no good."""
    try:
        made = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.cert_file:
            made.load_cert_chain(tls.cert_file, tls.key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BackendUnreachable("the files of tls cannot be used", detail=type(error).__name__) from None
    if tls.insecure_skip_verify:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def _version(path: str) -> tuple[int, int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
