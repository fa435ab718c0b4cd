"""The source of a connection: the address by which limits for unauthenticated clients count."""

from ipaddress import IPv6Address, ip_address
from typing import Final

_IPV6_PREFIX: Final = 64
"""A host can use every address of its /64, so IPv6 addresses count by prefix."""


def source_of(host: str | None) -> str:
    """Return the source for a peer's IP address: the address, or the prefix of an IPv6 address."""
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return host or ""
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> (128 - _IPV6_PREFIX) << (128 - _IPV6_PREFIX))}/{_IPV6_PREFIX}"
