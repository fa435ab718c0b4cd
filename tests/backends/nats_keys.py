"""NATS keys and JWTs of operators, accounts and users, as created by `nsc`."""

import base64
import binascii
import json
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

_SEED: Final = 18 << 3
_KINDS: Final = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
_UNLIMITED: Final = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
_JETSTREAM: Final = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
"""Limits of an account with JetStream; the system account must not have it."""


class Key:
    """The nkey of an operator, an account or a user."""

    def __init__(self, kind: str) -> None:
        self.kind, self._key = kind, Ed25519PrivateKey.generate()
        prefix = _KINDS[kind]
        private = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.seed = _encoded(bytes((_SEED | prefix >> 5, (prefix & 31) << 3)) + private)
        self.public = _encoded(bytes((prefix,)) + public)

    def issue(self, other: "Key", *, has_jetstream: bool = True) -> str:
        """Return a JWT for another key, signed with this one."""
        claims_of_type: dict[str, Any] = {"type": other.kind, "version": 2}
        if other.kind == "account":
            claims_of_type["limits"] = {**_UNLIMITED, "wildcards": True, **(_JETSTREAM if has_jetstream else {})}
        elif other.kind == "user":
            claims_of_type |= {"subs": -1, "data": -1, "payload": -1}
        claims = {
            "jti": "x",
            "iat": 1,
            "iss": self.public,
            "sub": other.public,
            "name": other.kind,
            "nats": claims_of_type,
        }
        signed = f"{_part({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_part(claims)}"
        return f"{signed}.{_base64(self._key.sign(signed.encode()))}"


def creds(jwt: str, seed: str) -> str:
    """Return the text of a ``.creds`` file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "NKEY Seed printed below can be used to sign and prove identity.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n\n"
        "*************************************************************\n"
    )


def _encoded(body: bytes) -> str:
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")


def _part(claims: Any) -> str:
    return _base64(json.dumps(claims).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
