"""Under which name the limits of requests know who asks: the address, or the household that an IPv6 address is of.

A proxy on the same machine says for whom it asks (`X-Forwarded-For`), and what it passes on may be anything that a
stranger wrote: what is no address is nobody's own, and all of them share one limit.
"""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

#: Bits of an IPv6 address that a provider deals out to one subscriber at the least; the others are the subscriber's.
_HOUSEHOLD = 64


def name_of(address: str) -> str:
    """Return the name under which an address is limited; empty where it is none.

    Args:
        address: as the server or a proxy says it.
    """
    try:
        known = ip_address(address)
    except ValueError:
        return ""
    if isinstance(known, IPv4Address):
        return str(known)
    mapped = known.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((known.packed, _HOUSEHOLD), strict=False))
