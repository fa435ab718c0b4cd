"""Keys of NATS: what a seed or a file ``.creds`` holds, and how to sign with it; pure.

A seed is base32 of two bytes that say what it is for, the key's 32 bytes and a checksum; a public key has one byte
before it that says the same.
"""

import base64
import binascii
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapter.errors import BackendUnauthorized

_SEED: Final = 18 << 3
_USER: Final = 20 << 3
_LENGTH: Final = 36


class Nkey(NamedTuple):
    """A key of a user."""

    public: str
    key: Ed25519PrivateKey

    def sign(self, nonce: str) -> bytes:
        """Sign what the server asks us to sign, as it wants to see that."""
        return base64.b64encode(self.key.sign(nonce.encode()))


class Credentials(NamedTuple):
    """Who somebody is, by whom they were let in, and the key to prove it."""

    jwt: str
    seed: str


def nkey(seed: str, setting: str) -> Nkey:
    """Read a seed; raise ``BackendUnauthorized`` if it is none of a user's."""
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    body, checksum = raw[:-2], raw[-2:]
    is_whole = len(raw) == _LENGTH and binascii.crc_hqx(body, 0).to_bytes(2, "little") == checksum
    if not is_whole or (body[0] & 0xF8, (body[0] & 7) << 5 | body[1] >> 3) != (_SEED, _USER):
        raise BackendUnauthorized(f"{setting} holds no seed of a user's nkey")
    key = Ed25519PrivateKey.from_private_bytes(body[2:])
    return Nkey(_public(key), key)


def credentials(lines: Sequence[str], setting: str) -> Credentials:
    """Find the JWT and the seed in a file ``.creds``: each is the line below its title."""
    below = {title: value for title, value in pairwise(lines) if "BEGIN" in title}
    jwt = next((value for title, value in below.items() if "USER JWT" in title), "")
    seed = next((value for title, value in below.items() if "NKEY SEED" in title), "")
    if not jwt or not seed:
        raise BackendUnauthorized(f"{setting} holds no JWT with a seed")
    return Credentials(jwt.strip(), seed.strip())


def _public(key: Ed25519PrivateKey) -> str:
    body = bytes((_USER,)) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")
