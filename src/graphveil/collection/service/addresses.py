"""Under which name the limits of requests know who asks, and under which names a collector may be asked.

Who asks is an address, or the household that an IPv6 address is of. A proxy on the same machine says for whom it asks
(`X-Forwarded-For`), and what it passes on may be anything that a stranger wrote: what is no address is nobody's own,
and all of them share one limit.

Who is asked stands in the header Host. A page of somebody else's whose name suddenly leads to this machine could
otherwise ask a collector on loopback through its reader's browser, and read what it says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

#: Bits of an IPv6 address that a provider deals out to one subscriber at the least; the others are the subscriber's.
_HOUSEHOLD = 64


def name_of(address: str) -> str:
    """Return the name under which an address is limited; empty where it is none.

    Args:
        address: as the server or a proxy says it.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((parsed.packed, _HOUSEHOLD), strict=False))


def host_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the name in a request's header Host, without port, in small letters; None where there is not one of them.

    Args:
        headers: of the request, names in small letters.
    """
    values = [value for name, value in headers if name == b"host"]
    if len(values) != 1:
        return None
    try:
        return (urlsplit(f"//{values[0].decode('ascii')}").hostname or "").removesuffix(".") or None
    except ValueError:
        return None


def is_host(host: str, names: Collection[str]) -> bool:
    """Return whether a collector may be asked under a name.

    Args:
        host: see `host_of`. names: that were declared; "*.example.org" stands for every name one below.
    """
    # A number leads where it says: no name of somebody else's can be made to lead here instead.
    if host == "localhost" or name_of(host):
        return True
    return host in names or f"*.{host.partition('.')[2]}" in names


def names_in(certificate: Path) -> frozenset[str]:
    """Return the names of hosts that a certificate is for.

    Args:
        certificate: a PEM file.

    Raises:
        ValueError: it is none.
    """
    from cryptography import x509

    first = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    try:
        named = first.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(name.casefold() for name in named.value.get_values_for_type(x509.DNSName))
