"""NATS nkeys and ``.creds`` files. Pure code.

A seed is base32 of two bytes for the type, the 32 bytes of an Ed25519 private key, and a CRC-16. A public key has one
byte for the type.
"""

import base64
import binascii
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapter.errors import BackendUnauthorized

_SEED_PREFIX: Final = 18 << 3
_USER_PREFIX: Final = 20 << 3
_SEED_LENGTH: Final = 36


class Nkey(NamedTuple):
    """The nkey of a user."""

    public: str
    key: Ed25519PrivateKey

    def sign(self, nonce: str) -> bytes:
        """Return the base64-encoded signature of the nonce from the server."""
        return base64.b64encode(self.key.sign(nonce.encode()))


def parse_nkey(seed: str, setting: str) -> Nkey:
    """Parse a seed; raise ``BackendUnauthorized`` if it is not the seed of a user's nkey."""
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    body = raw[:-2]
    is_intact = len(raw) == _SEED_LENGTH and raw == body + _checksum(body)
    if not is_intact or (body[0] & 0xF8, (body[0] & 7) << 5 | body[1] >> 3) != (_SEED_PREFIX, _USER_PREFIX):
        raise BackendUnauthorized(f"{setting} does not contain the seed of a user nkey")
    key = Ed25519PrivateKey.from_private_bytes(body[2:])
    public = bytes((_USER_PREFIX,)) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return Nkey(base64.b32encode(public + _checksum(public)).decode().rstrip("="), key)


def parse_credentials(lines: Sequence[str], setting: str) -> tuple[str, str]:
    """Return JWT and seed from the lines of a ``.creds`` file; each is the line below its heading."""
    sections = {heading: value.strip() for heading, value in pairwise(lines) if "BEGIN" in heading}
    jwt = next((value for heading, value in sections.items() if "USER JWT" in heading), "")
    seed = next((value for heading, value in sections.items() if "NKEY SEED" in heading), "")
    if not jwt or not seed:
        raise BackendUnauthorized(f"{setting} does not contain a user JWT and an nkey seed")
    return jwt, seed


def _checksum(body: bytes) -> bytes:
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")
