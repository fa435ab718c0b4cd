"""The reason for a failed request, in the words of the operating system and of OpenSSL."""

import os
import ssl

import aiohttp


def connection_failure(error: Exception) -> str:
    """Return the reason; empty if there was no response in time. The text of aiohttp contains its TLS objects."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return str(error.certificate_error)
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() as failure):
            return f"the TLS handshake failed: {failure.reason or failure}"  # its errno is not one of the system
        case aiohttp.ClientConnectorError(os_error=failure):
            number = failure.errno or 0  # asyncio replaces the strerror of a refused connection
            return os.strerror(number) if number > 0 else failure.strerror or str(failure)
        case _:
            return str(error)
