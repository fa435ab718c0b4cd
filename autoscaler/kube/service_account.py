"""The token of the pod's service account, which the kubelet replaces before it expires.

kubernetes-asyncio reads the file again after a minute of the wall clock. If that is set back by an hour, it goes on
using a token that expires meanwhile.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_incluster_config
from kubernetes_asyncio.config.incluster_config import SERVICE_TOKEN_FILENAME

_MAX_AGE: Final = 10.0
"""Seconds after which the file is read again, as by client-go."""


def load_service_account(settings: Configuration) -> None:
    """Set the address of the API server, its authority, and the token with its replacements."""
    load_incluster_config(settings, try_refresh_token=False)  # type: ignore[no-untyped-call]
    follow_token(settings, Path(SERVICE_TOKEN_FILENAME))


def follow_token(settings: Configuration, file: Path, timer: Callable[[], float] = time.monotonic) -> None:
    """Read the token from a file again while it is used."""
    read_at = timer()

    def read_again(configuration: Configuration) -> None:
        nonlocal read_at
        if timer() - read_at >= _MAX_AGE and (token := file.read_text(encoding="utf-8").strip()):
            configuration.api_key["BearerToken"], read_at = f"Bearer {token}", timer()

    settings.refresh_api_key_hook = read_again
