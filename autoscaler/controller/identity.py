"""The identity of a process in the Lease: host, process, random part and, if it is known, the serving address."""

import os
import socket
import uuid
from typing import Final

_PARTS: Final = 4


def process_identity(address: str = "") -> str:
    """Return a new identity; ``address`` is HOST:PORT, at which other replicas reach this one."""
    parts = (socket.gethostname().replace("_", "-"), str(os.getpid()), uuid.uuid4().hex[:8], address)
    return "_".join(filter(None, parts))


def leader_address(identity: str) -> str:
    """Return the address in an identity; empty if it has none."""
    parts = identity.split("_")
    return parts[-1] if len(parts) == _PARTS else ""
