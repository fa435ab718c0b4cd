"""TLS contexts from settings, recreated when their files change. All functions block: call them in a thread."""

import ssl
from pathlib import Path

from adapter.backends.settings import Tls
from adapter.errors import BackendUnreachable


class TlsFiles:
    """The TLS context of one backend, with the files that it is created from."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._version: object = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the same context while the files are unchanged, so that connections can be reused."""
        tls = self._tls
        version = [_file_version(path) for path in (tls.ca_file, tls.cert_file, tls.key_file) if path]
        if self._context is None or version != self._version:
            self._context, self._version = create_context(tls), version
        return self._context


def create_context(tls: Tls) -> ssl.SSLContext:
    """Create a TLS context; raise ``BackendUnreachable`` if a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
    except (OSError, ssl.SSLError) as error:
        raise BackendUnreachable(
            "TLS files cannot be loaded: check caFile, certFile and keyFile", detail=type(error).__name__
        ) from None
    if tls.insecure_skip_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _file_version(path: str) -> tuple[int, int, int]:
    try:
        status = Path(path).stat()
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_mtime_ns, status.st_size
